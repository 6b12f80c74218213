"""Reward and metric tables at work: evaluated per step, logged per episode and iteration."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from mjrl.envs.state import State
from mjrl.envs.task import Reward, Term
from mjrl.names import nearest


class Rewards:
  """Sum over the rows of weight * value * dt; and each row's share of the episodes that ended.

  Rows of weight zero are not evaluated, unless their number is one that a curriculum moves.
  """

  def __init__(
    self, rows: Mapping[str, Reward], num_envs: int, device: str, dt_s: float, kept: set[str]
  ) -> None:
    """Copy the rows' numbers, which curricula move; rows in `kept` stay even at weight zero."""
    self.rows = {name: row for name, row in rows.items() if row.weight != 0 or name in kept}
    self._own = {name: {"weight": row.weight, **row.params} for name, row in self.rows.items()}
    self.numbers = {name: dict(own) for name, own in self._own.items()}
    self._eased: dict[tuple[str, str], tuple[float, float]] = {}
    self._params: dict[str, dict[str, float]] = {}
    self._dt_s = dt_s
    self._scale = torch.zeros(len(self.rows), 1, device=device)
    self._refresh()
    self._sums = torch.zeros(len(self.rows), num_envs, device=device)
    self._values = self._sums
    self._ended = torch.zeros(len(self.rows), device=device)
    self._episodes = torch.zeros((), device=device)

  def score(self, s: State) -> Tensor:
    """Reward of the step, (N,)."""
    values = torch.stack([row.fn(s, **self._params[name]) for name, row in self.rows.items()])
    self._values = values
    self._sums.addcmul_(values, self._scale)
    return self._scale[:, 0] @ values

  def set_own(self, row: str, key: str, value: float) -> None:
    """Change what the task itself asks for: a row's weight or one of its parameters."""
    self._check(row, key)
    self._own[row][key] = value
    self._refresh()

  def set_ease(self, row: str, key: str, easy: float, ease: float) -> None:
    """Use own + ease * (easy - own) for a row's weight or one of its parameters."""
    self._check(row, key)
    self._eased[row, key] = easy, ease
    self._refresh()

  def forget(self, mask: Tensor) -> None:
    """Drop the masked envs' sums: one number that is not finite would stay in the log for good."""
    self._sums.masked_fill_(mask, 0.0)

  def eased(self) -> dict[str, tuple[float, float]]:
    """Numbers in use that are not the task's own: "<row>.<number>" to (own, used)."""
    return {
      f"{row}.{key}": (self._own[row][key], self.numbers[row][key])
      for row, key in self._eased
      if self.numbers[row][key] != self._own[row][key]
    }

  def end_episodes(self, mask: Tensor, share: Tensor) -> None:
    """Put the masked envs' sums aside for the log, and start them anew.

    Args:
      mask: (N,) bool.
      share: (N,) part of a full episode's length that each env's could last, 1 but for first ones.
    """
    ended = mask.float()
    self._ended += self._sums @ ended
    self._episodes += torch.dot(share, ended)
    self._sums *= 1 - ended

  def drain(
    self, episode_s: float, pool: Callable[[Tensor], Tensor] = lambda sums: sums
  ) -> dict[str, float]:
    """Row to its sum over an ended episode divided by a full episode's length; empties the log.

    Args:
      episode_s: length of a full episode, s.
      pool: adds up what several processes have summed.
    """
    sums = pool(torch.cat([self._ended, self._episodes[None]]))
    episodes = float(sums[-1])
    self._ended.zero_()
    self._episodes.zero_()
    if not episodes:
      return {}
    means = (sums[:-1] / (episodes * episode_s)).tolist()
    return dict(zip(self.rows, means, strict=True))

  def latest(self) -> Tensor:
    """Each row's weight times its value when last scored, per second.  (rows, N)."""
    return self._values * self._scale / self._dt_s

  def bad_rows(self) -> Tensor:
    """Which rows were not finite in some env when last scored, (rows,) bool."""
    return ~self._values.isfinite().all(1)

  def save(self) -> dict[str, Tensor]:
    """What `load` needs to go on in the middle of episodes."""
    return {
      "sums": self._sums.clone(),
      "ended": self._ended.clone(),
      "episodes": self._episodes.clone(),
    }

  def load(self, saved: dict[str, Tensor]) -> None:
    """Take up what `save` gave."""
    for mine, name in ((self._sums, "sums"), (self._ended, "ended"), (self._episodes, "episodes")):
      mine.copy_(saved[name])

  def _check(self, row: str, key: str) -> None:
    if row not in self._own:
      raise ValueError(f"no reward row {row!r}; {nearest(row, self._own)}")
    if key not in self._own[row]:
      raise ValueError(f"reward {row!r} has no number {key!r}; {nearest(key, self._own[row])}")

  def _refresh(self) -> None:
    self.numbers = {name: dict(own) for name, own in self._own.items()}
    for (row, key), (easy, ease) in self._eased.items():
      own = self._own[row][key]
      self.numbers[row][key] = own + ease * (easy - own)
    self._params = {
      name: {key: value for key, value in numbers.items() if key != "weight"}
      for name, numbers in self.numbers.items()
    }
    weights = [numbers["weight"] for numbers in self.numbers.values()]
    self._scale.copy_(torch.tensor(weights)[:, None] * self._dt_s)


class Metrics:
  """Means over the envs and steps since the last drain."""

  def __init__(self, rows: Mapping[str, Term], device: str) -> None:
    """Start with nothing measured."""
    self.rows = dict(rows)
    self._totals = torch.zeros(len(rows), device=device)
    self._shares = torch.zeros(len(rows), device=device)

  def add(self, s: State, counted: Tensor | None = None) -> None:
    """Count one control step, of the `counted` envs, (N,) bool, or of all."""
    if not self.rows:
      return
    pairs = [row.fn(s, **row.params) for row in self.rows.values()]
    values = torch.stack([value for value, _ in pairs])
    shares = torch.stack([share for _, share in pairs])
    if counted is not None:  # filled, not multiplied: an env that does not count may be no number
      values, shares = values.masked_fill(~counted, 0.0), shares.masked_fill(~counted, 0.0)
    self._totals += torch.linalg.vecdot(values, shares)
    self._shares += shares.sum(1)

  def drain(self, pool: Callable[[Tensor], Tensor] = lambda sums: sums) -> dict[str, float]:
    """Metric to its mean, without those that had nothing to measure; starts anew.

    Args:
      pool: adds up what several processes have summed.
    """
    totals, shares = pool(torch.stack([self._totals, self._shares])).tolist()
    self._totals.zero_()
    self._shares.zero_()
    return {
      name: total / share
      for name, total, share in zip(self.rows, totals, shares, strict=True)
      if share > 0
    }
