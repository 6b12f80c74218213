"""A command for the body: twist over the feet, pitch, roll and height.

A page is built of it without torch; `mjrl.envs.postures` is the command at work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from mjrl.envs.ladders import Tracked

if TYPE_CHECKING:
  from mjrl.envs.postures import Posture
  from mjrl.envs.world import World

POSTURE = ("twist_rad", "pitch_rad", "roll_rad", "height_m")
"""The numbers of a posture, in order; see `State.posture`."""


@dataclass(frozen=True, kw_only=True)
class PostureRange:
  """From where to where each number of a posture may be asked for."""

  twist_rad: tuple[float, float]
  pitch_rad: tuple[float, float]
  roll_rad: tuple[float, float]
  height_m: tuple[float, float]

  def __post_init__(self) -> None:
    """Refuse ranges in which a level robot is not."""
    for name, (low, high) in self.ends().items():
      if low > high or (name != "height_m" and not low <= 0 <= high):
        raise ValueError(
          f"posture {name} is {(low, high)}: the lower end stands first, and angles include 0"
        )

  def ends(self) -> dict[str, tuple[float, float]]:
    """Lower and upper end of each number, in the order of `POSTURE`."""
    return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, kw_only=True)
class PostureCommand:
  """Asks for a posture of the body: other ranges for who stands than for who walks.

  A posture is drawn for each hold, or none (level, at HOME's height) for the share `neutral`, and
  again where the velocity command asks a standing robot to walk or a walking one to stand.  The
  numbers of a draw, as shares of their ranges, lie in a unit ball: each reaches the end of its
  range alone, but not all at once, where the legs would not reach.
  """

  parked: PostureRange
  walking: PostureRange
  hold_s: tuple[float, float]
  neutral: float

  def __post_init__(self) -> None:
    """Refuse what could not be drawn."""
    if not 0 < self.hold_s[0] <= self.hold_s[1]:
      raise ValueError(f"posture hold_s is {self.hold_s}: two times above 0, the shorter first")
    if not 0 <= self.neutral <= 1:
      raise ValueError(f"posture neutral is {self.neutral}: a share, from 0 to 1")

  def build(self, world: World, dt_s: float) -> Posture:
    """See `mjrl.envs.asked.Command`."""
    from mjrl.envs.postures import Posture  # loads torch

    return Posture(self, world, dt_s)


@dataclass(frozen=True, kw_only=True)
class PostureRung:
  """A level of a posture ladder: a fraction of all ranges, and the kernels' widths."""

  fraction: float
  twist_std_rad: float
  tilt_std_rad: float
  height_std_m: float


@dataclass(frozen=True, kw_only=True)
class PostureLadder:
  """Widens the posture ranges as `CommandLadder` does those of the velocity.

  twist, tilt, height  names of the reward rows whose `std_*` follow the rung
  """

  rungs: tuple[PostureRung, ...]
  twist: str
  tilt: str
  height: str
  bar_base_rad: float
  bar_base_m: float
  bar_slope: float
  dwell_steps: int
  min_holds: int
  smoothing: float

  def __post_init__(self) -> None:
    """Refuse an empty ladder."""
    if not self.rungs:
      raise ValueError("a posture ladder needs at least one rung")

  def tracked(self, level: int) -> Mapping[str, Tracked]:
    """What `Posture` measures, on a rung."""
    rung = self.rungs[level]
    rows = {
      "twist": ("rad", self.twist, rung.twist_std_rad, self.bar_base_rad),
      "tilt": ("rad", self.tilt, rung.tilt_std_rad, self.bar_base_rad),
      "height": ("m", self.height, rung.height_std_m, self.bar_base_m),
    }
    return {
      name: Tracked(
        fraction=rung.fraction,
        unit=unit,
        reward=reward,
        std=std,
        bar_base=bar_base,
        bar_slope=self.bar_slope,
      )
      for name, (unit, reward, std, bar_base) in rows.items()
    }
