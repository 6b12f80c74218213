"""What a run changes in its task: overrides from several places, the nearest of which wins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mjrl import yaml_text
from mjrl.envs.describe import describe, differences
from mjrl.envs.objections import objection
from mjrl.envs.overrides import apply, merge, plain
from mjrl.envs.paths import find
from mjrl.envs.scenes import is_package
from mjrl.envs.task import Task
from mjrl.envs.typed import shown


@dataclass(frozen=True, kw_only=True)
class Layer:
  """Overrides of one place.

  source           the place in words
  values           path to value
  from_checkpoint  whether they come with one: then one that has lost its effect is dropped
  """

  source: str
  values: Mapping[str, Any]
  from_checkpoint: bool = False


@dataclass(frozen=True, kw_only=True)
class Changed:
  """A task with its overrides.

  overrides   path to plain value, of those in force
  departures  a line for each value that is not the page's own
  inherited   those that came with the checkpoint
  """

  task: Task
  overrides: Mapping[str, Any]
  departures: tuple[str, ...]
  inherited: Mapping[str, Any]


def change(
  task: Task,
  engine: str,
  layers: Sequence[Layer],
  refuse: Callable[[str, Any], str] = lambda path, value: "",
  page: Task | None = None,
) -> Changed:
  """Apply layers of overrides.

  Args:
    task: to change.
    engine: whose recipe "recipe." stands for.
    layers: the nearest last.
    refuse: why a path could have no effect in this command, or "".
    page: the task as its page has it, where `task` has another recipe; departures start from it.

  Raises:
    ValueError: an override that cannot be, or has no effect, with the place that it came from.
  """
  overrides: dict[str, Any] = {}
  sources: dict[str, Layer] = {}
  changed = task
  for layer in layers:
    try:
      before, values = overrides, plain(task, engine, layer.values)
      overrides = merge(before, values)
      changed = apply(task, engine, overrides)
    except ValueError as error:
      raise ValueError(f"{layer.source}: {error}") from None
    new = [p for p in overrides if p in values or overrides[p] != before.get(p)]
    sources |= dict.fromkeys(new, layer)
  for path, value in list(overrides.items()):
    why = objection(task, changed, engine, path)
    if sources[path].from_checkpoint:
      if why:
        del overrides[path]
      continue
    why = why or refuse(path, value)
    if why:
      raise ValueError(f"{sources[path].source}: {path}={shown(value)}: {why}")
  changed = apply(task, engine, overrides)
  return Changed(
    task=changed,
    overrides=overrides,
    departures=_departures(page or task, changed, engine, overrides, sources),
    inherited={path: value for path, value in overrides.items() if sources[path].from_checkpoint},
  )


def checkpoint_layer(saved: Mapping[str, Any] | None, engine: str) -> Layer:
  """The overrides of the run that wrote a checkpoint.

  Args:
    saved: the checkpoint, or None.
    engine: that is to run; the numbers of another one's recipe do not count.
  """
  values = saved.get("set", {}) if saved else {}
  if saved and saved["backend"].split(":")[0] != engine:
    values = {path: value for path, value in values.items() if not path.startswith("recipe.")}
  return Layer(source="set by the checkpoint's run", values=values, from_checkpoint=True)


def scene_layer(scene: str | None, sources: Mapping[str, str]) -> Layer:
  """What --scene changes in the task; a package is known by its absolute path.

  Raises:
    ValueError: there is no such scene.
  """
  if scene is None:
    return Layer(source="", values={})
  source = sources.get("scene", "given")
  found = str(Path(scene).expanduser().absolute()) if is_package(scene) else scene
  return Layer(source="--scene" if source == "given" else source, values={"scene": found})


def parse_sets(words: Sequence[str]) -> dict[str, Any]:
  """The values of several `--set path=value`.

  Raises:
    ValueError: a word that is none, or a path that is given twice.
  """
  found: dict[str, Any] = {}
  for word in words:
    path, equals, text = word.partition("=")
    if not (path and equals and text.strip()):
      raise ValueError(f"--set {word}: it must be PATH=VALUE")
    if path in found:
      raise ValueError(f"--set {path} is given twice; leave one out")
    try:
      found[path] = yaml_text.load(text)
    except ValueError as error:
      raise ValueError(f"--set {word}: {error}") from None
  return found


def said(overrides: Mapping[str, Any]) -> str:
  """Overrides as one would type them."""
  return ", ".join(f"{path}={shown(value)}" for path, value in overrides.items())


def _departures(
  page: Task,
  changed: Task,
  engine: str,
  overrides: Mapping[str, Any],
  sources: Mapping[str, Layer],
) -> tuple[str, ...]:
  """A line for each number, from the page's value to the one in force."""
  told = {path: _own(page, engine, path) for path in overrides}
  told = {path: own for path, own in told.items() if own is not _ABSENT}
  lines = []
  if engine in page.recipes:  # what the number of envs and a memory have changed
    before, after = (describe(one.recipes[engine]) for one in (page, changed))
    for line in differences(before, after, "recipe"):
      path = line.partition(": ")[0]
      if not any(_overlap(path, other) for other in told):
        lines.append(line)
  for path, own in told.items():
    if own != overrides[path]:
      change = "taken out" if isinstance(own, dict) else f"{shown(own)} -> {shown(overrides[path])}"
      lines.append(f"{path}: {change} ({sources[path].source})")
  return tuple(lines)


_ABSENT = object()


def _own(page: Task, engine: str, path: str) -> Any:
  """The page's own value at a path; `_ABSENT` for a part of what the run has been given."""
  try:
    return describe(find(page, engine, path).value)
  except ValueError:
    return _ABSENT


def _overlap(one: str, other: str) -> bool:
  """Whether one path is the other, or a part of it."""
  return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
