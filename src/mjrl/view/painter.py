"""The thread that draws, so that the simulation never waits for a picture."""

import time
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Protocol

from mjrl.view.frame import Frame

_LOOK_S = 0.1  # how often a viewer without news looks whether it was closed
_END_S = 5.0


class Canvas(Protocol):
  """Where frames are drawn: a window, or a page.  Used by one thread after the other."""

  name: str

  @property
  def watched(self) -> bool:
    """Whether anybody could be looking, so that frames are worth the making."""
    ...

  @property
  def closed(self) -> bool:
    """Whether the user has closed it."""
    ...

  def paint(self, frame: Frame) -> None:
    """Draw it."""
    ...

  def close(self) -> None:
    """Close it, if the user has not, and wait until it is gone."""
    ...


@dataclass(frozen=True, kw_only=True)
class Budget:
  """What drawing may take: frames per second, and the share of one core for preparing them."""

  fps: float
  share: float


class Painter:
  """Draws the newest frame on a canvas; a failure costs one line."""

  def __init__(self, canvas: Canvas, budget: Budget) -> None:
    """Start drawing on a canvas, which is closed with it."""
    self._canvas, self._budget = canvas, budget
    self._news = Condition()
    self._frame: Frame | None = None
    self._next_s = 0.0
    self._ended = self.failed = False
    self._thread = Thread(target=self._work, name="mjrl viewer", daemon=True)
    self._thread.start()

  @property
  def due(self) -> bool:
    """Whether a frame would be drawn now: its time has come, and the one before is done with."""
    now_s = time.perf_counter()
    if now_s < self._next_s or self._frame or self.failed:
      return False
    if self._canvas.closed or not self._canvas.watched:
      return False
    self._next_s = now_s + 1 / self._budget.fps
    return True

  @property
  def closed(self) -> bool:
    """Whether the user has closed it."""
    return not self.failed and self._canvas.closed

  def show(self, frame: Frame) -> None:
    """Hand a frame over."""
    with self._news:
      self._frame = frame
      self._news.notify()

  def close(self) -> None:
    """Stop drawing, and close the canvas."""
    with self._news:
      self._ended = True
      self._news.notify()
    self._thread.join(_END_S)
    self._canvas.close()

  def _work(self) -> None:
    try:
      while not self._ended and not self._canvas.closed:
        with self._news:
          self._news.wait_for(lambda: self._frame or self._ended, _LOOK_S)
          frame = self._frame
        if frame and not self._ended:
          began_s = time.thread_time()
          self._canvas.paint(frame)
          rest_s = (time.thread_time() - began_s) * (1 / self._budget.share - 1)
          self._next_s = max(self._next_s, time.perf_counter() + rest_s)
          self._frame = None
    except Exception as error:  # a picture is never worth a run
      self.failed = True
      print(f"{self._canvas.name}: it failed, {error}; going on without", flush=True)
