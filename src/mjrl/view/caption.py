"""What is written on a picture of a robot that is asked for a velocity."""

from collections import deque

import numpy as np

from mjrl.view.film import Array

_MEAN_S = 0.5


class Captions:
  """Lines of the command and of the velocity, the latter averaged so that it can be read."""

  def __init__(self, dt_s: float, names: list[str]) -> None:
    """Of robots with these names, in control steps of dt_s."""
    self._dt_s, self._names = dt_s, names
    self._recent: deque[Array] = deque(maxlen=max(round(_MEAN_S / dt_s), 1))

  def add(self, velocity: Array) -> None:
    """Take note of a control step: forward m/s, left m/s, counter-clockwise rad/s, (K, 3)."""
    self._recent.append(velocity)

  def lines(self, time_s: float, command: Array | None) -> list[list[str]]:
    """The lines of every robot.

    Args:
      time_s: simulated.
      command: (K, 3) in the units of the velocity; None where none is asked for.
    """
    velocity = np.mean(self._recent, 0)
    lines = [[f"{name}{time_s:6.1f} s", _HEADER] for name in self._names]
    for k, of_robot in enumerate(lines):
      if command is not None:
        of_robot.append(_row("asked", command[k]))
      of_robot.append(_row("is", velocity[k]))
    return lines


def _row(name: str, values: Array) -> str:
  return f"{name:<5}" + "".join(f"{round(float(value), 2) + 0.0:+8.2f}" for value in values)


_HEADER = f"{'':<5}{'forward':>8}{'left':>8}{'turn':>8}"
