"""The velocity command of every env, and how well each hold of it was tracked."""

from collections.abc import Mapping
from math import pi
from typing import Any

import torch
from torch import Tensor

from mjrl.envs.holds import HoldMeter, Holds
from mjrl.envs.state import State
from mjrl.envs.task import STANDING_COMMAND, VelocityCommand
from mjrl.envs.world import World


class Commands:
  """Draws a command per env, holds it, steers headings, and measures each hold.

  A hold is judged by mean velocity against mean command, see `HoldMeter`, of moving envs alone.
  """

  def __init__(self, spec: VelocityCommand, world: World, dt_s: float) -> None:
    """Start with commands of zero; `draw` gives the first ones."""
    self.spec = spec
    self._world = world
    self._dt_s = dt_s
    n, device = world.num_envs, world.backend.device
    self.value = torch.zeros(n, 3, device=device)
    self._heading_rad = torch.zeros(n, device=device)
    self._yaw_column = torch.tensor([False, False, True], device=device)
    self._steered = torch.zeros(n, 3, dtype=torch.bool, device=device)  # yaw, where heading rules
    self._hold_steps = torch.zeros(n, dtype=torch.int64, device=device)
    self.meter = HoldMeter(world, dt_s, 3, ("linear", "angular"), _errors)
    self._ceiling = torch.tensor([spec.forward_m_s, spec.left_m_s, spec.yaw_rad_s], device=device)
    self.set_ranges({"linear": 1.0, "angular": 1.0})
    self._fixed = False

  @property
  def ceilings(self) -> Mapping[str, float]:
    """The fastest command of each kind that is tracked: m/s and rad/s."""
    return {
      "linear": max(map(abs, self.spec.forward_m_s)),
      "angular": max(map(abs, self.spec.yaw_rad_s)),
    }

  def set_ranges(self, fractions: Mapping[str, float]) -> None:
    """Fractions of the ceilings, by their names, from which the next commands are drawn."""
    linear, angular = fractions["linear"], fractions["angular"]
    shrink = torch.tensor([linear, linear, angular], device=self._ceiling.device)
    self._range = self._ceiling * shrink[:, None]
    self._yaw_range = [float(limit) for limit in self._range[2]]

  def fix(self, command: Tensor) -> None:
    """Hold this command, (N, 3), in every env until told otherwise."""
    self.value = command.to(self.value)
    self._fixed = True
    self._steered.zero_()

  def release(self) -> None:
    """Draw commands again, for every env now and from then on as before `fix`."""
    self._fixed = False
    self.draw(torch.ones_like(self._hold_steps, dtype=torch.bool))

  def draw(self, mask: Tensor) -> None:
    """New commands for the masked envs."""
    self.meter.begin(mask)
    if self._fixed:
      return
    spec, uniform = self.spec, self._world.uniform
    draws = uniform(0.0, 1.0, 7)
    value = self._range[:, 0] + (self._range[:, 1] - self._range[:, 0]) * draws[:, :3]
    stands = draws[:, 3] < spec.standing
    steers = ~stands & (draws[:, 4] < spec.heading)
    value = value.masked_fill(stands[:, None], 0.0)
    hold_s = spec.hold_s[0] + (spec.hold_s[1] - spec.hold_s[0]) * draws[:, 5]
    self.value = torch.where(mask[:, None], value, self.value)
    steered = steers[:, None] & self._yaw_column
    self._steered = torch.where(mask[:, None], steered, self._steered)
    self._heading_rad = torch.where(mask, (2 * draws[:, 6] - 1) * pi, self._heading_rad)
    self._hold_steps = torch.where(mask, (hold_s / self._dt_s).long(), self._hold_steps)

  def advance(self, s: State, ended: Tensor, fell: Tensor, look: bool) -> Holds | None:
    """Count the step that led to `s`, and draw where a hold is over in the middle of an episode.

    Args:
      s: the state at the end of the step.
      ended: (N,) bool, episodes that are over.
      fell: (N,) bool, those that ended in failure.
      look: whether to look for holds that are over.

    Returns:
      How the holds that ended were tracked, or None where none did, or where looking at them is
      not free: `take_holds` has them.
    """
    self.meter.count(s.miss)
    over = ended | (self.meter.age_steps >= self._hold_steps) if look else ended
    holds = None
    if self._world.backend.any(over):
      moving = torch.linalg.vector_norm(self.value, dim=1) > STANDING_COMMAND
      holds = self.meter.judge(over, fell, self.value, moving)
      self.draw(over & ~ended)
    self._steer(s)
    return holds

  def take_holds(self) -> Holds | None:
    """The holds since the last call that `advance` did not tell of; reads from the device."""
    return self.meter.take()

  def _steer(self, s: State) -> None:
    if self._fixed or self.spec.heading == 0:
      return
    turn = torch.remainder(self._heading_rad + pi - s.yaw_rad, 2 * pi) - pi  # the short way round
    turn = (turn * self.spec.heading_gain_1_s).clamp_(*self._yaw_range)
    # Not in place: the state that was read keeps the command it was under.
    self.value = torch.where(self._steered, turn[:, None], self.value)

  def save(self) -> dict[str, Any]:
    """What `load` needs to go on with the same commands."""
    return {name: getattr(self, name).clone() for name in self._STATE} | {"hold": self.meter.save()}

  def load(self, saved: Mapping[str, Any]) -> None:
    """Take up what `save` gave."""
    for name in self._STATE:
      setattr(self, name, saved[name].to(self.value.device, copy=True))
    self.meter.load(saved["hold"])

  _STATE = ("value", "_heading_rad", "_steered", "_hold_steps")


def _errors(miss: Tensor) -> tuple[Tensor, Tensor]:
  """Distance of the horizontal velocity, and of the yaw rate, from the command.  (M,) each."""
  return torch.linalg.vector_norm(miss[:, :2], dim=1), miss[:, 2].abs()
