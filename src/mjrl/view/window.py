"""MuJoCo's passive viewer: one robot, the envs beside it, the keys and what they did."""

import threading
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any

import mujoco

from mjrl.view.controls import KEYS, Panel
from mjrl.view.frame import Frame, Subject, places

CLOSE_S = 5.0
SAY_S = 0.2
SUN_M = 3.0
_GRID = mujoco.mjtGridPos
_FONT = mujoco.mjtFontScale.mjFONTSCALE_100


class Window:
  """A window that follows one robot, with the others beside it.

  MuJoCo renders on a thread of its own, from copies that `paint` hands over.
  """

  name = "window"
  watched = True

  def __init__(
    self, viewer: Any, threads: Sequence[Thread], subject: Subject, panel: Panel
  ) -> None:
    """Draw in a viewer that was launched on `subject.model` and data of it, with its threads."""
    self._viewer, self._threads, self._panel = viewer, threads, panel
    self._model, self._data = subject.model, viewer.d
    self._beside = mujoco.MjData(subject.model)
    self._places = places(subject)
    self._said: Sequence[tuple[str, str]] = ()
    self._say_s = 0.0
    self._base = subject.model.body(subject.base_body).id
    self._suns = subject.model.light_type == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL

  @property
  def closed(self) -> bool:
    """Whether the user has closed it."""
    return not self._viewer.is_running()

  def paint(self, frame: Frame) -> None:
    """Show a frame, the keys and what there is to say."""
    scene = self._viewer.user_scn
    scene.ngeom = 0
    for qpos, place in zip(frame.qpos[1:], self._places[1:], strict=True):
      self._beside.qpos[:] = qpos
      mujoco.mj_kinematics(self._model, self._beside)
      self._beside.geom_xpos += place
      self._beside.site_xpos += place
      mujoco.mjv_addGeoms(
        self._model,
        self._beside,
        self._viewer.opt,
        self._viewer.perturb,
        mujoco.mjtCatBit.mjCAT_DYNAMIC,
        scene,
      )
    with self._viewer.lock():
      self._data.qpos[:] = frame.qpos[0]
      # Poses of bodies, cameras and lights, and the centre of mass that the camera follows: all
      # that a picture needs.
      mujoco.mj_kinematics(self._model, self._data)
      mujoco.mj_comPos(self._model, self._data)
      mujoco.mj_camlight(self._model, self._data)
      # The sun comes along: it casts shadows in a tube about its own axis alone.
      sunward = -SUN_M * self._data.light_xdir[self._suns]
      self._data.light_xpos[self._suns] = self._data.xpos[self._base] + sunward
    self._say(frame.lines)
    self._viewer.sync()

  def close(self) -> None:
    """Close it, if the user has not, and wait until it is gone."""
    self._viewer.close()
    # A thread that still tears its window down while the interpreter exits ends in a crash.
    for thread in self._threads:
      thread.join(CLOSE_S)

  def _say(self, lines: Sequence[tuple[str, str]]) -> None:
    """Write on the screen; MuJoCo waits for its next picture to do so, hence now and then."""
    now_s = time.monotonic()
    if lines != self._said and now_s >= self._say_s:
      self._said, self._say_s = lines, now_s + SAY_S
      self._viewer.set_texts([self._keys(), _columns(_GRID.mjGRID_BOTTOMLEFT, lines)])

  def _keys(self) -> tuple[Any, Any, str, str]:
    rows = [
      (", ".join(row.key for row in rows), ", ".join(row.name for row in rows))
      for rows in self._panel.groups.values()
    ]
    return _columns(_GRID.mjGRID_TOPRIGHT, [*rows, ("F1", "MuJoCo's own keys")])


def open_window(subject: Subject, panel: Panel) -> Window:
  """A window.  Raises whatever MuJoCo raises where there can be none."""
  from mujoco import viewer as passive  # loads GLFW, which headless runs can do without

  def pressed(code: int) -> None:
    for row in panel.controls:
      if KEYS[row.key][0] == code:
        panel.press(row.name)

  before = set(threading.enumerate())
  viewer = passive.launch_passive(
    subject.model,
    mujoco.MjData(subject.model),
    key_callback=pressed,
    show_left_ui=False,
    show_right_ui=False,
  )
  _follow(viewer, subject)
  threads = [thread for thread in threading.enumerate() if thread not in before]
  return Window(viewer, threads, subject, panel)


def _follow(viewer: Any, subject: Subject) -> None:
  """Let the camera travel with the base, seen from ahead on the left."""
  with viewer.lock():
    viewer.cam.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    viewer.cam.trackbodyid = subject.model.body(subject.base_body).id
    viewer.cam.distance = 10 * subject.home_height_m
    viewer.cam.azimuth, viewer.cam.elevation = 140.0, -20.0


def _columns(where: Any, rows: Sequence[tuple[str, str]]) -> tuple[Any, Any, str, str]:
  labels, texts = zip(*rows, strict=True) if rows else ((), ())
  return _FONT, where, "\n".join(labels), "\n".join(texts)
