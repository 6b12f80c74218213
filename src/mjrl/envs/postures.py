"""The posture that every env is asked for, and how well each hold of it was tracked."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mjrl.envs.asked import Asked
from mjrl.envs.holds import HoldMeter, Holds
from mjrl.envs.posture import PostureCommand
from mjrl.envs.state import State
from mjrl.envs.world import World


class Posture:
  """The posture that each env is asked for, and how well each hold of it was tracked."""

  def __init__(self, spec: PostureCommand, world: World, dt_s: float) -> None:
    """Start neutral; `draw` gives the first postures.

    Raises:
      ValueError: HOME's height is outside of a range.
    """
    self.spec = spec
    self._world, self._dt_s = world, dt_s
    n, device = world.num_envs, world.backend.device
    home_m = world.robot.home_height_m
    for name, of in (("parked", spec.parked), ("walking", spec.walking)):
      low, high = of.height_m
      if not low <= home_m <= high:
        raise ValueError(
          f"posture {name}.height_m is {of.height_m}: it must include HOME's height, {home_m} m"
        )
    self._neutral = torch.tensor([0.0, 0.0, 0.0, home_m], device=device)
    ends = [list(of.ends().values()) for of in (spec.parked, spec.walking)]
    # From neutral to the lower and the upper end: parked, walking; number; end.
    self._reach = torch.tensor(ends, device=device) - self._neutral[:, None]
    self._fraction = torch.ones(4, device=device)
    self.value = self._neutral.repeat(n, 1)
    self._moving = torch.zeros(n, dtype=torch.bool, device=device)
    self._hold_steps = torch.zeros(n, dtype=torch.int64, device=device)
    self._meter = HoldMeter(world, dt_s, 4, ("twist", "tilt", "height"), _errors)
    self._fixed = False

  @property
  def ceilings(self) -> Mapping[str, float]:
    """The largest command to who walks: rad, rad, and m from HOME's height."""
    twist, pitch, roll, height = self._reach[1].abs().amax(1).tolist()
    return {"twist": twist, "tilt": max(pitch, roll), "height": height}

  def set_ranges(self, fractions: Mapping[str, float]) -> None:
    """Fractions of the ranges, by the names of `ceilings`, from which postures are drawn."""
    of = [fractions[name] for name in ("twist", "tilt", "tilt", "height")]
    self._fraction = torch.tensor(of, device=self._fraction.device)

  def fix(self, posture: Tensor) -> None:
    """Hold this posture, (N, 4), in every env until told otherwise."""
    self.value = posture.to(self.value)
    self._fixed = True

  def draw(self, mask: Tensor) -> None:
    """New postures for the masked envs; see `mjrl.envs.asked.Asked`."""
    self._meter.begin(mask)
    if self._fixed:
      return
    spec, draws = self.spec, self._world.uniform(0.0, 1.0, 6)
    share = 2 * draws[:, :4] - 1
    share = share / torch.linalg.vector_norm(share, dim=1, keepdim=True).clamp(min=1)
    share = share.masked_fill((draws[:, 4] < spec.neutral)[:, None], 0.0)
    reach = self._reach[self._moving.long()] * self._fraction[:, None]
    offset = share.clamp(min=0) * reach[:, :, 1] - share.clamp(max=0) * reach[:, :, 0]
    hold_s = spec.hold_s[0] + (spec.hold_s[1] - spec.hold_s[0]) * draws[:, 5]
    self.value = torch.where(mask[:, None], self._neutral + offset, self.value)
    self._hold_steps = torch.where(mask, (hold_s / self._dt_s).long(), self._hold_steps)

  def advance(self, s: State, ended: Tensor, fell: Tensor, look: bool) -> Holds | None:
    """Count the step, and draw where a hold is over; see `mjrl.envs.asked.Asked`."""
    self._meter.count(s.posture_miss)
    over = ended
    if look:
      moving = s.moving > 0
      over = ended | (self._meter.age_steps >= self._hold_steps) | (moving != self._moving)
      self._moving = moving
    holds = None
    if self._world.backend.any(over):
      missed = self.value - self._neutral
      holds = self._meter.judge(over, fell, missed, (missed != 0).any(1))
      self.draw(over & ~ended)
    return holds

  def take_holds(self) -> Holds | None:
    """See `mjrl.envs.ladders.Widened`."""
    return self._meter.take()

  def fields(self) -> Mapping[str, Tensor]:
    """See `mjrl.envs.asked.Asked`."""
    return {"posture": self.value}

  def save(self) -> dict[str, Any]:
    """What `load` needs to go on with the same postures."""
    return {name: getattr(self, name).clone() for name in self._STATE} | {
      "hold": self._meter.save()
    }

  def load(self, saved: Mapping[str, Any]) -> None:
    """Take up what `save` gave."""
    for name in self._STATE:
      setattr(self, name, saved[name].to(self.value.device, copy=True))
    self._meter.load(saved["hold"])

  _STATE = ("value", "_moving", "_hold_steps")


def posture_of(asked: Mapping[str, Asked]) -> Posture | None:
  """The posture command among those at work in an env, if there is one."""
  return next((command for command in asked.values() if isinstance(command, Posture)), None)


def _errors(miss: Tensor) -> tuple[Tensor, Tensor, Tensor]:
  """Distance of twist, of pitch and roll together, and of height, from the command.  (M,) each."""
  return miss[:, 0].abs(), torch.linalg.vector_norm(miss[:, 1:3], dim=1), miss[:, 3].abs()
