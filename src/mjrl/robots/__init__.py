"""The robots, by name. Imports neither a simulator nor a learner, so listing them is quick."""

from mjrl.names import nearest
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
    raise ValueError(f"there is no robot {name!r}; {nearest(name, ROBOTS)}")
  return ROBOTS[name]
