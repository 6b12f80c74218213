"""A gamepad, from the bytes that Linux gives."""

import os
import struct

import pytest

from mjrl.view.controls import Panel
from mjrl.view.gamepad import Gamepad, open_gamepad

LIMITS = ((-0.5, 1.0), (-0.4, 0.4), (-0.8, 0.8))
BUTTON, AXIS, INITIAL = 1, 2, 0x80


@pytest.fixture
def pad(tmp_path):
  """A pipe in place of /dev/input/js0: what it is written, and the panel that hears it."""
  path, panel = tmp_path / "js0", Panel(2, LIMITS)
  os.mkfifo(path)
  gamepad = Gamepad(panel, path)
  out = os.open(path, os.O_WRONLY)

  def do(*events):
    os.write(out, b"".join(struct.pack("IhBB", 0, v, kind, number) for v, kind, number in events))
    gamepad.listen()
    return panel.take()

  yield do, panel
  gamepad.close()
  os.close(out)


def test_sticks_span_the_trained_ranges(pad):
  # Guards: a stick that drives backward, mirrored, or beyond what was trained.
  do, _ = pad
  assert do((-32767, AXIS, 1)) == [pytest.approx((1.0, 0.0, 0.0))]
  assert do((32767, AXIS, 1)) == [pytest.approx((-0.5, 0.0, 0.0))]
  assert do((0, AXIS, 1), (-32767, AXIS, 0)) == [pytest.approx((0.0, 0.4, 0.0))]
  assert do((0, AXIS, 0), (-32767, AXIS, 3)) == [pytest.approx((0.0, 0.0, 0.8))]
  assert do((0, AXIS, 3)) == [(0.0, 0.0, 0.0)]


def test_a_stick_at_rest_asks_for_nothing(pad):
  # Guards: a pad on the table that takes the keyboard's say, by where its sticks happen to rest.
  do, _ = pad
  assert do((2000, AXIS | INITIAL, 1), (-1500, AXIS | INITIAL, 3)) == []


def test_buttons_are_controls(pad):
  # Guards: a push at the press and one more at the release.
  do, panel = pad
  assert do((1, BUTTON, 4), (0, BUTTON, 4)) == ["push"]
  assert do((1, BUTTON | INITIAL, 1)) == []  # held since before we listened
  assert do((1, BUTTON, 5)) == [] and panel.followed == 1


def test_none_is_no_news_and_one_that_may_not_be_read_is_said(tmp_path, capsys, monkeypatch):
  # Guards: a line about a gamepad for everybody who has none; silence where there is one.
  assert open_gamepad(Panel(1, LIMITS), tmp_path / "js0") is None
  assert capsys.readouterr().out == ""

  def refuse(*_):
    raise PermissionError(13, "Permission denied")

  monkeypatch.setattr(os, "open", refuse)
  assert open_gamepad(Panel(1, LIMITS), tmp_path / "js0") is None
  assert "Permission denied" in capsys.readouterr().out
