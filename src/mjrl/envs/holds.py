"""How well the holds of a command were tracked: what ladders climb by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mjrl.envs.world import World


@dataclass(frozen=True, kw_only=True)
class Holds:
  """Tracking of the holds that ended in a control step, means over those that were measured.

  errors  what was tracked, such as "linear", to the distance of a hold's mean from its mean command
  count   how many holds were measured
  """

  errors: Mapping[str, float]
  count: int


class HoldMeter:
  """Measures the hold of each env: what was asked less what was done, a mean over the hold.

  Means are compared, so that a robot that sways in step with its gait, or one that follows a
  circle, is not marked down; the first `SETTLE_S` are left out, and a hold that ends in a fall
  counts as not tracked at all.
  """

  SETTLE_S = 0.5

  def __init__(
    self,
    world: World,
    dt_s: float,
    width: int,
    names: Sequence[str],
    errors: Callable[[Tensor], Sequence[Tensor]],
  ) -> None:
    """Begin a hold in every env.

    Args:
      world: the envs.
      dt_s: of a control step.
      width: numbers of the command.
      names: of what is tracked.
      errors: mean misses, (M, width), to what `names` name, (M,) each.
    """
    n, device = world.num_envs, world.backend.device
    self._backend, self._names, self._errors = world.backend, tuple(names), errors
    self._settle_steps = round(self.SETTLE_S / dt_s)
    self.age_steps = torch.zeros(n, dtype=torch.int64, device=device)
    self._miss = torch.zeros(n, width, device=device)  # sum over the hold of command - done
    # Sums per env of each error and of holds, where somebody wants them.
    self.tracked: Tensor | None = None
    # Errors and number of the holds that nobody has looked at yet.
    self._unseen = torch.zeros(len(self._names) + 1, device=device)

  def begin(self, mask: Tensor) -> None:
    """A new hold in the masked envs."""
    self.age_steps.masked_fill_(mask, 0)
    self._miss.masked_fill_(mask[:, None], 0.0)

  def count(self, miss: Tensor) -> None:
    """Count a control step, with what was asked less what was done in it, (N, width)."""
    counts = (self.age_steps >= self._settle_steps)[:, None]
    self._miss += miss * counts
    self.age_steps += 1

  def judge(self, over: Tensor, fell: Tensor, missed: Tensor, counts: Tensor) -> Holds | None:
    """How the holds that are over were tracked.

    Args:
      over: (N,) bool, holds that are over.
      fell: (N,) bool, episodes that ended in failure.
      missed: (N, width) the miss of who does not track at all.
      counts: (N,) bool, holds that say something: who is asked to stand tracks by standing.

    Returns:
      None where none was measured, or where looking is not free: `take` has them.
    """
    steps = (self.age_steps - self._settle_steps).clamp(min=1)[:, None]
    miss = torch.where(fell[:, None], missed, self._miss / steps)
    # However early, a fall counts; a hold that met a bad number does not, and is counted elsewhere.
    enough = fell | (self.age_steps >= 2 * self._settle_steps)
    judged = over & enough & counts & miss.isfinite().all(1)
    if self.tracked is not None:
      errors = torch.stack((*self._errors(miss), torch.ones_like(miss[:, 0])), 1)
      self.tracked += errors.masked_fill(~judged[:, None], 0.0)
    if not self._backend.looks_are_free:
      errors = self._errors(miss.masked_fill(~judged[:, None], 0.0))
      self._unseen += torch.stack([*(error.sum() for error in errors), judged.sum()])
      return None
    count = int(judged.sum())
    if not count:
      return None
    errors = self._errors(miss[judged])
    return Holds(
      errors={name: float(e.mean()) for name, e in zip(self._names, errors, strict=True)},
      count=count,
    )

  def take(self) -> Holds | None:
    """The holds since the last call that `judge` did not tell of; reads from the device."""
    if self._backend.looks_are_free:
      return None
    *errors, count = self._unseen.tolist()
    self._unseen.zero_()
    if not count:
      return None
    means = {name: error / count for name, error in zip(self._names, errors, strict=True)}
    return Holds(errors=means, count=int(count))

  def save(self) -> dict[str, Tensor]:
    """What `load` needs to go on in the middle of holds."""
    return {"age_steps": self.age_steps.clone(), "miss": self._miss.clone()}

  def load(self, saved: Mapping[str, Tensor]) -> None:
    """Take up what `save` gave."""
    self.age_steps.copy_(saved["age_steps"])
    self._miss.copy_(saved["miss"])
