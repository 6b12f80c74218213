"""MuJoCo's passive viewer on env 0."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any, Protocol

import mujoco

from mjrl.robots.robot import Robot
from mjrl.sim.backend import Backend
from mjrl.view.display import probe_window, window_obstacle

FPS = 30.0
CLOSE_S = 5.0


class Shown(Protocol):
  """What is looked at; an `Env` is one."""

  backend: Backend
  robot: Robot


class Window:
  """A window that follows env 0's robot.  Drawing costs a copy of a frame, `FPS` times a second.

  The viewer renders on a thread of its own, from a copy that `draw` hands over.
  """

  def __init__(
    self, viewer: Any, threads: Sequence[Thread], model: mujoco.MjModel, data: mujoco.MjData
  ) -> None:
    """Show what data of model holds in a viewer that was launched on the two, with its threads."""
    self._viewer, self._threads = viewer, threads
    self._model, self._data = model, data
    self._next_s = 0.0

  @property
  def closed(self) -> bool:
    """Whether the user has closed it."""
    return not self._viewer.is_running()

  def draw(self, env: Shown) -> None:
    """Show env 0 as it is now, unless a frame was shown just before."""
    now_s = time.perf_counter()
    if now_s < self._next_s or self.closed:
      return
    self._next_s = now_s + 1 / FPS
    with self._viewer.lock():
      self._data.qpos[:] = env.backend.read("qpos")[0].cpu().numpy()
      # Poses of bodies, cameras and lights: all that a picture needs.
      mujoco.mj_kinematics(self._model, self._data)
      mujoco.mj_camlight(self._model, self._data)
    self._viewer.sync()

  def close(self) -> None:
    """Close it, if the user has not, and wait until it is gone."""
    self._viewer.close()
    # A thread that still tears its window down while the interpreter exits ends in a crash.
    for thread in self._threads:
      thread.join(CLOSE_S)


def open_window(env: Shown) -> Window | None:
  """A window on env 0, or None with one printed line that says why there is none."""
  obstacle = window_obstacle(sys.platform, os.environ)
  if not obstacle and sys.platform != "darwin":
    obstacle = probe_window()
  if obstacle:
    print(f"window: none, {obstacle}; going on without", flush=True)
    return None
  model = env.backend.model
  data = mujoco.MjData(model)
  try:
    from mujoco import viewer as passive  # loads GLFW, which headless runs can do without

    before = set(threading.enumerate())
    viewer = passive.launch_passive(model, data, show_left_ui=False, show_right_ui=False)
  except Exception as error:  # a window is never worth a run
    print(f"window: none, {error}; going on without", flush=True)
    return None
  _follow(viewer, model, env)
  others = f" of {env.backend.num_envs}" if env.backend.num_envs > 1 else ""
  print(f"window: env 0{others}", flush=True)
  threads = [thread for thread in threading.enumerate() if thread not in before]
  return Window(viewer, threads, model, data)


def _follow(viewer: Any, model: mujoco.MjModel, env: Shown) -> None:
  """Let the camera travel with the base, seen from ahead on the left."""
  with viewer.lock():
    viewer.cam.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    viewer.cam.trackbodyid = model.body(env.robot.base_body).id
    viewer.cam.distance = 10 * env.robot.home_height_m
    viewer.cam.azimuth, viewer.cam.elevation = 140.0, -20.0
