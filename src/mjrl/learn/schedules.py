"""Learning rates by a plan, and not by the divergence of policies as the adaptive one."""

from collections.abc import Callable, Mapping
from math import cos, floor, pi

from mjrl.envs.recipe import SCHEDULES

_FACTORS: Mapping[str, Callable[[float], float]] = {
  "constant": lambda done: 1.0,
  "linear": lambda done: 1.0 - done,
  "cosine": lambda done: 0.5 * (1.0 + cos(pi * done)),
  "step": lambda done: 0.5 ** floor(4 * done),
  "exponential": lambda done: 0.01**done,
}
assert {"adaptive", *_FACTORS} == set(SCHEDULES)


def factor(schedule: str, iteration: int, iterations: int) -> float | None:
  """What the recipe's learning rate is multiplied by; None where the algorithm adapts it itself.

  Args:
    schedule: one of `SCHEDULES`.
    iteration: that is about to be learned, from 0.
    iterations: of the whole run, those before a resumed one's first counted.
  """
  if schedule == "adaptive":
    return None
  return _FACTORS[schedule](iteration / iterations)
