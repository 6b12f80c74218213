"""A replay that is driven by hand: what was asked for on a viewer's panel, done between steps."""

from collections.abc import Sequence

import torch

from mjrl.envs.env import Env
from mjrl.envs.show import Lines
from mjrl.envs.task import Event
from mjrl.measure.pace import Pace
from mjrl.view.controls import COMMAND, MOVES, Panel
from mjrl.view.gamepad import open_gamepad

Command = tuple[float, float, float]

_STEPS = 5  # presses of a key from standing to the end of a range
_SLOWEST, _FASTEST = 1 / 64, 64.0


class Steering:
  """What the user asks for, in effect.

  paused    whether the next control step waits;  restart  whether it starts every env anew first
  """

  def __init__(
    self,
    env: Env,
    panel: Panel,
    pace: Pace,
    pushes: Sequence[Event],
    command: Command | None,
  ) -> None:
    """Take requests from a panel that has limits.

    Args:
      env: to act on.
      panel: where the requests are.
      pace: of the replay.
      pushes: what a push does: the task's recurring events, as it is trained.
      command: that is held from the start; None where they are drawn.
    """
    assert panel.limits is not None  # there is something that may be steered
    self._env, self._panel, self._limits, self._pace = env, panel, panel.limits, pace
    self._pushes, self._command = pushes, command
    self._notes: dict[str, str] = {}
    self._gamepad = open_gamepad(panel)
    self.paused = self.restart = self._one_step = False

  def obey(self) -> None:
    """Do what was asked for since the last call."""
    self.restart = False
    self._listen()
    for asked in self._panel.take():
      self._notes.clear()
      if isinstance(asked, tuple):
        self._hold(asked)
      elif asked in MOVES:
        self._hold(self._moved(*MOVES[asked]))
      else:
        self._do(asked)

  def waits(self) -> bool:
    """Whether to stand still now: paused, and no single step asked for."""
    if self._one_step:
      self._one_step = False
      return False
    if self.paused:
      self._pace.rest()
    return self.paused

  @property
  def lines(self) -> Lines:
    """What there is to say on the screen."""
    how = "held" if self._command else "drawn, as in training"
    speed = f"{self._pace.speed:g}x real time" if self._pace.speed else "as fast as possible"
    return (
      ("command", how),
      ("speed", f"{speed}, paused" if self.paused else speed),
      *self._notes.items(),
    )

  def close(self) -> None:
    """Let the gamepad go."""
    if self._gamepad:
      self._gamepad.close()
      self._gamepad = None

  def _listen(self) -> None:
    if self._gamepad is None:
      return
    try:
      self._gamepad.listen()
    except OSError:
      self.close()
      self._do("stand")  # nobody holds the sticks any more
      self._notes["gamepad"] = "unplugged"

  def _moved(self, axis: int, sign: int) -> Command:
    """The command with more of one part; by hand, it begins with standing."""
    now = self._command or (0.0, 0.0, 0.0)
    step = max(map(abs, self._limits[axis])) / _STEPS
    parts = [part + sign * step * (k == axis) for k, part in enumerate(now)]
    return parts[0], parts[1], parts[2]

  def _hold(self, command: Command) -> None:
    """Hold a command in every env, within what was trained."""
    held = []
    for name, part, (low, high) in zip(COMMAND, command, self._limits, strict=True):
      within = min(max(part, low), high)
      if abs(part - within) > 1e-6:
        self._notes["limit"] = f"{name}: trained from {low:g} to {high:g}, no further"
      held.append(within)
    self._command = held[0], held[1], held[2]
    env = self._env
    env.commands.fix(torch.tensor(self._command, device=env.device).repeat(env.num_envs, 1))

  def _do(self, name: str) -> None:
    pace = self._pace
    match name:
      case "stand":
        self._hold((0.0, 0.0, 0.0))
      case "drawn":
        self._command = None
        self._env.commands.release()
      case "push":
        self._push()
      case "reset":
        self.restart = True
      case "pause":
        self.paused = not self.paused
      case "step":
        self.paused = self._one_step = True
      case "slower":  # as fast as possible has no half
        pace.speed = max(pace.speed / 2, _SLOWEST) if pace.speed else 1.0
      case "faster" if pace.speed:
        pace.speed = min(pace.speed * 2, _FASTEST)

  def _push(self) -> None:
    if not self._pushes:
      self._notes["push"] = "none: this task has no recurring events"
    everyone = torch.ones(self._env.num_envs, dtype=torch.bool, device=self._env.device)
    for event in self._pushes:
      event.fn(self._env.world, everyone, **event.params)
