import sys
import time
from threading import Thread
from types import SimpleNamespace

import mujoco
import pytest
import torch

from mjrl.view import display, window

BOX = """
<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody>
</mujoco>
"""


class Viewer:
  """Stands in for MuJoCo's window."""

  def __init__(self, model, data, **ui):
    self.model, self.data = model, data
    self.cam = mujoco.MjvCamera()
    self.frames, self.running = [], True

  def lock(self):
    return self

  def __enter__(self):
    return None

  def __exit__(self, *_):
    return None

  def sync(self):
    self.frames.append(self.data.xpos[1].copy())

  def is_running(self):
    return self.running

  def close(self):
    self.running = False


@pytest.fixture
def env():
  model = mujoco.MjModel.from_xml_string(BOX)
  qpos = torch.tensor([[0.0, 0.0, 2.0, 1, 0, 0, 0], [0.0, 0.0, 9.0, 1, 0, 0, 0]])
  backend = SimpleNamespace(model=model, num_envs=2, read=lambda field: {"qpos": qpos}[field])
  return SimpleNamespace(
    backend=backend, robot=SimpleNamespace(base_body="base", home_height_m=0.1), qpos=qpos
  )


@pytest.fixture
def opened(env, monkeypatch):
  monkeypatch.setattr(window, "window_obstacle", lambda *_: "")
  monkeypatch.setattr(window, "probe_window", lambda: "")
  monkeypatch.setitem(sys.modules, "mujoco.viewer", SimpleNamespace(launch_passive=Viewer))
  monkeypatch.setattr(mujoco, "viewer", sys.modules["mujoco.viewer"], raising=False)
  return window.open_window(env)


def test_without_a_display_there_is_one_line_and_no_window(env, monkeypatch, capsys):
  # Guards: a run that ends, or hangs, because nobody can look.
  monkeypatch.setattr(sys, "platform", "linux")
  for name in ("DISPLAY", "WAYLAND_DISPLAY"):
    monkeypatch.delenv(name, raising=False)
  assert window.open_window(env) is None
  said = capsys.readouterr().out
  assert said.count("\n") == 1 and "neither DISPLAY nor WAYLAND_DISPLAY is set" in said


def test_a_display_that_does_not_answer_is_no_display(env, monkeypatch, capsys):
  # Guards: MuJoCo's window waiting forever where GLFW cannot start.
  pytest.importorskip("glfw")
  monkeypatch.setattr(sys, "platform", "linux")
  monkeypatch.setenv("DISPLAY", ":4321")
  monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
  assert window.open_window(env) is None
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


def test_a_viewer_that_fails_is_never_fatal(env, opened, monkeypatch, capsys):
  # Guards: a run that ends because the viewer raised.
  def fail(*_, **__):
    raise RuntimeError("no luck")

  monkeypatch.setattr(sys.modules["mujoco.viewer"], "launch_passive", fail)
  assert window.open_window(env) is None
  assert "no luck; going on without" in capsys.readouterr().out


def test_it_shows_env_0_as_it_is(env, opened):
  # Guards: a picture of another env, of the start, or of stale poses.
  opened.draw(env)
  assert opened._viewer.frames[-1][2] == pytest.approx(2.0)
  env.qpos[0, 2] = 3.0
  opened._next_s = 0.0
  opened.draw(env)
  assert opened._viewer.frames[-1][2] == pytest.approx(3.0)


def test_frames_are_capped(env, opened, monkeypatch):
  # Guards: drawing every control step of a fast replay, which then runs at the pace of the picture.
  now = [100.0]
  monkeypatch.setattr(window.time, "perf_counter", lambda: now[0])
  for _ in range(1000):
    opened.draw(env)
    now[0] += 0.001
  assert 29 <= len(opened._viewer.frames) <= 31


def test_it_can_be_closed_by_either_side(env, opened):
  # Guards: a replay that goes on after its window was closed.
  assert not opened.closed
  opened._viewer.running = False
  assert opened.closed
  opened.draw(env)  # must not touch a window that is gone
  assert not opened._viewer.frames
  opened.close()


def test_closing_waits_until_the_window_is_gone(env):
  # Guards: a crash at exit, in a thread that is still taking its window down, in place of code 0.
  viewer, gone = Viewer(env.backend.model, None), []
  thread = Thread(target=lambda: (time.sleep(0.1), gone.append(True)))
  thread.start()
  window.Window(viewer, [thread], env.backend.model, None).close()
  assert gone and not viewer.running
