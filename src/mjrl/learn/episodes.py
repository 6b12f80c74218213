"""The last episodes that ended: what the mean reward and the mean length are of."""

import statistics
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

_WINDOW = 100


class Episodes:
  """Returns, and lengths in control steps, of the last 100 episodes.

  first_reward  the first mean that was logged, None before
  """

  def __init__(self) -> None:
    """None has ended."""
    self._returns: deque[float] = deque(maxlen=_WINDOW)
    self._lengths: deque[float] = deque(maxlen=_WINDOW)
    self.first_reward: float | None = None

  def add(self, finished: Iterable[tuple[float, float]]) -> None:
    """Count what `Env.take_finished` gave."""
    for episode_return, length in finished:
      self._returns.append(episode_return)
      self._lengths.append(length)

  def scalars(self) -> dict[str, float]:
    """The means, by their names in the log; none before an episode has ended."""
    if not self._returns:
      return {}
    reward = statistics.mean(self._returns)
    if self.first_reward is None:
      self.first_reward = reward
    return {
      "Train/mean_reward": reward,
      "Train/mean_episode_length": statistics.mean(self._lengths),
    }

  def save(self) -> dict[str, list[float]]:
    """What `load` takes."""
    return {"returns": list(self._returns), "lengths": list(self._lengths)}

  def load(self, saved: Mapping[str, Any]) -> None:
    """Take up what `save` gave."""
    self._returns.extend(saved["returns"])
    self._lengths.extend(saved["lengths"])
