"""Gait clocks: which foot should be on the ground at which control step."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin


@dataclass(frozen=True, kw_only=True)
class Gait:
  """A cycle in which groups of feet swing one after the other, counted in control steps.

  Group g swings in the `swing_steps` control steps from `g * swing_steps` on, so the groups fill
  the cycle; the duty factor of a foot is `1 - 1 / len(groups)`.
  groups      feet of each group, in swing order
  mirror      what left-right mirroring does to (sin, cos) of the phase: a sign each
  """

  name: str
  swing_steps: int
  groups: tuple[tuple[str, ...], ...]
  mirror: tuple[int, int]

  def __post_init__(self) -> None:
    """Refuse a clock that leaves a foot out or swings it twice."""
    feet = [foot for group in self.groups for foot in group]
    if len(set(feet)) != len(feet):
      raise ValueError(f"gait {self.name}: a foot swings twice in {self.groups}")
    if self.swing_steps < 1 or len(self.groups) < 2:
      raise ValueError(f"gait {self.name}: needs a swing of at least 1 step and at least 2 groups")

  @property
  def cycle_steps(self) -> int:
    """Control steps of a whole cycle."""
    return self.swing_steps * len(self.groups)

  @property
  def duty(self) -> float:
    """Share of the cycle that a foot spends on the ground."""
    return 1 - 1 / len(self.groups)

  def contact_table(self, feet: Sequence[str]) -> list[list[bool]]:
    """Whether each foot should be on the ground, (cycle_steps, F).

    Raises:
      ValueError: the groups are not made of exactly these feet.
    """
    named = {foot: g for g, group in enumerate(self.groups) for foot in group}
    if set(named) != set(feet):
      raise ValueError(
        f"gait {self.name}: groups {self.groups} are not made of the feet {tuple(feet)}"
      )
    return [
      [step // self.swing_steps != named[foot] for foot in feet] for step in range(self.cycle_steps)
    ]

  def phase_table(self) -> list[tuple[float, float]]:
    """Sine and cosine of the phase at each step of the cycle, (cycle_steps, 2)."""
    angles = [2 * pi * step / self.cycle_steps for step in range(self.cycle_steps)]
    return [(sin(a), cos(a)) for a in angles]
