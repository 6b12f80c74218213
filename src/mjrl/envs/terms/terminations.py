"""Termination rows.  Each returns (N,) bool: the episode ends in failure."""

from math import cos

from torch import Tensor

from mjrl.envs.state import State


def fell_over(s: State, *, max_tilt_rad: float) -> Tensor:
  """The angle between the base's and the world's z is above the limit.  (N,) bool."""
  return s.up_b[:, 2] < cos(max_tilt_rad)
