"""Other numbers for a task, by path; the task is built and checked anew, and never changed."""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from types import NoneType
from typing import Any, cast, get_args

from mjrl.envs.describe import describe
from mjrl.envs.objections import objection
from mjrl.envs.paths import Place, find
from mjrl.envs.recipe import Anneal
from mjrl.envs.task import WORLD_EVENTS, Event, Reward, Task
from mjrl.envs.typed import convert, shown

Values = Mapping[str, Any]


def override(task: Task, engine: str, values: Values) -> Task:
  """The task with other values at some paths.

  Args:
    task: stays as it is.
    engine: whose recipe "recipe." stands for.
    values: path (see `mjrl.envs.paths`) to plain value; lists for tuples.  None takes out an event,
      an anneal, and whatever else may be None.

  Raises:
    ValueError: a path that leads nowhere, a value of the wrong type, one that the task or its
      recipe refuses, or one that could have no effect; begins with the path.
  """
  changed = apply(task, engine, values)
  for path in values:
    if why := objection(task, changed, engine, path):
      raise ValueError(f"{path}: {why}")
  return changed


def plain(task: Task, engine: str, values: Values) -> dict[str, Any]:
  """The same values under the shortest spelling of their paths, as their fields have them.

  Raises:
    ValueError: a path or a value that cannot be, or one path in two spellings.
  """
  found: dict[str, Any] = {}
  for path, value in values.items():
    place = find(task, engine, path)
    if place.path in found:
      raise ValueError(f"{path}: is set twice; leave one out")
    value = _converted(place, path, value)
    found[place.path] = None if value is _REMOVED else describe(value)
  return found


def merge(lower: Values, upper: Values) -> dict[str, Any]:
  """Two sets of `plain` values in one; where they speak of the same, the upper has its way."""
  merged = {p: v for p, v in lower.items() if not any(f"{p}.".startswith(f"{u}.") for u in upper)}
  for path, value in upper.items():
    whole, _, item = path.rpartition(".")
    if isinstance(merged.get(whole), list):
      merged[whole] = [value if str(k) == item else v for k, v in enumerate(merged[whole])]
    else:
      merged[path] = value
  return merged


def apply(task: Task, engine: str, values: Values) -> Task:
  """As `override`, without asking whether each value has an effect."""
  tree: dict[str, Any] = {}
  for path, value in values.items():
    place = find(task, engine, path)
    *way, last = place.keys
    branch = tree
    for key in way:
      branch = branch.setdefault(key, {})
      if isinstance(branch, _Leaf):
        break
    if isinstance(branch, _Leaf) or last in branch:
      raise ValueError(f"{path}: it, or what it is a part of, is set twice; leave one out")
    branch[last] = _Leaf(_converted(place, path, value))
  try:
    return _rebuilt(task, tree)
  except ValueError as error:
    blamed = _refused_alone(task, engine, values) or values
    said = ", ".join(f"{path}={shown(value)}" for path, value in blamed.items())
    raise ValueError(f"{said}: {error}") from None


_REMOVED = object()


@dataclass(frozen=True)
class _Leaf:
  value: Any


def _rebuilt(node: Any, tree: Any) -> Any:
  """The node with the tree's leaves in place; each dataclass on the way is built once."""
  if isinstance(tree, _Leaf):
    return tree.value
  if is_dataclass(node) and not isinstance(node, type):
    return replace(
      node, **{key: _rebuilt(getattr(node, key), branch) for key, branch in tree.items()}
    )
  if isinstance(node, Mapping):
    rows = {key: _rebuilt(v, tree[key]) if key in tree else v for key, v in node.items()}
    return {key: row for key, row in rows.items() if row is not _REMOVED}
  items = cast(tuple[Any, ...], node)  # nothing else has parts
  return tuple(_rebuilt(v, tree[str(k)]) if str(k) in tree else v for k, v in enumerate(items))


def _refused_alone(task: Task, engine: str, values: Values) -> Values:
  """Those that are refused without the others; the rest is not to blame."""
  blamed = {}
  for path, value in values.items() if len(values) > 1 else ():
    try:
      apply(task, engine, {path: value})
    except ValueError:
      blamed[path] = value
  return blamed


def _converted(place: Place, path: str, value: Any) -> Any:
  """The value as the place takes it."""
  if value is None:
    return _nothing(place, path)
  if parts := None if _is_plain(place.value) else place.parts():
    raise ValueError(f"{path}: set one of its parts: {', '.join(parts)}")
  try:
    value = convert(value, place.hint)
  except ValueError as error:
    raise ValueError(f"{path}: {error}") from None
  if isinstance(place.parent, Event) and place.path.endswith(".when"):
    if (value in WORLD_EVENTS) != (place.value in WORLD_EVENTS):
      raise ValueError(f"{path}: what happens at {place.value!r} cannot happen at {value!r}")
  return value


def _nothing(place: Place, path: str) -> Any:
  """What null stands for at a place."""
  if isinstance(place.value, Event | Anneal):
    return _REMOVED
  if place.path == "gait":
    raise ValueError(f"{path}: rows read the clock; choose a task without one")
  if place.path == "terrain":
    raise ValueError(f"{path}: --terrain flat gives flat ground")
  if NoneType in get_args(place.hint):
    return None
  if isinstance(place.value, Reward):
    raise ValueError(f"{path}: a reward is taken out by {place.path}.weight=0")
  if is_dataclass(place.value):
    raise ValueError(f"{path}: cannot be taken out; events, anneals and the curriculum can")
  raise ValueError(f"{path}: null does not do; {shown(place.value)} is there")


def _is_plain(value: Any) -> bool:
  """Whether it is given whole: a number, a text, or a list of such."""
  if isinstance(value, tuple):
    return all(map(_is_plain, value))
  return not (is_dataclass(value) or isinstance(value, Mapping))
