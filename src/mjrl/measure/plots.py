"""measure.png: one page that shows what the robot did, readable at a glance."""

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from mjrl.learn.atomic import write_bytes
from mjrl.measure import panels
from mjrl.measure.excerpt import Excerpt, excerpt
from mjrl.measure.measured import Measured, MeasuredSegment
from mjrl.measure.panels import Series

DPI = 110
_ROW_IN = 1.6  # height of a row of the tracking beyond the third
_HEADING = {"x": 0.01, "ha": "left", "fontsize": 11, "fontweight": "bold"}
_LEGEND = {"ncols": 8, "fontsize": 9, "frameon": False}


def write_png(path: Path, measured: Measured) -> None:
  """Draw the page into a file, without a display."""
  image = io.BytesIO()
  FigureCanvasAgg(page(measured)).print_png(image)
  write_bytes(path, image.getvalue())


def page(measured: Measured) -> Figure:
  """Tracking over the whole series, and a stretch of it: the gait and every joint."""
  tracked = _tracked(measured)
  more_in = _ROW_IN * max(len(tracked) - 3, 0)
  figure = Figure(figsize=(16, 20 + more_in), dpi=DPI, layout="constrained")
  figure.suptitle(_title(measured), fontsize=13, x=0.01, ha="left", linespacing=1.4)
  parts = figure.subfigures(
    3, 1, height_ratios=[5.1 + more_in, 6.8, 8.1], hspace=0.03, squeeze=False
  )
  top, middle, bottom = parts[:, 0]
  shown = excerpt(measured)
  _tracking(top, measured, tracked)
  _gait(middle, measured, shown)
  _joints(bottom, measured, shown)
  return figure


def limbs(joints: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
  """Limb to its (joint, short name), by what stands before the last underscore of the names.

  All joints make one limb where the names do not group them.
  """
  grouped: dict[str, list[tuple[str, str]]] = {}
  for joint in joints:
    limb, _, short = joint.rpartition("_")
    grouped.setdefault(limb, []).append((joint, short))
  if max(map(len, grouped.values())) == 1:
    return {"all joints": [(joint, joint) for joint in joints]}
  return grouped


def _title(measured: Measured) -> str:
  about = measured.circumstances
  driver = f"agent {about.agent}"
  if about.checkpoint:
    path = Path(about.checkpoint)
    driver = f"{path.parent.name}/{path.name} (iteration {about.iteration})"
  noise = "on" if about.observation_noise else "off"
  return (
    f"{about.task}: {shorten(driver, 90)}\n"
    f"{about.backend}, physics {about.physics_hz:g} Hz, control {about.control_hz:g} Hz, "
    f"observation noise {noise}, {about.num_envs} env{'s' * (about.num_envs > 1)}"
  )


def _tracked(measured: Measured) -> list[tuple[Callable[[MeasuredSegment], Series], str]]:
  """What is drawn as commanded against achieved: a series of each segment, and its label."""
  sideways = any(part.segment.command[1] for part in measured.segments)
  axes = [(0, "forward (m/s)"), (1, "left (m/s)"), (2, "turn (rad/s)")]
  shown = [
    (partial(panels.velocity, component=k), label) for k, label in axes if k != 1 or sideways
  ]
  if any(part.posture_mean is not None for part in measured.segments):
    labels = ("twist (°)", "pitch (°)", "roll (°)", "height (mm)")
    shown += [(partial(panels.posture, component=k), label) for k, label in enumerate(labels)]
  return shown


def _tracking(
  into: SubFigure,
  measured: Measured,
  shown: Sequence[tuple[Callable[[MeasuredSegment], Series], str]],
) -> None:
  grid = into.add_gridspec(len(shown), 2, width_ratios=[2, 1])
  plots = [into.add_subplot(grid[row, 0]) for row in range(len(shown))]
  for ax, (series, label) in zip(plots, shown, strict=True):
    panels.tracking(ax, measured, series, label)
    ax.sharex(plots[-1])
    ax.tick_params(labelbottom=ax is plots[-1])
  panels.name_segments(plots[0], measured)
  plots[0].legend(loc="lower left", ncols=3, fontsize=8, framealpha=0.9)
  plots[-1].set_xlabel("simulated time (s)")
  panels.table(into.add_subplot(grid[:, 1]), measured)


def _gait(into: SubFigure, measured: Measured, shown: Excerpt) -> None:
  into.suptitle(f"Feet in env 0: {shown.label}", **_HEADING)
  grid = into.add_gridspec(3, 2, width_ratios=[2, 1], height_ratios=[1.2, 1, 1])
  plots = [into.add_subplot(grid[row, 0]) for row in range(3)]
  panels.gait_diagram(plots[0], shown, measured.feet)
  panels.feet(plots[1], shown, measured.feet, "height", "lowest point (mm)", 1000)
  panels.feet(plots[2], shown, measured.feet, "force", "ground force (N)", 1)
  panels.ground(plots[1])
  for ax in plots:
    ax.set_xlim(shown.time_s[0] - measured.dt_s, shown.time_s[-1])
    ax.tick_params(labelbottom=ax is plots[-1])
  plots[-1].set_xlabel("simulated time (s)")
  panels.foot_bars(into.add_subplot(grid[:2, 1]), shown.part, measured.feet)
  panels.torque_bars(into.add_subplot(grid[2, 1]), shown.part, measured)


def _joints(into: SubFigure, measured: Measured, shown: Excerpt) -> None:
  into.suptitle(f"Joints in env 0: {shown.label}", **_HEADING)
  groups = limbs(measured.joints)
  plots = into.subplots(3, len(groups), sharex=True, sharey="row", squeeze=False)
  for column, (limb, joints) in enumerate(groups.items()):
    position, speed, torque = plots[:, column]
    panels.joints(position, shown, "pos", joints)
    panels.joint_limits(position, measured, joints)
    panels.joints(speed, shown, "vel", joints)
    panels.joints(torque, shown, "tau", joints)
    panels.effort_limit(torque, measured.circumstances.effort_limit_n_m)
    position.set_title(limb, fontsize=10, fontweight="bold")
    torque.set_xlabel("simulated time (s)", fontsize=8)
  for ax, label in zip(
    plots[:, 0], ("position (rad)", "velocity (rad/s)", "torque (N·m)"), strict=True
  ):
    ax.set_ylabel(label)
  longest = max(groups.values(), key=len)
  into.legend(handles=panels.joint_handles(longest), loc="upper right", **_LEGEND)
  plots[0, 0].legend(handles=panels.limit_handles("range"), loc="lower left", fontsize=7)
  plots[2, 0].legend(handles=panels.limit_handles("effort limit"), loc="lower left", fontsize=7)
