"""How long and how often each foot is on the ground: what shows a robot that limps."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mjrl.envs.state import State


class Footfalls:
  """Contacts and landings of each foot, over all envs and the steps that were looked at."""

  def __init__(self, feet: Sequence[str], device: str, dt_s: float) -> None:
    """Nothing has been seen.

    Args:
      feet: their names, in the order of the state's.
      device: of the state.
      dt_s: length of a control step.
    """
    self._feet, self._dt_s = tuple(feet), dt_s
    self._sums = torch.zeros(2 * len(feet) + 1, device=device)  # contacts, landings, env-steps

  def add(self, s: State) -> None:
    """Count one control step."""
    feet = torch.cat([s.foot_contact_float, s.touchdown_float], dim=1).sum(0)
    self._sums[:-1] += feet
    self._sums[-1] += len(s.touchdown)

  def drain(self, pool: Callable[[Tensor], Tensor] = lambda sums: sums) -> dict[str, float]:
    """Share of time on the ground and landings per second of each foot; starts anew.

    Args:
      pool: adds up what several processes have summed.
    """
    *sums, steps = pool(self._sums).tolist()
    self._sums.zero_()
    if not steps:
      return {}
    contacts, landings = sums[: len(self._feet)], sums[len(self._feet) :]
    found = {}
    for foot, down, landed in zip(self._feet, contacts, landings, strict=True):
      found[f"{foot}/duty"] = down / steps
      found[f"{foot}/landings_1_s"] = landed / (steps * self._dt_s)
    return found
