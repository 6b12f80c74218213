import sys
import time
from threading import Thread
from types import SimpleNamespace

import mujoco
import pytest

from mjrl.view import display, window
from mjrl.view import open as open_
from mjrl.view.choice import Choice
from mjrl.view.controls import KEYS, Panel
from mjrl.view.painter import Budget


class Viewer:
  """Stands in for MuJoCo's window."""

  def __init__(self, model, data, *, key_callback, **ui):
    self.d, self.keys = data, key_callback
    self.cam, self.opt, self.perturb = mujoco.MjvCamera(), mujoco.MjvOption(), mujoco.MjvPerturb()
    self.user_scn = mujoco.MjvScene(model, 1000)
    self.frames, self.running = [], True

  def set_texts(self, texts):
    self.texts = texts

  def lock(self):
    return self

  def __enter__(self):
    return None

  def __exit__(self, *_):
    return None

  def sync(self):
    self.frames.append(self.d.xpos[1].copy())

  def is_running(self):
    return self.running

  def close(self):
    self.running = False


@pytest.fixture
def launched(monkeypatch):
  """MuJoCo's window, replaced; its keyboard is `viewer.keys`."""
  monkeypatch.setattr(open_, "window_obstacle", lambda *_: "")
  monkeypatch.setattr(open_, "probe_window", lambda: "")
  monkeypatch.setitem(sys.modules, "mujoco.viewer", SimpleNamespace(launch_passive=Viewer))
  monkeypatch.setattr(mujoco, "viewer", sys.modules["mujoco.viewer"], raising=False)


@pytest.fixture
def open_it(launched, make_subject):
  """A window on envs of a box, and its panel."""

  def open_it(num_envs=2, limits=None):
    panel = Panel(num_envs, limits)
    return window.open_window(make_subject(num_envs), panel), panel

  return open_it


def open_any(subject):
  return open_.open_viewer(Choice(kind="window"), subject, Panel(2, None), Budget(fps=30, share=1))


def test_without_a_display_there_is_one_line_and_no_window(make_subject, monkeypatch, capsys):
  # Guards: a run that ends, or hangs, because nobody can look.
  monkeypatch.setattr(sys, "platform", "linux")
  for name in ("DISPLAY", "WAYLAND_DISPLAY"):
    monkeypatch.delenv(name, raising=False)
  assert open_any(make_subject()) is None
  said = capsys.readouterr().out
  assert said.count("\n") == 1 and "neither DISPLAY nor WAYLAND_DISPLAY is set" in said


def test_a_display_that_does_not_answer_is_no_display(make_subject, monkeypatch, capsys):
  # Guards: MuJoCo's window waiting forever where GLFW cannot start.
  pytest.importorskip("glfw")
  monkeypatch.setattr(sys, "platform", "linux")
  monkeypatch.setenv("DISPLAY", ":4321")
  monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
  assert open_any(make_subject()) is None
  assert "going on without" in capsys.readouterr().out


def test_a_probe_that_crashes_or_hangs_is_an_answer(monkeypatch):
  # Guards: a broken OpenGL that takes the run with it.
  assert display.probe_window("pass") == ""
  assert "ended with -6" in display.probe_window("import os; os.abort()")
  assert "no OpenGL" in display.probe_window("raise SystemExit('no OpenGL')")
  monkeypatch.setattr(display, "PROBE_S", 0.2)
  assert "does not answer" in display.probe_window("import time; time.sleep(9)")


@pytest.mark.parametrize(
  ("platform", "environ", "opens"),
  [
    ("linux", {}, False),
    ("linux", {"DISPLAY": ""}, False),
    ("linux", {"DISPLAY": ":0"}, True),
    ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
    ("darwin", {}, False),
    ("darwin", {"MJPYTHON_BIN": "/bin/mjpython"}, True),
    ("win32", {}, True),
  ],
)
def test_where_windows_open(platform, environ, opens):
  # Guards: a window tried where none can be, or not tried where one can.
  assert (display.window_obstacle(platform, environ) == "") == opens


def test_a_viewer_that_fails_is_never_fatal(make_subject, launched, monkeypatch, capsys):
  # Guards: a run that ends because the viewer raised.
  def fail(*_, **__):
    raise RuntimeError("no luck")

  monkeypatch.setattr(sys.modules["mujoco.viewer"], "launch_passive", fail)
  assert open_any(make_subject()) is None
  assert "no luck; going on without" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("num_envs", "said"), [(1, "env 0"), (2, "all 2 envs"), (4096, "16 of 4096 envs")]
)
def test_how_many_are_drawn_is_said(make_subject, launched, capsys, num_envs, said):
  # Guards: sixteen robots taken for all of them.
  painter = open_any(make_subject(num_envs))
  painter.close()
  assert capsys.readouterr().out == f"window: {said}\n"


def test_it_shows_the_frame_as_it_is(open_it, make_frame):
  # Guards: a picture of another env, of the start, or of stale poses; a camera that stays behind.
  opened, _ = open_it()
  for height in (2.0, 3.0):
    opened.paint(make_frame((5.0, 0.0, height), (0.0, 0.0, 9.0)))
    assert opened._viewer.frames[-1] == pytest.approx((5.0, 0.0, height))
    # The camera follows the centre of mass, and the sun's shadow the robot.
    assert opened._viewer.d.subtree_com[1] == pytest.approx((5.0, 0.0, height), abs=0.1)
    assert opened._viewer.d.light_xpos[0] == pytest.approx((5.0, 0.0, height + 3.0))


def test_the_others_stand_beside_it(open_it, make_frame):
  # Guards: one robot shown for all, all of them in one place, and more at every frame.
  opened, _ = open_it()
  for _ in range(2):
    opened.paint(make_frame((0.0, 0.0, 1.0), (0.5, 0.0, 2.0)))
    scene = opened._viewer.user_scn
    assert scene.ngeom == 2  # the box and its knee
    assert scene.geoms[0].pos == pytest.approx((0.5, 1.0, 2.0))


def test_keys_and_what_there_is_to_say_stand_on_the_screen(open_it, make_frame):
  # Guards: keys that nobody finds, and keys shown that do nothing here.
  opened, _ = open_it()
  opened.paint(make_frame((0, 0, 1), (0, 0, 1), lines=(("env", "0 of 2"),)))
  (*_, keys, names), (*_, labels, texts) = opened._viewer.texts
  assert keys.splitlines() == ["page down, page up", "F1"] and "next, previous" in names
  assert (labels, texts) == ("env", "0 of 2")


def test_a_key_is_its_control(open_it):
  # Guards: a key that is shown and not heard, or heard as another.
  opened, panel = open_it(limits=((-1.0, 1.0),) * 3)
  for row in panel.controls:
    opened._viewer.keys(KEYS[row.key][0])
  assert panel.take() == [row.name for row in panel.controls if row.steers]
  opened._viewer.keys(ord("W"))
  assert panel.take() == []


def test_it_can_be_closed_by_either_side(open_it):
  # Guards: a replay that goes on after its window was closed.
  opened, _ = open_it()
  assert not opened.closed
  opened._viewer.running = False
  assert opened.closed
  opened.close()


def test_closing_waits_until_the_window_is_gone(open_it):
  # Guards: a crash at exit, in a thread that is still taking its window down, in place of code 0.
  opened, _ = open_it()
  gone = []
  thread = Thread(target=lambda: (time.sleep(0.1), gone.append(True)))
  thread.start()
  opened._threads = [thread]
  opened.close()
  assert gone and opened.closed
