"""The tasks by name.  Importing this loads none of them: a list costs nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from mjrl.names import nearest

if TYPE_CHECKING:
  from mjrl.envs.task import Task


@dataclass(frozen=True, kw_only=True)
class Entry:
  """A task as lists show it, and where its page is.

  num_envs  engine ("native", "warp") to the number of envs that its recipe is made for
  page      module with a function `task() -> Task`
  """

  description: str
  robot: str
  num_envs: Mapping[str, int]
  page: str


TASKS: Mapping[str, Entry] = {
  "jumper.flat": Entry(
    description="walk at a commanded velocity, any gait",
    robot="jumper",
    num_envs={"native": 128, "warp": 4096},
    page="mjrl.tasks.jumper.flat",
  ),
  "jumper.tripod": Entry(
    description="walk at a commanded velocity, three feet at a time",
    robot="jumper",
    num_envs={"native": 128, "warp": 4096},
    page="mjrl.tasks.jumper.tripod",
  ),
  "jumper.tetrapod": Entry(
    description="walk at a commanded velocity, two feet at a time",
    robot="jumper",
    num_envs={"native": 128, "warp": 4096},
    page="mjrl.tasks.jumper.tetrapod",
  ),
  "jumper.ripple": Entry(
    description="walk at a commanded velocity, one foot at a time",
    robot="jumper",
    num_envs={"native": 128, "warp": 4096},
    page="mjrl.tasks.jumper.ripple",
  ),
  "jumper.posture": Entry(
    description="tripod that holds its body as asked, moving or not",
    robot="jumper",
    num_envs={"native": 128, "warp": 4096},
    page="mjrl.tasks.jumper.posture",
  ),
}


def entry(name: str) -> Entry:
  """What the list knows of a task.

  Raises:
    ValueError: there is no such task, with the names that there are, the nearest first.
  """
  if name not in TASKS:
    raise ValueError(f"there is no task {name!r}; {nearest(name, TASKS)}")
  return TASKS[name]


def build(name: str) -> "Task":
  """The task's page, built and checked."""
  return import_module(entry(name).page).task()
