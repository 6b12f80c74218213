"""What stands on a `Terrain`'s grid: boxes, mounds and rings of slopes, on an endless plain.

Shapes, and not a height field: its triangles push a foot that sinks in a few millimetres off to the
side at every edge, and let it through where it is pressed hard.
"""

from dataclasses import dataclass
from math import tan

import numpy as np
from numpy.typing import NDArray

from mjrl.envs.terrain import EDGE_M, SMALLEST, Terrain

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Tile:
  """What stands on one tile, in metres from its middle.

  boxes   (B, 5) x, y, half of the side along x and along y, height
  mounds  (S, 4) x, y, radius of the sphere that shows, its height
  rings   (R, 4) from the middle, along x or y, whichever is more: where the way up begins, where
          the way down ends; rise over run; height of the level crest
  """

  boxes: Array
  mounds: Array
  rings: Array


def tiles(terrain: Terrain) -> list[list[Tile]]:
  """The tiles of the grid, of each level those of each column."""
  rng = np.random.default_rng(terrain.seed)
  return [
    [_tile(terrain, kind, (level + 1) / terrain.levels, rng) for kind in terrain.kinds]
    for level in range(terrain.levels)
  ]


def tile_centres_m(terrain: Terrain) -> Array:
  """Middle of the tile of each level and column, (levels, columns, 2), in the world."""
  x = (np.arange(terrain.levels) - (terrain.levels - 1) / 2) * terrain.tile_m
  y = (np.arange(len(terrain.kinds)) - (len(terrain.kinds) - 1) / 2) * terrain.tile_m
  return np.stack(np.meshgrid(x, y, indexing="ij"), -1, dtype=np.float64)


def _tile(terrain: Terrain, kind: str, share: float, rng: np.random.Generator) -> Tile:
  """A tile of a kind; share in (0, 1] is how hard."""
  boxes, mounds, rings = np.zeros((0, 5)), np.zeros((0, 4)), np.zeros((0, 4))
  match kind:
    case "slopes":
      rings = _ring(terrain, tan(share * terrain.max_slope_rad))
    case "stairs":
      boxes = _stairs(terrain, share * terrain.max_step_m)
    case "blocks":
      boxes = _blocks(terrain, share * terrain.max_block_m, rng)
    case "mounds":
      mounds = _mounds(terrain, share * terrain.max_mound_m, rng)
  return Tile(boxes=boxes, mounds=mounds, rings=rings)


def _ring(terrain: Terrain, slope: float) -> Array:
  inner, outer = terrain.platform_m, terrain.tile_m / 2 - EDGE_M
  run = (outer - inner - terrain.crest_m) / 2
  return np.array([[inner, outer, slope, run * slope]])


def _stairs(terrain: Terrain, step_m: float) -> Array:
  """Frames within frames, each of four boxes and a step higher, up to the crest and down again."""
  inner, outer = terrain.platform_m, terrain.tile_m / 2 - EDGE_M
  count = int((outer - inner - terrain.crest_m) / 2 / terrain.tread_m + 1e-9) + 1
  boxes = []
  for k in range(count):
    near, far = inner + k * terrain.tread_m, outer - k * terrain.tread_m
    middle, half = (near + far) / 2, (far - near) / 2
    for x, y, half_x, half_y in (
      (middle, 0, half, far),
      (-middle, 0, half, far),
      (0, middle, near, half),
      (0, -middle, near, half),
    ):
      boxes.append((x, y, half_x, half_y, (k + 1) * step_m))
  return np.array(boxes)


def _blocks(terrain: Terrain, height_m: float, rng: np.random.Generator) -> Array:
  sides = terrain.block_m * rng.uniform(SMALLEST, 1, (terrain.per_side**2, 2)) / 2
  heights = height_m * rng.uniform(SMALLEST, 1, (terrain.per_side**2, 1))
  return np.hstack((_places(terrain, sides, rng), sides, heights))


def _mounds(terrain: Terrain, height_m: float, rng: np.random.Generator) -> Array:
  across = terrain.mound_m * rng.uniform(SMALLEST, 1, (terrain.per_side**2, 1)) / 2
  heights = height_m * rng.uniform(SMALLEST, 1, (terrain.per_side**2, 1))
  radii = (across**2 + heights**2) / (2 * heights)
  return np.hstack((_places(terrain, across, rng), radii, heights))


def _places(terrain: Terrain, half_m: Array, rng: np.random.Generator) -> Array:
  """A random place in each cell of a lattice over the tile, so that no part of it is empty."""
  along = np.arange(terrain.per_side)
  cells = np.stack(np.meshgrid(along, along), -1).reshape(-1, 2)
  free = terrain.tile_m / 2 - EDGE_M
  places = ((cells + rng.uniform(size=cells.shape)) / terrain.per_side * 2 - 1) * free
  return np.clip(places, half_m - free, free - half_m)
