"""The panels of measure.png.  Each draws into the axes that it is given."""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from math import degrees

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from mjrl.envs.posture import POSTURE
from mjrl.measure.excerpt import Excerpt
from mjrl.measure.figures import PostureFigures
from mjrl.measure.measured import Measured, MeasuredSegment
from mjrl.measure.report import NOT_MEASURED, percent, ratios
from mjrl.measure.statistics import Array

# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_NAMES_IN_LINE = 7  # commands whose names fit side by side
INK, FAINT, LIMIT = "#222222", "#bbbbbb", "#c1121f"


Series = tuple[Array, Array, float]
"""Mean over envs and standard deviation, (T,) each, and what was asked."""


def velocity(part: MeasuredSegment, component: int) -> Series:
  """One component of the velocity."""
  asked = part.segment.command[component]
  return part.velocity_mean[:, component], part.velocity_std[:, component], asked


def posture(part: MeasuredSegment, component: int) -> Series:
  """One number of the posture, in degrees or mm."""
  factor = 1000.0 if POSTURE[component] == "height_m" else degrees(1)
  mean, std, asked = part.posture_mean, part.posture_std, part.segment.posture
  assert mean is not None and std is not None and asked is not None  # of a task that asks for one
  return factor * mean[:, component], factor * std[:, component], factor * asked[component]


def tracking(
  ax: Axes, measured: Measured, series: Callable[[MeasuredSegment], Series], label: str
) -> None:
  """Commanded against achieved, mean over envs with a band of one standard deviation."""
  starts = measured.starts
  for part, first in zip(measured.segments, starts, strict=False):
    time_s = measured.dt_s * (first + np.arange(1, len(part.env0) + 1))
    mean, std, commanded = series(part)
    named = first == 0  # once in the legend
    ax.fill_between(
      time_s,
      mean - std,
      mean + std,
      color=COLOURS[0],
      alpha=0.25,
      linewidth=0,
      label="±1 std over envs" if named else None,
    )
    ax.plot(time_s, mean, color=COLOURS[0], lw=1.2, label="achieved, mean" if named else None)
    ends = [time_s[0] - measured.dt_s, time_s[-1]]
    ax.plot(ends, [commanded] * 2, color=INK, lw=1.6, ls="--", label="commanded" if named else None)
  for number, (first, last) in enumerate(pairwise(starts)):
    if number % 2:
      ax.axvspan(first * measured.dt_s, last * measured.dt_s, color="black", alpha=0.05, lw=0)
  ax.set_xlim(0, starts[-1] * measured.dt_s)
  ax.set_ylabel(label)
  _tidy(ax)


def name_segments(ax: Axes, measured: Measured) -> None:
  """The commands above the axes, each over its segment."""
  starts = measured.starts
  many = len(measured.segments) > _NAMES_IN_LINE
  for part, first, last in zip(measured.segments, starts[:-1], starts[1:], strict=True):
    middle_s = measured.dt_s * (first + last) / 2
    ax.text(
      middle_s,
      1.02,
      part.segment.name.replace(", ", "\n") if many else part.segment.name,
      transform=ax.get_xaxis_transform(),
      ha="left" if many else "center",
      va="bottom",
      rotation=60 if many else 0,
      fontsize=7.5 if many else 9,
    )


def table(ax: Axes, measured: Measured) -> None:
  """The figures that decide, a row per command."""
  ax.axis("off")
  rows = [_table_row(part) for part in measured.segments]
  header = ["command", "achieved\nof asked", "falls", "foot lift", "all feet\non clock"]
  widths = [2.1, 1.0, 0.7, 1.0, 1.0]
  if any(part.figures.posture for part in measured.segments):
    header, widths = [*header, "posture\nerror"], [*widths, 1.0]
    errors = [_posture_error(part.figures.posture) for part in measured.segments]
    rows = [[*row, error] for row, error in zip(rows, errors, strict=True)]
  drawn = ax.table(
    [header, *rows],
    cellLoc="center",
    bbox=Bbox.from_bounds(0.02, 0.1, 0.98, 0.85),
    colWidths=widths,
  )
  drawn.auto_set_font_size(False)
  drawn.set_fontsize(9.5)
  for (row, column), cell in drawn.get_celld().items():
    cell.visible_edges = "B"
    cell.set_edgecolor(INK if row == 0 else FAINT)
    if row == 0:
      cell.set_text_props(fontweight="bold")
    if column == 0:
      cell.set_text_props(ha="left")
      cell.PAD = 0.02
  ax.text(
    0.02,
    0.04,
    "means over envs; on clock: contacts as the gait clock wants,\n±1 control step at a switch",
    fontsize=8,
    va="center",
    transform=ax.transAxes,
  )


def gait_diagram(ax: Axes, shown: Excerpt, feet: Sequence[str]) -> None:
  """Bars where a foot is on the ground; a line below each where the clock wants it there."""
  clocked = f"clock/{feet[0]}" in shown.series
  for row, foot in enumerate(feet):
    colour = COLOURS[row % len(COLOURS)]
    down = _stretches(shown, shown.series[f"contact/{foot}"] > 0)
    ax.broken_barh(down, (row - 0.3, 0.5), color=colour)
    if clocked:
      wanted = _stretches(shown, shown.series[f"clock/{foot}"] > 0)
      ax.broken_barh(wanted, (row + 0.27, 0.12), color=INK)
  ax.set_yticks(range(len(feet)), feet)
  for row, name in enumerate(ax.get_yticklabels()):
    name.set(color=COLOURS[row % len(COLOURS)], fontweight="bold")
  ax.set_ylim(len(feet) - 0.4, -0.5)
  ax.grid(axis="x", color=FAINT, lw=0.4)
  ax.spines[["top", "right", "left"]].set_visible(False)
  said = "bar: foot on the ground" + ("; black line: the gait clock wants it there" * clocked)
  ax.set_title(said, fontsize=9, loc="right")


def feet(
  ax: Axes, shown: Excerpt, names: Sequence[str], kind: str, label: str, factor: float
) -> None:
  """One quantity of every foot."""
  for row, foot in enumerate(names):
    colour = COLOURS[row % len(COLOURS)]
    ax.plot(shown.time_s, factor * shown.series[f"{kind}/{foot}"], color=colour, lw=1.1, label=foot)
  ax.set_ylabel(label)
  _tidy(ax)


def ground(ax: Axes) -> None:
  """The ground in a panel of heights."""
  ax.axhline(0, color=INK, lw=1)
  ax.text(1, 0, " ground", transform=ax.get_yaxis_transform(), fontsize=8, va="center")


def foot_bars(ax: Axes, part: MeasuredSegment, names: Sequence[str]) -> None:
  """Clock match and duty of each foot, over all envs."""
  figures = part.figures.feet
  for row, foot in enumerate(names):
    duty, match = figures[foot].duty, figures[foot].clock_match
    if match:
      ax.barh(row, 100 * match.mean, 0.6, color=COLOURS[row % len(COLOURS)], alpha=0.85)
      ax.text(2, row, f"{100 * match.mean:.0f} %", va="center", color="white", fontweight="bold")
    if duty:
      ax.plot(100 * duty.mean, row, marker="D", ms=7, mfc="white", mec=INK, ls="")
  ax.set_xlim(0, 100)
  ax.set_ylim(len(names) - 0.4, -0.6)
  ax.set_yticks(range(len(names)), names)
  ax.set_xlabel("share of control steps (%)")
  ax.set_title("bar: contact as the clock wants;  ◇ duty, all envs", fontsize=9)
  ax.spines[["top", "right"]].set_visible(False)


def torque_bars(ax: Axes, part: MeasuredSegment, measured: Measured) -> None:
  """Peak and root mean square torque of each joint, over all envs, under the effort limit."""
  figures = [part.figures.joints[joint] for joint in measured.joints]
  place = range(len(figures))
  ax.bar(place, [f.peak_torque_n_m or 0 for f in figures], color=FAINT, label="peak")
  ax.bar(place, [f.rms_torque_n_m or 0 for f in figures], color=COLOURS[0], label="rms")
  ax.axhline(measured.circumstances.effort_limit_n_m, color=LIMIT, ls="--", lw=1, label="limit")
  ax.set_xticks(place, measured.joints, rotation=90, fontsize=7)
  ax.set_ylim(0, 1.35 * measured.circumstances.effort_limit_n_m)
  ax.set_ylabel("torque (N·m)")
  ax.legend(loc="upper right", ncols=3, fontsize=7)
  ax.spines[["top", "right"]].set_visible(False)


def joints(ax: Axes, shown: Excerpt, kind: str, names: Sequence[tuple[str, str]]) -> None:
  """One quantity of the joints of a limb."""
  for k, (joint, short) in enumerate(names):
    colour = COLOURS[k % len(COLOURS)]
    ax.plot(shown.time_s, shown.series[f"{kind}/{joint}"], color=colour, lw=1, label=short)
  ax.set_xlim(shown.time_s[0], shown.time_s[-1])
  ax.xaxis.set_major_locator(MaxNLocator(4))
  ax.tick_params(labelsize=8)
  _tidy(ax)


def joint_limits(ax: Axes, measured: Measured, names: Sequence[tuple[str, str]]) -> None:
  """The range of each joint, dotted in its colour."""
  for k, (joint, _) in enumerate(names):
    for limit in measured.joint_range_rad[joint]:
      ax.axhline(limit, color=COLOURS[k % len(COLOURS)], ls=":", lw=1)


def effort_limit(ax: Axes, limit_n_m: float) -> None:
  """What the servos can give."""
  for limit in (-limit_n_m, limit_n_m):
    ax.axhline(limit, color=LIMIT, ls="--", lw=1)


def joint_handles(names: Sequence[tuple[str, str]]) -> list[Line2D]:
  """What the legend says of a limb's joints."""
  return [
    Line2D([], [], color=COLOURS[k % len(COLOURS)], lw=2, label=short)
    for k, (_, short) in enumerate(names)
  ]


def limit_handles(label: str) -> list[Line2D]:
  """What the legend says of limits."""
  style = {"range": (":", INK)}.get(label, ("--", LIMIT))
  return [Line2D([], [], ls=style[0], color=style[1], lw=1, label=label)]


def _table_row(part: MeasuredSegment) -> list[str]:
  figures = part.figures
  lift, clock = figures.all_feet.lift_m, figures.clock_match_lenient
  achieved = ratios(part)
  if figures.drift_m_s:
    achieved = f"drift\n{100 * figures.drift_m_s.mean:.1f} cm/s"
  return [
    part.segment.name.replace(", ", "\n"),
    achieved,
    str(figures.falls),
    NOT_MEASURED if lift is None else f"{1000 * lift.mean:.0f} mm",
    percent(clock.mean if clock else None),
  ]


def _posture_error(figures: PostureFigures | None) -> str:
  """The greatest error of an angle, and that of the height."""
  if figures is None or figures.height_m.error is None:
    return NOT_MEASURED
  angles = (figures.twist_rad.error, figures.pitch_rad.error, figures.roll_rad.error)
  worst = max((angle for angle in angles if angle is not None), key=abs)
  return f"{degrees(worst):+.1f}°\n{1000 * figures.height_m.error:+.0f} mm"


def _stretches(shown: Excerpt, on: Array) -> list[tuple[float, float]]:
  """(start, length) in s of the runs of True; a step covers the time that led to it."""
  found, step = [], 0
  for value, run in groupby(on.tolist()):
    length = len(list(run))
    if value:
      found.append((float(shown.time_s[step]) - shown.dt_s, length * shown.dt_s))
    step += length
  return found


def _tidy(ax: Axes) -> None:
  ax.grid(color=FAINT, lw=0.4)
  ax.spines[["top", "right"]].set_visible(False)
