"""The clock of a replay: real time, and the line that says how it goes."""

import sys
import time
from collections.abc import Sequence
from typing import TextIO

AVERAGED_S = 1.0
"""Time constant of the speeds in the status line, simulated: a gait sways within a stride."""
REST_S = 1 / 60
"""How long a paused replay sleeps before it looks again for what is asked of it."""


class Pace:
  """Holds simulated time to `speed` times real time; 0 is as fast as possible."""

  def __init__(self, speed: float, dt_s: float) -> None:
    """Start the clock, for control steps of dt_s."""
    self._speed, self._dt_s = speed, dt_s
    self._start_s = self._due_s = time.perf_counter()
    self._steps = 0

  def wait(self) -> None:
    """Count a control step, and sleep until it is due."""
    self._steps += 1
    if self._speed:
      self._due_s += self._dt_s / self._speed
      time.sleep(max(0.0, self._due_s - time.perf_counter()))

  @property
  def speed(self) -> float:
    """Simulated over real time that is aimed at; may be set at any time."""
    return self._speed

  @speed.setter
  def speed(self, speed: float) -> None:
    self._speed = speed
    self._due_s = time.perf_counter()

  def rest(self) -> None:
    """Let a moment of real time pass that does not count."""
    began_s = time.perf_counter()
    time.sleep(REST_S)
    self._due_s = time.perf_counter()
    self._start_s += self._due_s - began_s

  @property
  def real_time_factor(self) -> float:
    """Simulated over real time since the start, without rests."""
    return self._steps * self._dt_s / max(time.perf_counter() - self._start_s, 1e-9)


class StatusLine:
  """Simulated time, achieved of commanded velocity and real-time factor, rewritten in place.

  Written to a terminal alone: a log file has no use for it.
  """

  EVERY_S = 0.2

  def __init__(self, pace: Pace, dt_s: float, out: TextIO | None = None) -> None:
    """Write to out, or to standard output."""
    self._pace, self._dt_s = pace, dt_s
    self._out = sys.stdout if out is None else out
    self._shown = self._out.isatty()
    self._keep = max(0.0, 1 - dt_s / AVERAGED_S)
    self._time_s = 0.0
    self._achieved = [0.0, 0.0, 0.0]
    self._next_s = 0.0
    self._width = 0

  def step(self, achieved: Sequence[float], commanded: Sequence[float], note: str = "") -> None:
    """Count a control step: forward m/s, left m/s, yaw rad/s, achieved and commanded."""
    self._time_s += self._dt_s
    pairs = zip(self._achieved, achieved, strict=True)
    self._achieved = [self._keep * old + (1 - self._keep) * new for old, new in pairs]
    now_s = time.perf_counter()
    if not self._shown or now_s < self._next_s:
      return
    self._next_s = now_s + self.EVERY_S
    text = self.text(commanded, note)
    self._width = max(self._width, len(text))
    self._out.write("\r" + text.ljust(self._width))
    self._out.flush()

  def text(self, commanded: Sequence[float], note: str = "") -> str:
    """The line as it would stand now."""
    pairs = zip(("forward", "left", "yaw"), self._achieved, commanded, strict=True)
    speeds = "  ".join(f"{name} {got:+.2f} of {asked:+.2f}" for name, got, asked in pairs)
    factor = self._pace.real_time_factor
    return f"{self._time_s:7.1f} s  {speeds}  {factor:.1f}x real time{note and '  ' + note}"

  def end(self) -> None:
    """Leave the line standing and go to the next."""
    if self._shown and self._width:
      self._out.write("\n")
      self._out.flush()
