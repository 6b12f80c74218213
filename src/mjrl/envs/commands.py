"""The velocity command of every env, and how well each hold of it was tracked."""

from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from mjrl.envs.state import STANDING_COMMAND, State
from mjrl.envs.task import VelocityCommand
from mjrl.envs.world import World


@dataclass(frozen=True, kw_only=True)
class Holds:
  """Tracking of the holds that ended in a control step, a mean over moving envs.

  linear_error_m_s, angular_error_rad_s  distance of a hold's mean velocity from its mean command
  count                                  how many holds were measured
  """

  linear_error_m_s: float
  angular_error_rad_s: float
  count: int


class Commands:
  """Draws a command per env, holds it, steers headings, and measures each hold.

  A hold is judged by mean velocity against mean command, so that a robot that sways in step with
  its gait, or one that follows a circle, is not marked down; its first `SETTLE_S` are left out, and
  one that ends in a fall counts as not tracked at all.
  """

  SETTLE_S = 0.5

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
    self._settle_steps = round(self.SETTLE_S / dt_s)
    self._age_steps = torch.zeros(n, dtype=torch.int64, device=device)
    self._miss = torch.zeros(n, 3, device=device)  # sum over the hold of command - velocity
    self._ceiling = torch.tensor([spec.forward_m_s, spec.left_m_s, spec.yaw_rad_s], device=device)
    # Linear errors, angular errors and number of the holds that nobody has looked at yet.
    self._unseen = torch.zeros(3, device=device)
    self.set_ranges(1.0, 1.0)
    self._fixed = False

  def set_ranges(self, linear: float, angular: float) -> None:
    """Fractions of the ceilings from which the next commands are drawn."""
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
    self._age_steps.masked_fill_(mask, 0)
    self._miss.masked_fill_(mask[:, None], 0.0)
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
    counts = (self._age_steps >= self._settle_steps)[:, None]
    self._miss += s.miss * counts
    self._age_steps += 1
    over = ended | (self._age_steps >= self._hold_steps) if look else ended
    holds = None
    if self._world.backend.any(over):
      holds = self._judge(over, fell)
      self.draw(over & ~ended)
    self._steer(s)
    return holds

  def take_holds(self) -> Holds | None:
    """The holds since the last call that `advance` did not tell of; reads from the device."""
    if self._world.backend.looks_are_free:
      return None
    linear, angular, count = self._unseen.tolist()
    self._unseen.zero_()
    if not count:
      return None
    return Holds(
      linear_error_m_s=linear / count, angular_error_rad_s=angular / count, count=int(count)
    )

  def _steer(self, s: State) -> None:
    if self._fixed or self.spec.heading == 0:
      return
    turn = torch.remainder(self._heading_rad + pi - s.yaw_rad, 2 * pi) - pi  # the short way round
    turn = (turn * self.spec.heading_gain_1_s).clamp_(*self._yaw_range)
    # Not in place: the state that was read keeps the command it was under.
    self.value = torch.where(self._steered, turn[:, None], self.value)

  def _judge(self, over: Tensor, fell: Tensor) -> Holds | None:
    steps = (self._age_steps - self._settle_steps).clamp(min=1)[:, None]
    miss = torch.where(fell[:, None], self.value, self._miss / steps)
    # However early, a fall counts; a hold that met a bad number does not, and is counted elsewhere.
    enough = fell | (self._age_steps >= 2 * self._settle_steps)
    moving = torch.linalg.vector_norm(self.value, dim=1) > STANDING_COMMAND
    judged = over & enough & moving & miss.isfinite().all(1)
    if not self._world.backend.looks_are_free:
      miss = miss.masked_fill(~judged[:, None], 0.0)
      linear = torch.linalg.vector_norm(miss[:, :2], dim=1).sum()
      self._unseen += torch.stack((linear, miss[:, 2].abs().sum(), judged.sum()))
      return None
    count = int(judged.sum())
    if not count:
      return None
    miss = miss[judged]
    return Holds(
      linear_error_m_s=float(torch.linalg.vector_norm(miss[:, :2], dim=1).mean()),
      angular_error_rad_s=float(miss[:, 2].abs().mean()),
      count=count,
    )

  def save(self) -> dict[str, Tensor]:
    """What `load` needs to go on with the same commands."""
    return {name: getattr(self, name).clone() for name in self._STATE}

  def load(self, saved: dict[str, Tensor]) -> None:
    """Take up what `save` gave."""
    for name in self._STATE:
      setattr(self, name, saved[name].to(self._miss.device, copy=True))

  _STATE = ("value", "_heading_rad", "_steered", "_hold_steps", "_age_steps", "_miss")
