"""The robots, by name. Imports neither a simulator nor a learner, so listing them is quick."""

from difflib import get_close_matches

from mjrl.robots.jumper import JUMPER
from mjrl.robots.robot import Robot

__all__ = ["ROBOTS", "Robot", "load"]

ROBOTS: dict[str, Robot] = {robot.name: robot for robot in (JUMPER,)}


def load(name: str) -> Robot:
  """Return the robot of that name.

  Raises:
    ValueError: If there is none; the text lists those there are.
  """
  if name not in ROBOTS:
    near = get_close_matches(name, ROBOTS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"no robot is named {name!r}; the robots are {sorted(ROBOTS)}.{hint}")
  return ROBOTS[name]
