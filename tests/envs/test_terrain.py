"""Rough ground: its shapes, how high it is said to be, and where robots start on it."""

from dataclasses import replace
from math import tan

import mujoco
import numpy as np
import pytest
import torch

from mjrl.envs.ground import Ground
from mjrl.envs.scene import compile_scene
from mjrl.envs.terrain_shapes import tile_centres_m


@pytest.fixture(scope="session")
def rough(calm):
  """The calm task on rough ground, envs spread over all tiles, none asked to move."""
  terrain = replace(calm.terrain, ground="rough", curriculum=None)
  return replace(calm, terrain=terrain, command=replace(calm.command, standing=1.0))


@pytest.fixture(scope="session")
def ground(rough):
  return Ground(rough.terrain, 0.0, "cpu")


def heights(ground, x, y):
  return ground.height_m(torch.tensor(np.stack((x, y), -1), dtype=torch.float32)).numpy()


def along(ground, terrain, level, kind, samples=4001):
  """Heights from edge to edge of a tile, through its middle, along x and along y."""
  centre = tile_centres_m(terrain)[level, terrain.kinds.index(kind)]
  way = np.linspace(-terrain.tile_m / 2, terrain.tile_m / 2, samples)
  still = np.zeros(samples)
  return [
    heights(ground, centre[0] + x, centre[1] + y) for x, y in ((way, still), (still, way))
  ], way[1] - way[0]


def test_heights_are_those_that_robots_tread(rough, ground):
  # Guards: foot heights over other ground than what is there: a tile that is mirrored, turned or
  # shifted, a shape that stands in the scene alone, a grid whose plain is not at 0.
  model = compile_scene(rough)
  data = mujoco.MjData(model)
  mujoco.mj_forward(model, data)
  x, y = np.random.default_rng(1).uniform([-14, -12], [14, 12], (8000, 2)).astype(np.float32).T
  down, static = np.array([0.0, 0.0, -1.0]), np.array([1, 0, 0, 0, 0, 0], np.uint8)
  seen = np.array(
    [
      1
      - mujoco.mj_ray(model, data, np.array([*at, 1.0]), down, static, 1, -1, np.zeros(1, np.int32))
      for at in zip(x, y, strict=True)
    ]
  )
  said = heights(ground, x, y)
  assert np.abs(seen - said).max() < 1e-5
  assert (said > 0.01).mean() > 0.2 and (np.abs(x) > 12).any()
  assert (heights(ground, np.array([-99.0, 50.0]), np.array([0.0, 50.0])) == 0).all()


def test_slopes_and_steps_are_as_steep_and_as_high_as_stated(rough, ground):
  # Guards: a hardest level that is easier than the numbers say, and an easy one that is not easy.
  terrain, last = rough.terrain, rough.terrain.levels - 1
  for level, share in ((0, 1 / terrain.levels), (last, 1.0)):
    profiles, step = along(ground, terrain, level, "slopes")
    for profile in profiles:
      slope = np.abs(np.diff(profile)).max() / step
      assert slope == pytest.approx(tan(share * terrain.max_slope_rad), rel=0.01)
      assert profile.max() == pytest.approx(0.6 * tan(share * terrain.max_slope_rad), rel=0.01)
    for profile in along(ground, terrain, level, "stairs")[0]:
      risers = np.diff(profile)
      risers = risers[np.abs(risers) > 1e-6]
      np.testing.assert_allclose(np.abs(risers), share * terrain.max_step_m, atol=1e-6)
      assert [*np.sign(risers)] == [1] * 4 + [-1] * 4 + [1] * 4 + [-1] * 4
    tops = {kind: _tops(ground, terrain, level, kind) for kind in ("blocks", "mounds", "flat")}
    assert 0.9 * share * terrain.max_block_m < tops["blocks"] <= share * terrain.max_block_m
    assert 0.8 * share * terrain.max_mound_m < tops["mounds"] <= share * terrain.max_mound_m + 1e-6
    assert tops["flat"] == 0


def _tops(ground, terrain, level, kind):
  centre = tile_centres_m(terrain)[level, terrain.kinds.index(kind)]
  way = np.linspace(-terrain.tile_m / 2 + 0.01, terrain.tile_m / 2 - 0.01, 300)
  x, y = np.meshgrid(centre[0] + way, centre[1] + way)
  return heights(ground, x, y).max()


def test_every_tile_can_be_left(rough, ground):
  # Guards: a cliff where two tiles meet, which no level says anything about.
  terrain = rough.terrain
  half_x = terrain.levels * terrain.tile_m / 2
  half_y = len(terrain.kinds) * terrain.tile_m / 2
  for off in (-0.05, 0.05):
    for k in range(1, terrain.levels):
      y = np.linspace(-half_y, half_y, 2000)
      assert heights(ground, np.full_like(y, k * terrain.tile_m - half_x + off), y).max() == 0
    for k in range(1, len(terrain.kinds)):
      x = np.linspace(-half_x, half_x, 2000)
      assert heights(ground, x, np.full_like(x, k * terrain.tile_m - half_y + off)).max() == 0


def test_the_grid_is_the_same_in_every_run(rough, ground):
  # Guards: replays on other ground than training's; a seed that does nothing.
  at = np.random.default_rng(2).uniform(-10, 10, (2, 5000))
  again = Ground(rough.terrain, 0.0, "cpu")
  other = Ground(replace(rough.terrain, seed=1), 0.0, "cpu")
  assert (heights(again, *at) == heights(ground, *at)).all()
  assert (heights(other, *at) != heights(ground, *at)).mean() > 0.05


def test_robots_start_above_the_ground_of_their_tile_and_land_on_it(rough, make_env):
  # Guards: a start in a block, or so high that the landing is a fall; feet that stand on the stairs
  # and are said to be in the air; robots that lie in wait for one another on one tile.
  env = make_env(rough, num_envs=90)
  terrain, tiles, start = rough.terrain, env.world.tiles, env.state
  assert tiles.column.bincount().tolist() == [18] * 5 and tiles.level.unique().tolist() == [
    *range(6)
  ]
  away = start.base_pos_w[:, :2] - torch.tensor(tile_centres_m(terrain))[tiles.level, tiles.column]
  assert away.abs().max() <= 0.5 and away.std() > 0.2
  assert start.foot_height_m.min() > 0.005 and start.height_m.max() < 0.107 + 0.05 + 0.08
  assert start.base_pos_w[:, 2].max() > 0.18  # some on a step
  for _ in range(50):
    step = env.step(torch.zeros(90, 20))
    assert not step.terminated.any()
  s = step.state
  assert s.feet_down.mean() > 5
  down = s.foot_height_m[s.foot_contact]
  # Feet sink in by millimetres; where a foot's edge stands on a block, its middle is beside it.
  assert down.min() > -0.02 and down.quantile(0.02) > -0.012 and down.quantile(0.9) < 0.003
  assert s.foot_pos_w[..., 2][s.foot_contact].max() > 0.04
  assert (s.height_m - 0.1).abs().mean() < 0.02


def test_a_robot_that_leaves_the_grid_stays_on_the_ground(rough, make_env):
  # Guards: a world that ends, with a robot that falls for the rest of its episode.
  env = make_env(rough, num_envs=2)
  qpos = env.backend.read("qpos").clone()
  qpos[:, 0], qpos[:, 2] = torch.tensor([12.1, 200.0]), 0.12
  env.backend.set_state(torch.ones(2, dtype=torch.bool), qpos=qpos)
  for _ in range(40):
    step = env.step(torch.zeros(2, 20))
  assert step.state.feet_down.tolist() == [6, 6]
  assert (step.state.height_m - 0.1).abs().max() < 0.01


def test_a_replay_is_where_it_is_asked_to_be(rough, make_env):
  # Guards: a level that is named in the banner, and measured nowhere.
  task = replace(rough, terrain=replace(rough.terrain, level=4, kind="blocks"))
  env = make_env(task, num_envs=7)
  assert env.world.tiles.level.tolist() == [4] * 7
  assert env.world.tiles.column.tolist() == [rough.terrain.kinds.index("blocks")] * 7


@pytest.mark.parametrize(
  ("changes", "said"),
  [
    ({"kinds": ("stairs", "slop")}, "no terrain kind 'slop'; did you mean 'slopes'?"),
    ({"kinds": ()}, "kinds is empty"),
    ({"levels": 0}, "levels is 0; it must be at least 1"),
    ({"max_step_m": 0.0}, "max_step_m is 0.0; it must be above 0"),
    ({"max_slope_rad": 1.6}, "max_slope_rad is 1.6"),
    ({"platform_m": 1.5}, "do not fit into half a tile less its edge, 1.9 m"),
    ({"block_m": 4.0}, "must fit on a tile less its edges, 3.8 m"),
    ({"max_mound_m": 0.2}, "at most a quarter of mound_m"),
    ({"level": 6}, "terrain level is 6; the levels are 0 to 5"),
    ({"kind": "block"}, "of kind 'block'; did you mean 'blocks'?"),
  ],
)
def test_ground_that_cannot_be_is_refused(rough, changes, said):
  # Guards: a traceback, or ground that is not what was asked for.
  with pytest.raises(ValueError, match=said.replace("?", r"\?")):
    replace(rough.terrain, **changes)
