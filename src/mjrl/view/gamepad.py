"""A gamepad, as Linux gives it: no library, one file, eight bytes an event."""

import os
import struct
from pathlib import Path

from mjrl.view.controls import CONTROLS, Panel

PATH = Path("/dev/input/js0")
_EVENT = struct.Struct("IhBB")  # ms, value, type, number
_BUTTON, _AXIS, _INITIAL = 0x01, 0x02, 0x80
# Axes that push up and to the left with negative numbers, on Xbox and PlayStation pads alike.
_FORWARD, _LEFT, _TURN = 1, 0, 3
_REST = 0.12  # of full deflection: less than that is a stick that does not rest in the middle
_FULL = 32767
_NAMES = {row.button: row.name for row in CONTROLS if row.button is not None}


class Gamepad:
  """Passes on what a gamepad does: sticks to commands, buttons to controls."""

  def __init__(self, panel: Panel, path: Path = PATH) -> None:
    """Listen to one.

    Raises:
      OSError: there is none, or it may not be read.
    """
    self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    self._panel = panel
    self._sticks = {_FORWARD: 0.0, _LEFT: 0.0, _TURN: 0.0}
    self._asked = (0.0, 0.0, 0.0)

  def listen(self) -> None:
    """Pass on what has happened since the last call.

    Raises:
      OSError: it was unplugged.
    """
    while event := self._read():
      _, value, kind, number = event
      if kind == _BUTTON and value and number in _NAMES:
        self._panel.press(_NAMES[number])
      elif kind & ~_INITIAL == _AXIS and number in self._sticks:
        self._sticks[number] = value / _FULL
    command = self._command()
    if command != self._asked:  # one that rests leaves the keyboard its say
      self._asked = command
      self._panel.ask(command)

  def close(self) -> None:
    """Let it go."""
    os.close(self._file)

  def _read(self) -> tuple[int, int, int, int] | None:
    try:
      data = os.read(self._file, _EVENT.size)
    except BlockingIOError:
      return None
    return _EVENT.unpack(data) if len(data) == _EVENT.size else None

  def _command(self) -> tuple[float, float, float]:
    assert self._panel.limits is not None  # nobody drives where nothing may be steered
    axes = zip((_FORWARD, _LEFT, _TURN), self._panel.limits, strict=True)
    forward, left, turn = (_scaled(-self._sticks[axis], *limits) for axis, limits in axes)
    return forward, left, turn


def open_gamepad(panel: Panel, path: Path = PATH) -> Gamepad | None:
  """The gamepad that is plugged in, or None where there is none; one that is there is named."""
  try:
    gamepad = Gamepad(panel, path)
  except FileNotFoundError:
    return None
  except OSError as error:
    print(f"gamepad: none, {path}: {error.strerror}", flush=True)
    return None
  print(f"gamepad: {path} drives", flush=True)
  return gamepad


def _scaled(push: float, low: float, high: float) -> float:
  """A stick's push in -1..1 as a part of the range on its side; 0 about the middle."""
  beyond = max(0.0, abs(push) - _REST) / (1 - _REST)
  return beyond * high if push > 0 else beyond * low
