"""The stretch of a measured replay that the pictures of the gait show."""

from dataclasses import dataclass

import numpy as np

from mjrl.measure.measured import Measured, MeasuredSegment
from mjrl.measure.statistics import Array

LENGTH_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Excerpt:
  """The end of a segment, in env 0.

  time_s   (T,) of the whole series
  series   column to (T,)
  """

  label: str
  part: MeasuredSegment
  dt_s: float
  time_s: Array
  series: dict[str, Array]


def excerpt(measured: Measured) -> Excerpt:
  """The last seconds of the segment with the greatest forward command, when the gait is steady."""
  number = max(range(len(measured.segments)), key=lambda k: measured.segments[k].segment.command[0])
  part = measured.segments[number]
  steps = min(len(part.env0), round(LENGTH_S / measured.dt_s))
  end = measured.starts[number + 1]
  return Excerpt(
    label=f"the last {steps * measured.dt_s:.3g} s of '{part.segment.name}'",
    part=part,
    dt_s=measured.dt_s,
    time_s=measured.dt_s * np.arange(end - steps + 1, end + 1),
    series={name: part.env0[-steps:, k] for k, name in enumerate(measured.columns)},
  )
