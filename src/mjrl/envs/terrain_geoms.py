"""The shapes of a `Terrain`'s grid as geoms of the world."""

from typing import Any

import mujoco
import numpy as np

from mjrl.envs.terrain import Terrain
from mjrl.envs.terrain_shapes import Array, tile_centres_m, tiles

_DEEP_M = 0.1  # how far shapes go down into the ground, so that their only faces are those one sees
_COLOR = [0.62, 0.70, 0.66, 1]


def add_terrain(spec: mujoco.MjSpec, terrain: Terrain) -> None:
  """The grid's shapes, on the flat ground that there is."""
  centres = tile_centres_m(terrain)
  for level, row in enumerate(tiles(terrain)):
    for column, tile in enumerate(row):
      x, y = centres[level, column]
      for box_x, box_y, half_x, half_y, top in tile.boxes:
        half_z = (top + _DEEP_M) / 2
        _add_shape(
          spec,
          type=mujoco.mjtGeom.mjGEOM_BOX,
          pos=[x + box_x, y + box_y, top - half_z],
          size=[half_x, half_y, half_z],
        )
      for ball_x, ball_y, radius, top in tile.mounds:
        _add_shape(
          spec,
          type=mujoco.mjtGeom.mjGEOM_SPHERE,
          pos=[x + ball_x, y + ball_y, top - radius],
          size=[radius, 0, 0],
        )
      for k, side in enumerate(side for ring in tile.rings for side in _sides(ring)):
        mesh = spec.add_mesh(name=f"slope {level} {column} {k}", uservert=side.ravel())
        _add_shape(spec, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh.name, pos=[x, y, 0])


def _add_shape(spec: mujoco.MjSpec, **geom: Any) -> None:
  spec.worldbody.add_geom(contype=1, conaffinity=1, condim=1, rgba=_COLOR, **geom)


def _sides(ring: Array) -> list[Array]:
  """A ring as its four sides, each convex and cut off along the diagonals: corners, (12, 3)."""
  inner, outer, slope, crest = ring
  run = crest / slope
  profile = [  # seen along a side: distance from the middle, height
    (inner, -_DEEP_M),
    (inner, 0.0),
    (inner + run, crest),
    (outer - run, crest),
    (outer, 0.0),
    (outer, -_DEEP_M),
  ]
  corners = np.array([(out, end * out, z) for out, z in profile for end in (-1, 1)])
  turns = ((1, 0), (0, 1), (-1, 0), (0, -1))  # cosine and sine of quarter turns
  return [corners @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) for c, s in turns]
