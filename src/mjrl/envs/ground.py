"""How high the ground is, for rows and for starts: worked out from the shapes that stand on it."""

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
from torch import Tensor

from mjrl.envs.terrain import Terrain
from mjrl.envs.terrain_shapes import Array, tile_centres_m, tiles

_FAR_M = 1e3  # where nothing is


class Ground:
  """Heights over the xy plane of the world: those of the grid, and 0 around it."""

  def __init__(self, terrain: Terrain, reach_m: float, device: str) -> None:
    """Put the grid's shapes on the device, tile by tile.

    Args:
      terrain: a rough one.
      reach_m: of the robot from its base, seen from above, for `clear_m`.
      device: to work on.
    """
    self._tile_m, self._reach_m = terrain.tile_m, reach_m
    self._counts = torch.tensor([terrain.levels, len(terrain.kinds)], device=device)
    on_grid = [tile for level in tiles(terrain) for tile in level]

    def table(parts: Sequence[Array], nothing: Sequence[float]) -> Tensor:
      """(tiles, most of one tile, numbers), filled up with shapes that are nowhere."""
      most = max(map(len, parts))
      filled = np.tile(np.array(nothing, np.float32), (len(parts), most, 1))
      for row, part in zip(filled, parts, strict=True):
        row[: len(part)] = part
      return torch.from_numpy(filled).to(device)

    self._boxes = table([tile.boxes for tile in on_grid], (0, 0, -_FAR_M, -_FAR_M, 0))
    self._mounds = table([tile.mounds for tile in on_grid], (_FAR_M, _FAR_M, 1, 0))
    self._rings = table([tile.rings for tile in on_grid], (_FAR_M, _FAR_M, 1, 0))
    self._centres = torch.tensor(tile_centres_m(terrain), dtype=torch.float32, device=device)
    self._centres = self._centres.flatten(0, 1)

  def height_m(self, xy_w: Tensor) -> Tensor:
    """Height of the ground under points, (..., 2) to (...)."""
    return self._highest(xy_w, 0.0)

  def clear_m(self, xy_w: Tensor) -> Tensor:
    """The same of the highest ground within the robot's reach, on the tile of the point."""
    return self._highest(xy_w, self._reach_m)

  def _highest(self, xy_w: Tensor, within_m: float) -> Tensor:
    """The highest of the tile's shapes, each of them grown by `within_m` to all sides."""
    cell = torch.floor(xy_w / self._tile_m + self._counts / 2).long()
    # Beside the grid, the nearest tile counts: no shape reaches over its tile's edge.
    level, column = cell.clamp(min=0).minimum(self._counts - 1).unbind(-1)
    tile = level * self._counts[1] + column
    at = (xy_w - self._centres[tile]).unsqueeze(-2)  # (..., 1, 2)

    boxes, mounds, rings = self._boxes[tile], self._mounds[tile], self._rings[tile]
    under = ((at - boxes[..., :2]).abs() <= boxes[..., 2:4] + within_m).all(-1)
    heights = [boxes[..., 4] * under]
    away = (torch.linalg.vector_norm(at - mounds[..., :2], dim=-1) - within_m).clamp(min=0)
    radius, top = mounds[..., 2], mounds[..., 3]
    heights.append((radius.square() - away.square()).clamp(min=0).sqrt() - radius + top)
    out = at.abs().amax(-1)
    begins, ends, slope, crest = rings.unbind(-1)
    way = torch.minimum(out + within_m - begins, ends - out + within_m)
    heights.append(torch.minimum(way * slope, crest))
    return torch.cat(heights, -1).amax(-1).clamp(min=0)


def reach_m(model: mujoco.MjModel) -> float:
  """How far the robot's collision shapes are from its base at HOME, seen from above."""
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_kinematics(model, data)
  shapes = (model.geom_bodyid > 0) & (model.geom_contype > 0)
  away_m = np.linalg.norm(data.geom_xpos[shapes, :2] - data.qpos[:2], axis=1)
  return float((away_m + model.geom_rbound[shapes]).max())
