"""What the ground of a task is: flat and endless, or a generated grid of tiles that get harder."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Literal

from mjrl.names import nearest

KINDS: Mapping[str, str] = {
  "flat": "nothing",
  "slopes": "a ring around the middle: a slope up, a level crest, a slope down",
  "stairs": "the same with steps",
  "blocks": "boxes of random places, sizes and heights",
  "mounds": "round ones of random places, sizes and heights",
}
"""What stands on a tile."""


EDGE_M = 0.1
"""Left free along the edge of a tile, so that there is a way between any two."""
SMALLEST = 0.5
"""Of the heights and widths of blocks and mounds, as a share of the largest."""

_LENGTHS = (
  "tile_m",
  "platform_m",
  "crest_m",
  "max_step_m",
  "tread_m",
  "max_block_m",
  "block_m",
  "max_mound_m",
  "mound_m",
)


@dataclass(frozen=True, kw_only=True)
class TerrainLadder:
  """Moves each env to harder and easier tiles as it tracks its command.

  The holds of `dwell_episodes` episodes of an env are judged together: it moves up where both mean
  errors are below `base + up_slope * ceiling of the command`, and the command ladder is at its top,
  down where one is above `base + down_slope * ceiling`; then the next ones are counted.
  """

  base_m_s: float
  base_rad_s: float
  up_slope: float
  down_slope: float
  dwell_episodes: int

  def __post_init__(self) -> None:
    """Refuse bars that an env could pass both ways, and a dwell of nothing."""
    if self.up_slope > self.down_slope:
      raise ValueError(
        f"terrain curriculum: up_slope {self.up_slope} is above down_slope {self.down_slope}; an "
        "env would move up and down at once"
      )
    if self.dwell_episodes < 1:
      raise ValueError(
        f"terrain curriculum: dwell_episodes is {self.dwell_episodes}; at least 1 can be judged"
      )


@dataclass(frozen=True, kw_only=True)
class Terrain:
  """The ground, and what a rough one is made of.

  A column of the grid, along y, is a kind of tile; along x it gets harder, level by level: level k
  of L has (k + 1) / L of the heights and slopes below.  Envs live on the columns in turn.

  ground         "flat", or "rough" for the grid; all else is of the grid alone
  seed           of blocks and mounds: the grid is the same in every run
  kinds          of `KINDS`, a column each; one that is named twice gets twice the envs
  levels         L
  tile_m         side of a tile
  platform_m     from the middle to where slopes and stairs begin;  crest_m width of their crest
  max_slope_rad  of slopes
  max_step_m     height of a step;  tread_m from one to the next
  max_block_m    height of blocks;  block_m their longest side
  max_mound_m    height of mounds;  mound_m their largest width
  per_side       blocks, or mounds, along a side of a tile: as many rows of as many
  curriculum     what moves envs between levels; None spreads them over all, and there they stay
  level, kind    where all envs are, in place of that; None leaves it
  """

  ground: Literal["flat", "rough"]
  seed: int
  kinds: tuple[str, ...]
  levels: int
  tile_m: float
  platform_m: float
  crest_m: float
  max_slope_rad: float
  max_step_m: float
  tread_m: float
  max_block_m: float
  block_m: float
  max_mound_m: float
  mound_m: float
  per_side: int
  curriculum: TerrainLadder | None
  level: int | None
  kind: str | None

  def __post_init__(self) -> None:
    """Refuse ground that cannot be made, and places that it has not."""
    for kind in self.kinds:
      if kind not in KINDS:
        raise ValueError(f"there is no terrain kind {kind!r}; {nearest(kind, KINDS)}")
    if not self.kinds:
      raise ValueError(f"terrain kinds is empty; at least one of {', '.join(KINDS)}")
    if self.seed < 0:
      raise ValueError(f"terrain seed is {self.seed}; it must be 0 or more")
    for name in ("levels", "per_side"):
      if getattr(self, name) < 1:
        raise ValueError(f"terrain {name} is {getattr(self, name)}; it must be at least 1")
    for name in _LENGTHS:
      if getattr(self, name) <= 0:
        raise ValueError(f"terrain {name} is {getattr(self, name)}; it must be above 0")
    if not 0 < self.max_slope_rad < pi / 2:
      raise ValueError(
        f"terrain max_slope_rad is {self.max_slope_rad}; it must be above 0 and below pi / 2"
      )
    free_m = self.tile_m / 2 - EDGE_M
    if self.platform_m + self.crest_m + 2 * self.tread_m > free_m:
      raise ValueError(
        f"terrain platform_m {self.platform_m}, crest_m {self.crest_m} and two treads of "
        f"{self.tread_m} m do not fit into half a tile less its edge, {free_m:g} m"
      )
    if max(self.block_m, self.mound_m) > 2 * free_m:
      raise ValueError(
        f"terrain block_m {self.block_m} and mound_m {self.mound_m} must fit on a tile less its "
        f"edges, {2 * free_m:g} m"
      )
    if 2 * self.max_mound_m > self.mound_m * SMALLEST:
      raise ValueError(
        f"terrain max_mound_m is {self.max_mound_m}; at most a quarter of mound_m, {self.mound_m}: "
        "a mound is the top of a ball"
      )
    if self.level is not None and not 0 <= self.level < self.levels:
      raise ValueError(f"terrain level is {self.level}; the levels are 0 to {self.levels - 1}")
    if self.kind is not None and self.kind not in self.kinds:
      raise ValueError(
        f"no tile of the terrain is of kind {self.kind!r}; {nearest(self.kind, self.kinds)}"
      )

  @property
  def rough(self) -> bool:
    """Whether there is a grid."""
    return self.ground == "rough"
