import io
import time

import pytest

from mjrl.measure.pace import Pace, StatusLine


class Terminal(io.StringIO):
  def isatty(self):
    return True


def test_real_time_is_kept(monkeypatch):
  # Guards: --speed that is read and never used.
  now = [0.0]
  monkeypatch.setattr(time, "perf_counter", lambda: now[0])
  monkeypatch.setattr(time, "sleep", lambda s: now.__setitem__(0, now[0] + s))
  pace = Pace(2.0, 0.02)
  for _ in range(50):
    pace.wait()
  assert now[0] == pytest.approx(0.5) and pace.real_time_factor == pytest.approx(2.0)


def test_speed_zero_never_sleeps(monkeypatch):
  # Guards: a measurement that takes as long as it simulates.
  monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept"))
  Pace(0.0, 0.02).wait()


def test_another_speed_holds_from_then_on(monkeypatch):
  # Guards: after a pause, or as fast as possible, a rush to make up for the time that it took.
  now = [0.0]
  monkeypatch.setattr(time, "perf_counter", lambda: now[0])
  monkeypatch.setattr(time, "sleep", lambda s: now.__setitem__(0, now[0] + s))
  pace = Pace(0.0, 0.02)
  now[0] = 3.0  # of work, as fast as possible
  for change in (lambda: setattr(pace, "speed", 0.5), lambda: [pace.rest() for _ in range(60)]):
    change()
    before = now[0]
    for _ in range(50):
      pace.wait()
    assert now[0] - before == pytest.approx(2.0)
  # The rest, of a second, does not count.
  assert pace.real_time_factor == pytest.approx(100 * 0.02 / (now[0] - 1.0))


def test_the_line_is_rewritten_in_place_on_a_terminal_alone():
  # Guards: thousands of lines in a log file, and leftovers of a longer line.
  for out, written in ((Terminal(), True), (io.StringIO(), False)):
    status = StatusLine(Pace(0.0, 0.02), 0.02, out)
    status.EVERY_S = 0.0
    status.step((0.1, 0.0, 0.0), (0.5, 0.0, 0.0), "a long note")
    status.step((0.1, 0.0, 0.0), (0.5, 0.0, 0.0))
    status.end()
    lines = out.getvalue().split("\r")
    assert out.getvalue().count("\n") == int(written)
    assert bool(out.getvalue()) == written
    if written:
      assert len(lines[1]) == len(lines[2].rstrip("\n")) and "forward" in lines[2]


def test_speeds_are_averaged_over_a_second():
  # Guards: a status line that jumps with every stride.
  status = StatusLine(Pace(0.0, 0.02), 0.02, io.StringIO())
  for _ in range(50):
    status.step((0.5, 0.0, 0.0), (0.5, 0.0, 0.0))
  assert "forward +0.32 of +0.50" in status.text((0.5, 0.0, 0.0))
