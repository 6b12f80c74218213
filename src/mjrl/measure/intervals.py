"""Means with the interval that they are known to: Student's t, at 95 %."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from mjrl.measure.statistics import Array

CONFIDENCE = 0.95
METHOD = "95 % confidence interval of the mean, by Student's t over the envs"
_EXACT = {1: 12.7062, 2: 4.3027}  # where the series below is off by more than 1 %


@dataclass(frozen=True, kw_only=True)
class Estimate:
  """A mean, known to +- half_width.

  half_width  None where nothing can be said about it
  envs        that it is over
  """

  mean: float
  half_width: float | None
  envs: int

  @property
  def certain(self) -> bool:
    """Whether zero lies outside of the interval."""
    return self.half_width is not None and abs(self.mean) > self.half_width


def over_envs(values: Array) -> Estimate | None:
  """Of (R,) envs, leaving out those without the figure (NaN); None if none has it."""
  known = values[np.isfinite(values)]
  if not known.size:
    return None
  half = None
  if known.size > 1:
    half = student_t(known.size - 1) * float(known.std(ddof=1)) / sqrt(known.size)
  return Estimate(mean=float(known.mean()), half_width=half, envs=known.size)


def over_cells(values: Array) -> Estimate | None:
  """The mean of the cells' means, each counting alike; (C, R), NaN where an env has no figure.

  Cells differ from one another because they are asked for different things: only what envs of the
  same cell differ by makes the mean uncertain.  Cells in which less than two envs have the figure
  are left out.  Degrees of freedom: Welch and Satterthwaite.
  """
  cells = [row[np.isfinite(row)] for row in values]
  cells = [row for row in cells if row.size > 1]
  if not cells:
    return None
  variance = np.array([row.var(ddof=1) / row.size for row in cells])  # of each cell's mean
  freedom = np.array([row.size - 1 for row in cells])
  total = float(variance.sum())
  half = 0.0
  if total > 0:
    degrees = total**2 / float((variance**2 / freedom).sum())
    half = student_t(degrees) * sqrt(total) / len(cells)
  mean = float(np.mean([row.mean() for row in cells]))
  return Estimate(mean=mean, half_width=half, envs=sum(row.size for row in cells))


def student_t(degrees: float) -> float:
  """The factor on a standard error that makes a two-sided interval of `CONFIDENCE`.

  The series of Cornish and Fisher in 1/degrees.
  """
  if (whole := int(degrees)) in _EXACT:
    return _EXACT[whole]  # of the next lower whole number: rather too wide than too narrow
  z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
  terms = (
    z,
    (z**3 + z) / 4,
    (5 * z**5 + 16 * z**3 + 3 * z) / 96,
    (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
  )
  return sum(term / degrees**power for power, term in enumerate(terms))
