"""The ground of the walking tasks: flat, until `--terrain rough` puts them on a grid for jumper.

The bars of the curriculum are the reference's; the shapes are ours, for a robot that stands 0.1 m
high and lifts its feet by 25 mm.
"""

from math import radians

from mjrl.envs.terrain import Terrain, TerrainLadder

TERRAIN = Terrain(
  ground="flat",
  seed=0,
  kinds=("slopes", "stairs", "blocks", "mounds", "flat"),
  levels=6,
  tile_m=4.0,
  platform_m=0.4,
  crest_m=0.3,
  max_slope_rad=radians(15),
  max_step_m=0.04,
  tread_m=0.2,
  max_block_m=0.05,
  block_m=0.7,
  max_mound_m=0.08,
  mound_m=0.6,
  per_side=5,
  curriculum=TerrainLadder(
    base_m_s=0.03,
    base_rad_s=0.18,
    up_slope=0.25,
    down_slope=0.5,
    dwell_episodes=3,  # the reference's 12 are 500 iterations a level: a third of a native run
  ),
  level=None,
  kind=None,
)
