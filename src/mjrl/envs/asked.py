"""What robots may be asked for beside a velocity: the rows of `Task.commands`.

A page is built of them without torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
  from torch import Tensor

  from mjrl.envs.holds import Holds
  from mjrl.envs.state import State
  from mjrl.envs.world import World


class Asked(Protocol):
  """A command at work in N envs."""

  def draw(self, mask: Tensor) -> None:
    """New ones for the masked envs, (N,) bool, which begin an episode.

    The reset events have fired, and the engine has not been reset: a command may place the robot
    for itself, in `World.start_qpos` and `World.start_qvel`.
    """
    ...

  def advance(self, s: State, ended: Tensor, fell: Tensor, look: bool) -> Holds | None:
    """Count the control step that led to `s`; change what an env is asked in mid-episode.

    Args:
      s: the state at the end of the step, which every row has seen.
      ended: (N,) bool, episodes that are over; `draw` follows for them.
      fell: (N,) bool, those among them that ended in failure.
      look: whether to look for commands that are over; not every step is worth a look.

    Returns:
      How what ended was tracked, for a command that a ladder widens; None where nothing did, or
      where looking at it is not free, see `Widened.take_holds`.
    """
    ...

  def fields(self) -> Mapping[str, Tensor]:
    """Fields of the `State`, by name.  Never written to afterwards: states keep them."""
    ...

  def save(self) -> dict[str, Any]:
    """What `load` needs to go on with the same commands."""
    ...

  def load(self, saved: Mapping[str, Any]) -> None:
    """Take up what `save` gave."""
    ...


class Command(Protocol):
  """A row of `Task.commands`: what is asked, with every number spelled out."""

  def build(self, world: World, dt_s: float) -> Asked:
    """The command at work in the envs of a world, in control steps of `dt_s`."""
    ...
