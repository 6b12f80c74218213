"""What a policy's actions do: kinds of `Task.action`.  A page is built of them without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
  from torch import Tensor

  from mjrl.envs.state import State


class Action(Protocol):
  """From a policy's action to what the actuators are told."""

  def ctrl(self, s: State, action: Tensor) -> Tensor:
    """What the engine's actuators are told, (N, nu), for a whole control step.

    Args:
      s: the state that the policy acted on.
      action: (N, G), any real numbers.
    """
    ...


@dataclass(frozen=True, kw_only=True)
class JointOffset:
  """Position targets of the driven joints: HOME + scale * action, less the encoder's bias."""

  scale_rad: float

  def ctrl(self, s: State, action: Tensor) -> Tensor:
    """See `Action`."""
    target = s.home_rad - s.encoder_bias_rad
    return target.index_add(1, s.gait_joints, action, alpha=self.scale_rad)
