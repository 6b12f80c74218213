"""The flags about the ground: short names for what `--set` reaches too."""

from collections.abc import Mapping
from typing import Any

from mjrl.cli.changes import Layer
from mjrl.cli.flags import CommonFlags
from mjrl.envs.task import Task

# Flag, of any command that has it, to the path of what it sets.
PATHS: Mapping[str, str] = {
  "terrain": "terrain.ground",
  "terrain_level": "terrain.level",
  "terrain_kind": "terrain.kind",
}


def terrain_layers(
  flags: CommonFlags, sources: Mapping[str, str], sets: Mapping[str, Any], task: Task
) -> list[Layer]:
  """The overrides that the flags stand for, each with its flag as the source.

  Args:
    flags: with settings and configuration applied.
    sources: flag to where its value came from, of those that are given.
    sets: path to value, of every `--set`.
    task: as its page has it.

  Raises:
    ValueError: the task has no ground to choose, or a flag and a `--set` give the same.
  """
  layers = []
  for flag, path in PATHS.items():
    if flag not in sources:
      continue
    source = f"--{flag}" if sources[flag] == "given" else sources[flag]
    if task.terrain is None:
      raise ValueError(f"{source}: {task.name} has flat ground alone; leave it out")
    if path in sets:
      raise ValueError(f"{source} and --set {path} are the same; leave one of them out")
    layers.append(Layer(source=source, values={path: getattr(flags, flag)}))
  return layers
