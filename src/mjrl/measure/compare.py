"""The same policy measured on two engines: what differs, and whether more than the envs do."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import degrees, hypot, sqrt
from pathlib import Path
from typing import Any, NamedTuple

from mjrl.learn.atomic import write_bytes
from mjrl.measure.figures import SegmentFigures, Tracking
from mjrl.measure.files import COMMAND
from mjrl.measure.measured import Measured
from mjrl.measure.report import NOT_MEASURED, aligned
from mjrl.measure.statistics import Spread

SCHEMA = "mjrl/compare/1"
_DEFINITIONS = {
  "first, other": "The figure on the first and on the other of engines, as in measure.json; null "
  "means not measured, or without meaning for this command.",
  "difference": "other - first.",
  "two_standard_errors": "Of the difference, the envs of both engines being taken as independent: "
  "2 sqrt(a^2 + b^2), where a and b are std / sqrt(envs - 1) on each; of falls, which are a count, "
  "the square root.  null where a single env has the figure.",
  "within": "Whether the difference is no greater than two_standard_errors.  Of figures that do "
  "not differ, at most about one in 20 is outside by chance; fewer where both engines drew the "
  "same envs.",
  "within_count, compared_count": "Differences that are within, and of how many: without ratios, "
  "which repeat what was achieved, and without figures that are one number in all envs.",
}


class Value(NamedTuple):
  """A figure and its standard error, which is None where a single env has the figure."""

  value: float
  error: float | None


@dataclass(frozen=True, kw_only=True)
class Figure:
  """A figure that is compared.

  key     where it stands in a segment of measure.json
  factor  from SI to the unit of the label
  """

  key: str
  label: str
  factor: float
  digits: int
  read: Callable[[SegmentFigures], Value | None]


@dataclass(frozen=True, kw_only=True)
class Gap:
  """A figure of one command on both engines; one that neither has is left out."""

  figure: Figure
  first: Value | None
  other: Value | None

  @property
  def difference(self) -> float | None:
    """Other less first."""
    if self.first is None or self.other is None:
      return None
    return self.other.value - self.first.value

  @property
  def two_standard_errors(self) -> float | None:
    """Of the difference."""
    errors = [side.error for side in (self.first, self.other) if side and side.error is not None]
    return 2 * hypot(*errors) if len(errors) == 2 else None

  @property
  def within(self) -> bool | None:
    """Whether the difference is no greater than that; None where one of the two is not known."""
    difference, allowed = self.difference, self.two_standard_errors
    return None if difference is None or allowed is None else abs(difference) <= allowed


def value(over_envs: Spread | None) -> Value | None:
  """A mean over envs, and its standard error."""
  if over_envs is None:
    return None
  error = over_envs.std / sqrt(over_envs.envs - 1) if over_envs.envs > 1 else None
  return Value(over_envs.mean, error)


def _tracked(name: str, unit: str, read: Callable[[SegmentFigures], Tracking]) -> list[Figure]:
  """What was achieved of a component, where it was commanded, and its ratio to the command."""

  def achieved(figures: SegmentFigures) -> Value | None:
    axis = read(figures)
    return value(axis.achieved) if axis.commanded else None

  def ratio(figures: SegmentFigures) -> Value | None:
    got, asked = achieved(figures), read(figures).commanded
    if got is None:
      return None
    return Value(got.value / asked, None if got.error is None else got.error / abs(asked))

  key = f"{name}_{unit.replace('/', '_')}"
  return [
    Figure(key=f"{key}.achieved", label=f"{name}, {unit}", factor=1, digits=3, read=achieved),
    Figure(key=f"{key}.ratio", label="  of commanded, %", factor=100, digits=1, read=ratio),
  ]


def _posture(number: str, label: str, factor: float) -> Figure:
  """What was achieved of a number of the posture, in a task that asks for one."""

  def read(figures: SegmentFigures) -> Value | None:
    return value(getattr(figures.posture, number).achieved) if figures.posture else None

  key = f"posture.{number}.achieved"
  return Figure(key=key, label=label, factor=factor, digits=1, read=read)


FIGURES = (
  *_tracked("forward", "m/s", lambda f: f.forward_m_s),
  *_tracked("left", "m/s", lambda f: f.left_m_s),
  *_tracked("yaw", "rad/s", lambda f: f.yaw_rad_s),
  *(_posture(f"{name}_rad", f"{name}, °", degrees(1)) for name in ("twist", "pitch", "roll")),
  _posture("height_m", "height, mm", 1000),
  Figure(
    key="drift_m_s", label="drift, cm/s", factor=100, digits=2, read=lambda f: value(f.drift_m_s)
  ),
  Figure(
    key="falls", label="falls", factor=1, digits=0, read=lambda f: Value(f.falls, sqrt(f.falls))
  ),
  Figure(
    key="clock_match_lenient",
    label="clock: all feet, ±1 step, %",
    factor=100,
    digits=1,
    read=lambda f: value(f.clock_match_lenient),
  ),
  Figure(
    key="all_feet.lift_m",
    label="foot lift, mm",
    factor=1000,
    digits=1,
    read=lambda f: value(f.all_feet.lift_m),
  ),
  Figure(
    key="all_feet.slip_m_s",
    label="slip, cm/s",
    factor=100,
    digits=2,
    read=lambda f: value(f.all_feet.slip_m_s),
  ),
  Figure(
    key="cost_of_transport",
    label="cost of transport",
    factor=1,
    digits=3,
    read=lambda f: value(f.cost_of_transport),
  ),
)


def gaps(first: Measured, other: Measured) -> list[list[Gap]]:
  """What differs, for each command."""
  pairs = zip(first.segments, other.segments, strict=True)
  return [
    [
      Gap(figure=figure, first=one, other=two)
      for figure in FIGURES
      for one, two in [(figure.read(a.figures), figure.read(b.figures))]
      if one is not None or two is not None
    ]
    for a, b in pairs
  ]


def table(first: Measured, other: Measured) -> str:
  """The gap between the engines for the console, a block for each command."""
  engines = [measured.circumstances.backend for measured in (first, other)]
  rows = [("", *engines, "difference", "2 std errors", "")]
  found = gaps(first, other)
  for part, of_command in zip(first.segments, found, strict=True):
    rows.append((part.segment.name, "", "", "", "", ""))
    rows += [_row(gap) for gap in of_command]
  inside, known = _count(found)
  about = first.circumstances
  return "\n".join(
    [
      f"from {engines[0]} to {engines[1]}: {about.num_envs} envs each, seed {about.seed}",
      *aligned(rows),
      f"{inside} of {known} differences are within two standard errors; by chance alone, at most "
      "about one in 20 is not",
    ]
  )


def write_compare(path: Path, first: Measured, other: Measured) -> None:
  """The same as JSON, in SI units."""
  text = json.dumps(as_plain(first, other), indent=2, allow_nan=False, ensure_ascii=False)
  write_bytes(path, (text + "\n").encode())


def as_plain(first: Measured, other: Measured) -> dict[str, Any]:
  """What compare.json holds."""
  about, found = first.circumstances, gaps(first, other)
  inside, known = _count(found)
  segments = [
    {
      "number": number,
      "name": part.segment.name,
      "command": dict(zip(COMMAND, part.segment.command, strict=True)),
      "steps": part.figures.steps,
      "figures": {gap.figure.key: _plain(gap) for gap in of_command},
    }
    for number, (part, of_command) in enumerate(zip(first.segments, found, strict=True))
  ]
  return {
    "schema": SCHEMA,
    "task": about.task,
    "agent": about.agent,
    "checkpoint": about.checkpoint,
    "iteration": about.iteration,
    "engines": [about.backend, other.circumstances.backend],
    "devices": [about.device, other.circumstances.device],
    "num_envs": about.num_envs,
    "seed": about.seed,
    "versions": dict(about.versions),
    "within_count": inside,
    "compared_count": known,
    "segments": segments,
    "definitions": _DEFINITIONS,
  }


def _plain(gap: Gap) -> dict[str, Any]:
  return {
    "first": gap.first.value if gap.first else None,
    "other": gap.other.value if gap.other else None,
    "difference": gap.difference,
    "two_standard_errors": gap.two_standard_errors,
    "within": gap.within,
  }


def _count(found: list[list[Gap]]) -> tuple[int, int]:
  """How many differences are within, of how many.

  A ratio is not another difference, and no falls on either engine are no sign of agreement.
  """
  known = [
    gap.within
    for of_command in found
    for gap in of_command
    if gap.within is not None and not gap.figure.key.endswith(".ratio")
    if gap.difference or gap.two_standard_errors
  ]
  return sum(known), len(known)


def _row(gap: Gap) -> tuple[str, ...]:
  figure = gap.figure

  def said(number: float | None, sign: str) -> str:
    scaled = None if number is None else figure.factor * number
    return NOT_MEASURED if scaled is None else f"{scaled:{sign}z.{figure.digits}f}"

  allowed = gap.two_standard_errors
  verdict = {True: "within", False: "OUTSIDE", None: ""}[gap.within]
  return (
    f"  {figure.label}",
    said(gap.first.value if gap.first else None, ""),
    said(gap.other.value if gap.other else None, ""),
    said(gap.difference, "+"),
    NOT_MEASURED if allowed is None else f"±{said(allowed, '')}",
    "on one only" if gap.difference is None else verdict,
  )
