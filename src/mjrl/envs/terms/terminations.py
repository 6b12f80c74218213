"""Termination rows.  Each returns (N,) bool: the episode ends in failure."""

from math import sin

from torch import Tensor

from mjrl.envs.state import State


def fell_over(s: State, *, max_tilt_rad: float) -> Tensor:
  """The base leans by more than an angle below a right one, or is upside down.  (N,) bool."""
  return (s.tilt_sin_square > sin(max_tilt_rad) ** 2) | (s.up_b[:, 2] < 0)
