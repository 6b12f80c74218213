"""A page for browsers: the robots, the controls, and live plots; through viser and mjviser."""

import copy
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import mujoco
import numpy as np
import viser
from mjviser import ViserMujocoScene

from mjrl.ports import free_port
from mjrl.view.choice import Choice
from mjrl.view.controls import COMMAND, KEYS, Panel
from mjrl.view.frame import Frame, Subject, places
from mjrl.view.plots import Charts

_FROM = np.array((-6.0, 5.0, 3.0))  # where one looks from at first, in heights of the robot


class Page:
  """A page that any number of browsers may open, and close; it is never closed by them."""

  name = "viewer"
  closed = False

  def __init__(self, subject: Subject, panel: Panel, choice: Choice) -> None:
    """Serve it.

    Raises:
      OSError: no port is free any more.
    """
    port = free_port(choice.port, choice.host)
    if port is None:
      raise OSError(f"no free port from {choice.port} on")
    self._panel, self._drawn = panel, subject.drawn
    with redirect_stdout(StringIO()):  # it prints a banner
      self._server = viser.ViserServer(choice.host, port, label="mjrl", verbose=False)
    self.address = f"http://{choice.host}:{self._server.get_port()}"
    # mjviser sets widths and colours in the model that it is given.
    self._model = copy.copy(subject.model)
    self._scene = ViserMujocoScene(self._server, self._model, subject.drawn)
    self._data = mujoco.MjData(self._model)
    self._places = places(subject)
    camera = self._server.initial_camera
    camera.position = tuple(_FROM * subject.home_height_m)
    camera.look_at = (0.0, 0.0, 0.0)
    self._lines: tuple[tuple[str, str], ...] = ()
    self._command: list[float] = []
    gui = self._server.gui
    gui.configure_theme(control_width="large", show_share_button=False)
    tabs = gui.add_tab_group()
    with tabs.add_tab("Drive" if panel.limits else "Look"):
      self._said = gui.add_markdown("")
      self._sliders = _sliders(gui, panel)
      _buttons(gui, panel)
    with tabs.add_tab("Plots"):
      self._charts = Charts(gui, subject)
    with tabs.add_tab("Show"):
      self._scene.create_overlay_gui()

  @property
  def watched(self) -> bool:
    """Whether a browser has it open."""
    return bool(self._server.get_clients())

  def paint(self, frame: Frame) -> None:
    """Send a frame to the browsers."""
    positions = np.zeros((self._drawn, self._model.nbody, 3))
    turns = np.zeros((self._drawn, self._model.nbody, 3, 3))
    for k, qpos in enumerate(frame.qpos):
      self._data.qpos[:] = qpos
      mujoco.mj_kinematics(self._model, self._data)
      positions[k] = self._data.xpos + self._places[k]
      turns[k] = self._data.xmat.reshape(-1, 3, 3)
    self._scene.update_from_arrays(positions, turns, env_idx=0)
    if frame.lines != self._lines:
      self._lines = frame.lines
      self._said.content = "  \n".join(f"**{label}** {text}" for label, text in frame.lines)
    command = frame.command.tolist()
    if command != self._command:  # one that was asked for a moment ago may still be on its way
      self._command = command
      for slider, value in zip(self._sliders, command, strict=False):
        slider.value = min(max(value, slider.min), slider.max)
    self._charts.add(frame)

  def close(self) -> None:
    """Stop serving."""
    with redirect_stdout(StringIO()):  # viser says so
      self._server.stop()


def _sliders(gui: viser.GuiApi, panel: Panel) -> list[Any]:
  """A slider for each part of the command, over what was trained."""
  sliders: list[Any] = []

  async def asked(event: viser.GuiEvent[Any]) -> None:
    if event.client is not None:  # else it was set to what the robot is asked
      forward, left, turn = (slider.value for slider in sliders)
      panel.ask((forward, left, turn))

  for name, (low, high) in zip(COMMAND, panel.limits or (), strict=False):
    slider = gui.add_slider(name, low, high, step=0.01, initial_value=min(max(0.0, low), high))
    slider.on_update(asked)
    sliders.append(slider)
  return sliders


def _buttons(gui: viser.GuiApi, panel: Panel) -> None:
  """A button and a key for each control, and a table of them."""
  for group, rows in panel.groups.items():
    # On the server's own thread, so that presses stay in order.
    async def clicked(event: viser.GuiEvent[Any]) -> None:
      panel.press(event.target.value)

    gui.add_button_group(group, [row.name for row in rows]).on_click(clicked)
  for row in panel.controls:

    async def pressed(_: Any, name: str = row.name) -> None:
      panel.press(name)

    command = gui.add_command(row.name, description=row.does, hotkey=KEYS[row.key][1])
    command.on_trigger(pressed)
  with gui.add_folder("keys"):
    keys = [f"| {row.key} | {row.name} | {row.does} |" for row in panel.controls]
    gui.add_markdown("\n".join(["| key | | |", "| --- | --- | --- |", *keys]))
