"""The thread that draws: never in the simulation's way, never the end of a run."""

import time
from threading import Event

import pytest

from mjrl.view import painter
from mjrl.view.painter import Budget, Painter


class Canvas:
  """Notes what it is given; a brush that is blocked waits."""

  name, watched, closed = "canvas", True, False

  def __init__(self):
    self.frames, self.free, self.error, self.gone = [], Event(), None, False
    self.free.set()

  def paint(self, frame):
    assert self.free.wait(5)
    if self.error:
      raise self.error
    self.frames.append(frame)

  def close(self):
    self.gone = True


@pytest.fixture
def canvas():
  return Canvas()


@pytest.fixture
def make_painter(canvas):
  made = []

  def make(fps=1e9, share=1.0):
    made.append(Painter(canvas, Budget(fps=fps, share=share)))
    return made[-1]

  yield make
  canvas.free.set()
  for one in made:
    one.close()


def until(true):
  """Wait for another thread."""
  end = time.monotonic() + 5
  while not true():
    assert time.monotonic() < end
    time.sleep(0.001)


def test_frames_are_drawn(make_painter, canvas):
  # Guards: a viewer that shows nothing, or the first frame for good.
  painter = make_painter()
  for frame in ("one", "two"):
    until(lambda: painter.due)
    painter.show(frame)
    until(lambda frame=frame: canvas.frames[-1:] == [frame])


def test_a_slow_picture_costs_the_simulation_nothing(make_painter, canvas):
  # Guards: a simulation that waits for its picture, or makes frames that nobody will see.
  painter = make_painter()
  canvas.free.clear()
  assert painter.due
  painter.show("one")  # returns, although the brush is blocked
  assert not painter.due
  canvas.free.set()
  until(lambda: painter.due)


def test_frames_are_capped(make_painter, canvas, monkeypatch):
  # Guards: a frame for every control step of a fast replay, which then runs at the picture's pace.
  now = [100.0]
  monkeypatch.setattr(painter.time, "perf_counter", lambda: now[0])
  one, due = make_painter(fps=30), 0
  for _ in range(1000):
    due += one.due
    now[0] += 0.001
  assert 29 <= due <= 31


def test_drawing_takes_its_share_and_no_more(make_painter, canvas, monkeypatch):
  # Guards: a page of many robots that takes the time of the training under it.
  now, cpu = [100.0], iter([5.0, 5.5])
  monkeypatch.setattr(painter.time, "perf_counter", lambda: now[0])
  monkeypatch.setattr(painter.time, "thread_time", lambda: next(cpu))
  one = make_painter(share=0.1)  # half a second of work, so that 4.5 s are others'
  assert one.due
  one.show("one")
  until(lambda: one._frame is None)
  now[0] = 104.4
  assert not one.due
  now[0] = 104.6
  assert one.due


def test_nobody_looking_costs_nothing(make_painter, canvas):
  # Guards: frames made for a page that no browser has open.
  canvas.watched = False
  assert not make_painter().due


def test_a_picture_that_fails_is_one_line(make_painter, canvas, capsys):
  # Guards: a run that ends, or a replay that is taken for closed, because a picture failed.
  painter, canvas.error = make_painter(), RuntimeError("no luck")
  painter.show("one")
  until(lambda: painter.failed)
  until(lambda: not painter._thread.is_alive())
  said = capsys.readouterr().out
  assert said == "canvas: it failed, no luck; going on without\n"
  assert not painter.due and not painter.closed


def test_closing_ends_the_thread_and_then_the_canvas(make_painter, canvas):
  # Guards: a thread that draws in a window that is gone, which crashes at exit.
  painter = make_painter()
  painter.close()
  assert canvas.gone and not painter._thread.is_alive()


def test_one_that_the_user_closed_is_closed(make_painter, canvas):
  # Guards: a replay that goes on after its window was closed.
  painter = make_painter()
  assert not painter.closed
  canvas.closed = True
  assert painter.closed and not painter.due
