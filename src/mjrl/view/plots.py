"""Live plots of the robot that is followed: its last seconds, in the page of `mjrl.view.web`."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray
from viser import uplot

from mjrl.view.controls import COMMAND
from mjrl.view.frame import Frame, Subject

SHOWN_S = 5.0
_EVERY_S = 0.1  # simulated, between two drawings: a browser has a robot to draw as well
_HEIGHT_PX = 180
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf")


@dataclass(frozen=True, kw_only=True)
class Plot:
  """Lines over time, each with a name; their numbers stand side by side in a frame's `row`."""

  title: str
  lines: tuple[str, ...]
  dashed: frozenset[str] = frozenset()
  low: float | None = None
  high: float | None = None


def plots(subject: Subject) -> tuple[Plot, ...]:
  """What is plotted, in the order in which `row` has its numbers."""
  asked = frozenset({"asked"})
  return (
    *(Plot(title=speed, lines=("asked", "got"), dashed=asked) for speed in COMMAND),
    Plot(
      title="feet on the ground",
      lines=subject.feet,
      low=-0.3,
      high=len(subject.feet),
    ),
    Plot(title="torque, N·m", lines=subject.joints),
    Plot(title="reward terms, weighted, per second", lines=subject.rewards),
  )


def row(frame: Frame) -> NDArray[np.float32]:
  """The numbers of a frame, plot after plot."""
  speeds = np.stack((frame.command, frame.velocity), 1).ravel()
  # A step per foot, one over the other, the first on top.
  steps = np.arange(len(frame.foot_contact))[::-1] + 0.7 * frame.foot_contact
  return np.concatenate((speeds, steps, frame.torque_n_m, frame.rewards)).astype(np.float32)


class History:
  """The rows of the last `SHOWN_S` of one env, at increasing times."""

  def __init__(self) -> None:
    """Start empty."""
    self._rows: deque[tuple[float, NDArray[np.float32]]] = deque()
    self._env: int | None = None

  def add(self, frame: Frame) -> None:
    """Add a frame; another env begins anew, and a moment that is there already adds nothing."""
    if frame.envs[0] != self._env or (self._rows and frame.time_s < self._rows[-1][0]):
      self._rows.clear()
      self._env = frame.envs[0]
    if self._rows and frame.time_s == self._rows[-1][0]:
      return
    self._rows.append((frame.time_s, row(frame)))
    while frame.time_s - self._rows[0][0] > SHOWN_S:
      self._rows.popleft()

  def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Times (T,) s, and rows (T, numbers)."""
    return np.array([t for t, _ in self._rows]), np.stack([values for _, values in self._rows])


class Charts:
  """The plots in a page."""

  def __init__(self, gui: viser.GuiApi, subject: Subject) -> None:
    """Add them to the part of the page that is open."""
    self._history, self._next_s = History(), 0.0
    self._charts: list[tuple[Any, int]] = []
    for plot in plots(subject):
      with gui.add_folder(plot.title, expand_by_default=len(self._charts) < 4):
        self._charts.append((_chart(gui, plot), len(plot.lines)))

  def add(self, frame: Frame) -> None:
    """Take a frame in, and draw now and then."""
    self._history.add(frame)
    if 0 < self._next_s - frame.time_s <= _EVERY_S:
      return
    self._next_s = frame.time_s + _EVERY_S
    times, rows = self._history.arrays()
    first = 0
    for chart, count in self._charts:
      chart.data = (times, *rows[:, first : first + count].astype(np.float64).T)
      first += count


def _chart(gui: viser.GuiApi, plot: Plot) -> Any:
  series: Sequence[uplot.Series] = [
    uplot.Series(
      label=name,
      stroke=_COLORS[k % len(_COLORS)],
      width=1.5,
      dash=(6, 4) if name in plot.dashed else (),
    )
    for k, name in enumerate(plot.lines)
  ]
  scales = {"x": uplot.Scale(time=False)}
  if plot.low is not None and plot.high is not None:
    scales["y"] = uplot.Scale(auto=False, range=(plot.low, plot.high))
  empty = np.zeros(1)
  return gui.add_uplot(
    data=(empty, *(empty for _ in plot.lines)),
    series=(uplot.Series(label="s"), *series),
    scales=scales,
    height=_HEIGHT_PX,
  )
