"""What the user of a viewer can ask for: one table, for the window, the page and the documents."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Control:
  """A row of the table.

  name    what is asked for
  group   what it is about; rows of a group stand together
  key     as a keyboard names it
  button  of a gamepad, by the number that Linux gives it
  does    in words
  steers  whether it acts on the simulation; the others change what is looked at
  """

  name: str
  group: str
  key: str
  does: str
  steers: bool = True
  button: int | None = None


# No letters: MuJoCo's window has a use of its own for each of them.
CONTROLS = (
  Control(name="forward", group="walk", key="up", does="more forward"),
  Control(name="backward", group="walk", key="down", does="more backward"),
  Control(name="turn left", group="turn", key="left", does="turn more to the left"),
  Control(name="turn right", group="turn", key="right", does="turn more to the right"),
  Control(name="go left", group="sideways", key="7", does="more to the left"),
  Control(name="go right", group="sideways", key="9", does="more to the right"),
  Control(name="stand", group="command", key="8", does="ask to stand"),
  Control(name="drawn", group="command", key="delete", does="draw commands, as in training"),
  Control(name="push", group="robots", key="6", does="push each, as training does", button=4),
  Control(name="reset", group="robots", key="backspace", does="start each anew", button=1),
  Control(name="pause", group="time", key="space", does="pause, or go on", button=0),
  Control(name="step", group="time", key="enter", does="one control step, then pause"),
  Control(name="slower", group="speed", key="end", does="half the speed"),
  Control(name="faster", group="speed", key="home", does="twice the speed"),
  Control(name="next", group="env", key="page down", does="follow another", steers=False, button=5),
  Control(name="previous", group="env", key="page up", does="follow the one before", steers=False),
)
STICKS = "left stick: forward and sideways; right stick: turn; pushed fully: the trained range"

COMMAND = ("forward, m/s", "left, m/s", "turn, rad/s")

# Of each key: GLFW's code, which is what MuJoCo's window is told, and viser's name.
KEYS: Mapping[str, tuple[int, Any]] = {
  "up": (265, "arrowup"),
  "down": (264, "arrowdown"),
  "left": (263, "arrowleft"),
  "right": (262, "arrowright"),
  "6": (54, "6"),
  "7": (55, "7"),
  "8": (56, "8"),
  "9": (57, "9"),
  "delete": (261, "delete"),
  "backspace": (259, "backspace"),
  "space": (32, "space"),
  "enter": (257, "enter"),
  "end": (269, "end"),
  "home": (268, "home"),
  "page down": (267, "pagedown"),
  "page up": (266, "pageup"),
}

# Sign and axis of the command (forward, left, counter-clockwise) that a control adds to.
MOVES = {
  "forward": (0, 1),
  "backward": (0, -1),
  "turn left": (2, 1),
  "turn right": (2, -1),
  "go left": (1, 1),
  "go right": (1, -1),
}


class Panel:
  """What was asked for, from the viewer's threads to the simulation's.

  limits    (3,) ranges that were trained: forward m/s, left m/s, counter-clockwise rad/s; None
            where nothing may be steered: in training, and while measuring
  controls  that are offered, in the order of the table;  groups the same, by their group
  """

  def __init__(self, num_envs: int, limits: Sequence[Range] | None) -> None:
    """Follow env 0, with nothing asked for."""
    self.num_envs, self.limits = num_envs, limits
    self.controls = tuple(row for row in CONTROLS if limits is not None or not row.steers)
    self.groups = {
      group: [row for row in self.controls if row.group == group]
      for group in dict.fromkeys(row.group for row in self.controls)
    }
    self.followed = 0
    # Appending and popping are atomic, so that no thread waits for another.
    self._asked: deque[str | tuple[float, float, float]] = deque()

  def press(self, name: str) -> None:
    """Ask for a control by its name; one that is not offered does nothing."""
    if name == "next":
      self.followed = (self.followed + 1) % self.num_envs
    elif name == "previous":
      self.followed = (self.followed - 1) % self.num_envs
    elif self.limits is not None:
      self._asked.append(name)

  def ask(self, command: tuple[float, float, float]) -> None:
    """Ask for a command: forward m/s, left m/s, counter-clockwise rad/s."""
    if self.limits is not None:
      self._asked.append(command)

  def take(self) -> list[str | tuple[float, float, float]]:
    """Names of controls, and commands, in the order in which they were asked for."""
    return [self._asked.popleft() for _ in range(len(self._asked))]
