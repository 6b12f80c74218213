"""Means over the control steps that count, and their spread over the envs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Spread:
  """Mean and standard deviation over the envs that have the figure, and how many have it."""

  mean: float
  std: float
  envs: int


def spread(per_env: Array) -> Spread | None:
  """Over (N,) envs, leaving out those without the figure (NaN); None if none has it."""
  known = per_env[np.isfinite(per_env)]
  if not known.size:
    return None
  return Spread(mean=float(known.mean()), std=float(known.std()), envs=known.size)


def counted_steps(ended: Array, settle_steps: int) -> Array:
  """Which control steps count.  (T, N) bool.

  All but the first settle_steps of each episode, and but the step in which an episode ended: the
  robot is down there, or already somewhere else.

  ended  (T, N) bool: the episode ended in this step, so the next step is the first of another.
  """
  age = np.zeros(ended.shape[1], np.int64)
  counted = np.zeros(ended.shape, bool)
  for step, over in enumerate(ended):
    counted[step] = (age >= settle_steps) & ~over
    age = np.where(over, 0, age + 1)
  return counted


def mean_over_time(values: Array, counted: Array) -> Array:
  """Mean of values (T, N, ...) over the steps where counted (broadcast) holds.  (N, ...) float64.

  NaN where no step counts.
  """
  shape = counted.shape + (1,) * (values.ndim - counted.ndim)
  mask = np.broadcast_to(counted.reshape(shape), values.shape)
  number = mask.sum(0)
  total = np.where(mask, values, 0).sum(0, dtype=np.float64)
  return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)
