"""The lines that a report would quote, for the console."""

from collections.abc import Sequence
from math import degrees

from mjrl.measure.figures import SegmentFigures, Tracking
from mjrl.measure.measured import Measured, MeasuredSegment
from mjrl.measure.statistics import Spread

NOT_MEASURED = "-"


def report(measured: Measured) -> str:
  """What was measured, in about ten lines."""
  return "\n".join([*circumstances(measured), *_in_blocks(rows(measured)), *warnings(measured)])


def circumstances(measured: Measured) -> list[str]:
  """Who drove what, where, for how long, and with what noise: two lines."""
  about = measured.circumstances
  length_s = measured.dt_s * measured.segments[0].figures.steps
  driver = about.checkpoint or f"agent {about.agent}"
  iteration = "" if about.iteration is None else f" (iteration {about.iteration})"
  return [
    f"{about.task} on {about.backend}: {driver}{iteration}",
    f"{about.num_envs} envs, {length_s:g} s each command, the first {about.settle_s:g} s left out; "
    f"physics {about.physics_hz:g} Hz, control {about.control_hz:g} Hz, observation noise "
    f"{'on' if about.observation_noise else 'off'}, seed {about.seed}",
    *([f"scene {about.scene['name']}: {about.scene['physics']}"] if about.scene["physics"] else []),
  ]


def rows(measured: Measured) -> list[tuple[str, ...]]:
  """The table: a label, and a cell for each command; the commands themselves first."""
  postured = any(part.figures.posture for part in measured.segments)
  labels = _LABELS[:3] + (_POSTURE if postured else ()) + _LABELS[3:]
  columns = [
    (*_column(part)[:3], *_posture(part), *_column(part)[3:]) for part in measured.segments
  ]
  return list(zip(labels, *columns, strict=True))


def warnings(measured: Measured) -> list[str]:
  """What the table does not say of what went wrong, a line each."""
  lines = []
  for figures in (part.figures for part in measured.segments):
    if figures.diverged:
      lines.append(f"{figures.name}: the simulation diverged {figures.diverged} time(s)")
    if figures.counted_share == 0:
      lines.append(f"{figures.name}: no episode lasted long enough for anything to count")
  return lines


def _in_blocks(table: Sequence[Sequence[str]]) -> list[str]:
  """A table's lines, its columns in blocks that a wide terminal holds."""
  lines = []
  for first in range(1, len(table[0]), _ABREAST):
    block = [(row[0], *row[first : first + _ABREAST]) for row in table]
    lines += [""] * bool(lines) + aligned(block)
  return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """Columns of equal width, the first to the left, the others to the right."""
  first, *others = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], others)]).rstrip() for row in rows
  ]


def asked(part: MeasuredSegment) -> list[tuple[Tracking, str]]:
  """The components that the command is about, with their units; none where it asks to stand."""
  figures = part.figures
  axes = (
    (figures.forward_m_s, "m/s"),
    (figures.left_m_s, "m/s"),
    (figures.yaw_rad_s, "rad/s"),
  )
  return [] if part.segment.standing else [axis for axis in axes if axis[0].commanded]


def ratios(part: MeasuredSegment) -> str:
  """Achieved of commanded, of each component that was commanded."""
  return ", ".join(percent(axis.ratio) for axis, _ in asked(part)) or NOT_MEASURED


def percent(value: float | None) -> str:
  """A share or a ratio."""
  return NOT_MEASURED if value is None else f"{round(100 * value)} %"


_LABELS = (
  "command",
  "achieved, ± over envs",
  "achieved of commanded",
  "drift",
  "falls",
  "foot lift / over ground",
  "clock: worst foot",
  "clock: all feet, ±1 step",
  "duty",
  "slip of feet on ground",
  "cost of transport",
  "peak torque, at limit",
  "greatest tilt",
)


_POSTURE = ("twist of asked", "pitch of asked", "roll of asked", "height of asked")
_ABREAST = 5  # commands side by side


def _posture(part: MeasuredSegment) -> tuple[str, ...]:
  """What `_POSTURE` name, of one command; nothing in a task that asks for none."""
  figures = part.figures.posture
  if figures is None:
    return ()
  angles = (figures.twist_rad, figures.pitch_rad, figures.roll_rad)
  return (
    *(_reached(angle, degrees(1), "°", "+.1f") for angle in angles),
    _reached(figures.height_m, 1000, " mm", ".0f"),
  )


def _reached(axis: Tracking, factor: float, unit: str, form: str) -> str:
  asked = f"{factor * axis.commanded:{form}}{unit}"
  return f"{factor * axis.achieved.mean:{form}} of {asked}" if axis.achieved else NOT_MEASURED


def _column(part: MeasuredSegment) -> tuple[str, ...]:
  """What `_LABELS` name, of one command."""
  figures, feet = part.figures, part.figures.all_feet
  clocks = [foot.clock_match.mean for foot in figures.feet.values() if foot.clock_match]
  tilt = figures.tilt_rad.greatest
  return (
    figures.name,
    ", ".join(_achieved(*axis) for axis in asked(part)) or NOT_MEASURED,
    ratios(part),
    _scaled(figures.drift_m_s, 100, "cm/s", 1),
    str(figures.falls),
    f"{_scaled(feet.lift_m, 1000, '', 0)} / {_scaled(feet.clearance_m, 1000, '', 0)} mm"
    if feet.lift_m
    else NOT_MEASURED,
    percent(min(clocks, default=None)),
    percent(figures.clock_match_lenient.mean if figures.clock_match_lenient else None),
    percent(feet.duty.mean if feet.duty else None),
    _scaled(feet.slip_m_s, 100, "cm/s", 1),
    _scaled(figures.cost_of_transport, 1, "", 2),
    _torque(figures),
    NOT_MEASURED if tilt is None else f"{degrees(tilt):.1f}°",
  )


def _torque(figures: SegmentFigures) -> str:
  """The hardest worked joint's peak, and the greatest share of time at the limit of any."""
  peaks = [j.peak_torque_n_m for j in figures.joints.values() if j.peak_torque_n_m is not None]
  limit = [j.share_at_limit for j in figures.joints.values() if j.share_at_limit is not None]
  return f"{max(peaks):.2f} N·m, {100 * max(limit):.1f} %" if peaks else NOT_MEASURED


def _achieved(axis: Tracking, unit: str) -> str:
  got = axis.achieved
  return NOT_MEASURED if got is None else f"{got.mean:+.3f} ±{got.std:.3f} {unit}"


def _scaled(figure: Spread | None, factor: float, unit: str, digits: int) -> str:
  return NOT_MEASURED if figure is None else f"{factor * figure.mean:.{digits}f} {unit}".rstrip()
