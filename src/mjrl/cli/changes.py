"""What a run changes in its task: overrides from several places, the nearest of which wins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mjrl import yaml_text
from mjrl.envs.describe import describe
from mjrl.envs.objections import objection
from mjrl.envs.overrides import apply, merge, plain
from mjrl.envs.paths import find
from mjrl.envs.task import Task
from mjrl.envs.typed import shown


@dataclass(frozen=True, kw_only=True)
class Layer:
  """Overrides of one place.

  source     the place in words
  values     path to value
  inherited  whether they come with a checkpoint: then one that has lost its effect is dropped
  """

  source: str
  values: Mapping[str, Any]
  inherited: bool = False


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
) -> Changed:
  """Apply layers of overrides.

  Args:
    task: as its page has it.
    engine: whose recipe "recipe." stands for.
    layers: the nearest last.
    refuse: why a path could have no effect in this command, or "".

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
    if sources[path].inherited:
      if why:
        del overrides[path]
      continue
    why = why or refuse(path, value)
    if why:
      raise ValueError(f"{sources[path].source}: {path}={shown(value)}: {why}")
  return Changed(
    task=apply(task, engine, overrides),
    overrides=overrides,
    departures=tuple(
      line for path in overrides if (line := _departure(task, engine, path, overrides, sources))
    ),
    inherited={path: value for path, value in overrides.items() if sources[path].inherited},
  )


def inherited(saved: Mapping[str, Any] | None, engine: str) -> Layer:
  """The overrides of the run that wrote a checkpoint.

  Args:
    saved: the checkpoint, or None.
    engine: that is to run; the numbers of another one's recipe do not count.
  """
  values = saved.get("set", {}) if saved else {}
  if saved and saved["backend"].split(":")[0] != engine:
    values = {path: value for path, value in values.items() if not path.startswith("recipe.")}
  return Layer(source="set by the checkpoint's run", values=values, inherited=True)


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


def _departure(
  task: Task,
  engine: str,
  path: str,
  overrides: Mapping[str, Any],
  sources: Mapping[str, Layer],
) -> str:
  own, value = describe(find(task, engine, path).value), overrides[path]
  if own == value:
    return ""
  change = "taken out" if isinstance(own, dict) else f"{shown(own)} -> {shown(value)}"
  return f"{path}: {change} ({sources[path].source})"
