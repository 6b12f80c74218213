"""Where a path like "rewards.foot_slip.weight" leads in a task.

It follows fields, keys of tables and positions in lists.  "params" may be left out, and "recipe."
is the recipe of the engine that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from mjrl.envs.task import Task
from mjrl.envs.typed import hint_of, param_hint, shown
from mjrl.names import nearest

_FIXED = {
  "name": "--task chooses another task",
  "robot": "a task is made for its robot",
  "recipes": "'recipe.' stands for the recipe of the engine that runs, and another has no effect",
}
_COUNTS = {"num_envs": "--num_envs", "max_iterations": "--max_iterations"}


@dataclass(frozen=True, kw_only=True)
class Place:
  """A part of a task.

  keys    the fields, keys and positions that lead to it
  path    the shortest way to write them
  hint    its type, where it is a plain value
  value   what is there
  parent  what it is a part of
  """

  keys: tuple[str, ...] = ()
  path: str = ""
  hint: Any = None
  value: Any
  parent: Any = None

  def parts(self) -> dict[str, Place]:
    """What it is made of, by name; nothing, for a plain value."""
    node = self.value
    if is_dataclass(node) and not isinstance(node, type):
      hints = get_type_hints(type(node))
      found = {
        f.name: self._part(f.name, hints[f.name], getattr(node, f.name))
        for f in fields(node)
        if f.name not in ("fn", "params")
      }
      for name, value in getattr(node, "params", {}).items():
        hint = param_hint(node.fn, name, value)  # type: ignore[attr-defined]
        found.setdefault(name, self._part(name, hint, value, "params"))
      return found
    if isinstance(node, Mapping):
      return {str(key): self._part(str(key), hint_of(v), v) for key, v in node.items()}
    if isinstance(node, tuple):
      hints = _item_hints(self.hint, node)
      return {str(k): self._part(str(k), hints[k], item) for k, item in enumerate(node)}
    return {}

  def _part(self, name: str, hint: Any, value: Any, *between: str) -> Place:
    path = f"{self.path}.{name}" if self.path else name
    keys = (*self.keys, *between, name)
    return Place(keys=keys, path=path, hint=hint, value=value, parent=self.value)


def find(task: Task, engine: str, path: str) -> Place:
  """Where a path leads.

  Raises:
    ValueError: nowhere, or to something that is not for overrides; names the nearest part.
  """
  place = Place(value=task)
  for part in path.split("."):
    if part == "params" and hasattr(place.value, "params"):
      continue
    if place.value is task and part in _FIXED:
      raise ValueError(f"{path}: cannot be set: {_FIXED[part]}")
    if place.value is task and part == "recipe" and engine not in task.recipes:
      raise ValueError(f"{path}: has no effect: no recipe is used here")
    if place.path == "recipe" and part in _COUNTS:
      raise ValueError(f"{path}: has no effect on a run; use {_COUNTS[part]}")
    parts = place.parts()
    if place.value is task:
      parts = _of_task(task, engine, parts)
    if part not in parts:
      where = place.path or f"task {task.name}"
      if not parts:
        raise ValueError(f"{path}: {where} is {shown(place.value)}, and has no parts")
      raise ValueError(f"{path}: {where} has no {part!r}; {nearest(part, parts)}")
    place = parts[part]
  return place


def _of_task(task: Task, engine: str, parts: dict[str, Place]) -> dict[str, Place]:
  """The parts of a task that can be set, the recipe of the engine among them."""
  recipe = {}
  if engine in task.recipes:
    keys = ("recipes", engine)
    recipe["recipe"] = Place(keys=keys, path="recipe", value=task.recipes[engine], parent=task)
  return {name: part for name, part in parts.items() if name not in _FIXED} | recipe


def _item_hints(hint: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
  """The type of each item; of a union, the arm that is a list counts."""
  for arm in (hint, *get_args(hint)):
    if get_origin(arm) is tuple:
      said = get_args(arm)
      return (said[0],) * len(items) if said[1:] == (...,) else said
  return tuple(map(hint_of, items))
