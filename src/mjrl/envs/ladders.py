"""What a command ladder is made of, whatever command it widens.

A page is built of them without torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
  from mjrl.envs.holds import Holds


@dataclass(frozen=True, kw_only=True)
class Tracked:
  """A quantity that a command asks for, on one rung.

  fraction  of its ceiling, from which the command is drawn
  unit      of the numbers below, as names end in it: "m_s"
  reward    name of the row that pays for tracking it, and std, that row's kernel's width
  bar_base, bar_slope  a hold is tracked with an error below bar_base + bar_slope * fraction *
            ceiling
  """

  fraction: float
  unit: str
  reward: str
  std: float
  bar_base: float
  bar_slope: float


class LadderSpec(Protocol):
  """Rungs that widen a command as its measured tracking allows; see `CommandLadder`."""

  @property
  def rungs(self) -> Sequence[Any]:
    """From the lowest to the highest."""
    ...

  @property
  def dwell_steps(self) -> int:
    """Least control steps on a rung."""
    ...

  @property
  def min_holds(self) -> int:
    """Least measured holds on a rung."""
    ...

  @property
  def smoothing(self) -> float:
    """Share of each hold in the moving averages."""
    ...

  def tracked(self, level: int) -> Mapping[str, Tracked]:
    """The quantities on a rung, by the names under which the command measures them."""
    ...


@runtime_checkable
class Widened(Protocol):
  """A command at work that a ladder can widen."""

  @property
  def ceilings(self) -> Mapping[str, float]:
    """The largest command of each quantity that it measures."""
    ...

  def set_ranges(self, fractions: Mapping[str, float]) -> None:
    """Draw the next commands from these fractions of the ceilings, by their names."""
    ...

  def take_holds(self) -> Holds | None:
    """The holds since the last call that `advance` did not tell of."""
    ...
