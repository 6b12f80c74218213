"""Tables: the one that --list prints, and what others share with it."""

from collections.abc import Mapping, Sequence

from mjrl.envs.scenes import SCENES
from mjrl.tasks import Entry


def task_table(tasks: Mapping[str, Entry]) -> str:
  """Every task with its robot, its env count on each backend, and what it is."""
  backends = list(dict.fromkeys(name for entry in tasks.values() for name in entry.num_envs))
  header = ["task", "robot", *(f"envs on {name}" for name in backends), "what it is"]
  rows = [
    [name, entry.robot, *(str(entry.num_envs.get(b, "-")) for b in backends), entry.description]
    for name, entry in tasks.items()
  ]
  return aligned(header, rows)


def scene_table() -> str:
  """Every scene, and how its ground differs from the flat one of training."""
  rows = [[name, s.description, s.physics or "as in training"] for name, s in SCENES.items()]
  return aligned(["scene", "what it is", "physics"], rows)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  """A header and rows with their columns below one another."""
  widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
  lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (header, *rows)]
  return "\n".join(lines)
