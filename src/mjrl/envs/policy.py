"""Who acts in an environment, and how it is driven."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from mjrl.envs.env import Env, Step


class Policy(Protocol):
  """Acts on observations, and may remember those of the episode.

  Drive it with `begin` and `advance`, so that no env acts on the memory of an episode that is over.
  """

  def __call__(self, observations: Mapping[str, Tensor]) -> Tensor:
    """Observation groups, (N, width) each, to the action, (N, G)."""
    ...

  def reset(self, ended: Tensor | None = None) -> None:
    """Forget the episodes that ended, (N,) bool; None forgets all, and N may be another then."""
    ...


@dataclass(frozen=True)
class Memoryless:
  """A policy of the current observations alone, or of none."""

  act: Callable[[Mapping[str, Tensor]], Tensor]

  def __call__(self, observations: Mapping[str, Tensor]) -> Tensor:
    """As `Policy`."""
    return self.act(observations)

  def reset(self, ended: Tensor | None = None) -> None:
    """There is nothing to forget."""


def begin(env: Env, policy: Policy) -> dict[str, Tensor]:
  """Start every env anew, and the policy with it; returns the observations to act on."""
  policy.reset()
  return env.reset()


def advance(env: Env, policy: Policy, observations: Mapping[str, Tensor]) -> Step:
  """One control step by the policy, which then forgets the episodes that ended in it."""
  step = env.step(policy(observations))
  policy.reset(step.terminated | step.timed_out)
  return step
