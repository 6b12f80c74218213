"""The terrain curriculum: who moves to a harder tile, who to an easier one, and who stays."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.ground import Ground
from mjrl.envs.tiles import Tiles

CEILINGS = 0.5, 0.75  # m/s, rad/s: the bars are 0.155 and 0.3675 up, 0.28 and 0.555 down


@pytest.fixture(scope="session")
def terrain(tripod):
  ladder = replace(tripod.terrain.curriculum, dwell_episodes=3)
  return replace(tripod.terrain, ground="rough", curriculum=ladder)


@pytest.fixture
def tiles(terrain):
  """Twenty envs on level 2."""
  made = Tiles(terrain, Ground(terrain, 0.0, "cpu"), CEILINGS, 20, "cpu")
  made.level += 2
  return made


@pytest.fixture(scope="session")
def climbing(calm, terrain):
  """Short episodes of one hold each, on the full command ranges."""
  return replace(
    calm,
    episode_s=1.2,
    curriculum=None,
    terrain=replace(terrain, curriculum=replace(terrain.curriculum, dwell_episodes=2)),
  )


def end(tiles, errors, envs=slice(None), at_top=True):
  """End an episode of some envs, in which a hold was that far off, m/s and rad/s."""
  ended = torch.zeros(len(tiles.level), dtype=torch.bool)
  ended[envs] = True
  if errors:
    tiles.tracked[envs] += torch.tensor([*errors, 1.0])
  tiles.end_episodes(ended, at_top)


GOOD, FAIR, BAD_SPEED, BAD_TURN = (0.1, 0.3), (0.2, 0.3), (0.3, 0.3), (0.1, 0.6)


@pytest.mark.parametrize(
  ("errors", "moved"), [(GOOD, 1), (FAIR, 0), (BAD_SPEED, -1), (BAD_TURN, -1), ((0.1, 0.4), 0)]
)
def test_an_env_moves_by_the_errors_of_its_own_holds(tiles, errors, moved):
  # Guards: levels that rise with time alone; a bar on speed by which who cannot turn moves up;
  # one env's errors moving all.
  for _ in range(3):
    assert tiles.level.tolist() == [2] * 20
    end(tiles, errors, slice(0, 5))
    end(tiles, FAIR, slice(5, 20))
  assert tiles.level.tolist() == [2 + moved] * 5 + [2] * 15


def test_all_holds_of_the_dwell_count_alike(tiles):
  # Guards: the last hold deciding alone; what was judged once being judged again.
  for errors in (BAD_SPEED, GOOD, GOOD):  # 0.167 m/s in the mean
    end(tiles, errors)
  assert tiles.level.tolist() == [2] * 20
  for _ in range(3):
    end(tiles, GOOD)
  assert tiles.level.tolist() == [3] * 20
  for _ in range(2):
    end(tiles, GOOD)
  assert tiles.level.tolist() == [3] * 20  # counted anew since


def test_nobody_moves_up_before_the_commands_are_at_their_top(tiles):
  # Guards: slow robots on the hardest tiles, where they have never walked fast.
  for _ in range(3):
    end(tiles, GOOD, at_top=False)
  assert tiles.level.tolist() == [2] * 20
  for _ in range(3):
    end(tiles, BAD_SPEED, at_top=False)
  assert tiles.level.tolist() == [1] * 20


def test_levels_end_with_the_grid(tiles, terrain):
  # Guards: an env on a tile that there is not.
  for errors, last in ((GOOD, terrain.levels - 1), (BAD_SPEED, 0)):
    for _ in range(3 * terrain.levels):
      end(tiles, errors)
    assert tiles.level.tolist() == [last] * 20


def test_an_env_that_was_asked_nothing_is_not_judged(tiles):
  # Guards: robots that stand on command moving up for it.
  for _ in range(5):
    end(tiles, None)
  assert tiles.level.tolist() == [2] * 20
  end(tiles, GOOD)
  assert tiles.level.tolist() == [3] * 20


def test_the_log_tells_what_decides(tiles):
  # Guards: a curve of levels without the numbers that move them.
  for _ in range(3):
    end(tiles, GOOD, slice(0, 15))
    end(tiles, BAD_SPEED, slice(15, 20))
  log = tiles.log(commands_at_top=True)
  assert log["level"] == pytest.approx(2.5) and log["level_stairs"] == pytest.approx(2.5)
  assert (log["promoted"], log["demoted"], log["commands_at_top"]) == (15, 5, 1)
  assert log["linear_error_m_s"] == pytest.approx(0.15)
  assert log["linear_up_bar_m_s"] == pytest.approx(0.155)
  assert log["linear_down_bar_m_s"] == pytest.approx(0.28)
  assert log["angular_up_bar_rad_s"] == pytest.approx(0.3675)
  assert log["angular_down_bar_rad_s"] == pytest.approx(0.555)
  assert "linear_error_m_s" not in tiles.log(commands_at_top=True)  # of the judged since the last


def test_levels_of_a_checkpoint_are_dealt_to_any_number_of_envs(tiles, terrain):
  # Guards: levels that are lost where a run goes on with more envs, or all envs getting one kind's.
  tiles.level += (tiles.column - 1).clamp(max=2)
  tiles.level[:5] -= 1  # a quarter of each kind
  other = Tiles(terrain, Ground(terrain, 0.0, "cpu"), CEILINGS, 85, "cpu")
  other.load_levels(tiles.save_levels())
  for column, kind in enumerate(terrain.kinds):
    mine, theirs = (float(t.level[t.column == column].float().mean()) for t in (tiles, other))
    assert theirs == pytest.approx(mine, abs=1 / 17), kind
  assert len(other.level.unique()) > 4


def test_the_holds_of_an_env_move_it(climbing, make_env):
  # Guards: a curriculum that nothing feeds; an env that moves up and starts where it was.
  env = make_env(climbing, num_envs=20)
  tiles = env.world.tiles
  tiles.level += 2
  slow = torch.arange(20) < 10  # asked for less than what a robot may miss that stands still
  env.commands.fix(torch.where(slow[:, None], 0.1, 0.4) * torch.tensor([1.0, 0.0, 0.0]))
  env.reset()
  for _ in range(2 * 60):
    env.step(torch.zeros(20, 20))
  assert tiles.level.tolist() == [3] * 10 + [1] * 10
  middle = torch.where(slow, 2.0, -6.0)
  assert (env.state.base_pos_w[:, 0] - middle).abs().max() < 1  # in the episode that has begun
  log = env.end_iteration(0)
  assert log["Curriculum/terrain/promoted"] == 10 and log["Curriculum/terrain/demoted"] == 10


def test_a_resumed_world_has_its_levels_to_the_bit(climbing, make_env, actions):
  # Guards: levels, or what is counted towards the next, that start anew with a resumed run.
  env, other = make_env(climbing, num_envs=10), make_env(climbing, num_envs=10, seed=1)
  env.world.tiles.level += torch.arange(10) % 3
  before, steps = env.world.tiles.level.clone(), actions(env, 150, scale=0.2)
  for action in steps[:80]:
    env.step(action)
  other.load(env.save())
  for action in steps[80:]:
    one, two = env.step(action), other.step(action)
    assert torch.equal(one.reward, two.reward)
  ours, theirs = env.world.tiles.save(), other.world.tiles.save()
  for name, value in ours.items():
    assert torch.equal(value, theirs[name]), name
  assert not torch.equal(ours["level"], before)


def test_a_run_with_a_checkpoint_s_levels_starts_on_them(climbing, make_env):
  # Guards: the first episodes of a resumed run being judged on the first level's ground.
  env, other = make_env(climbing, num_envs=10), make_env(climbing, num_envs=20)
  env.world.tiles.level += 4
  other.load_curriculum(env.save_curriculum())
  assert other.world.tiles.level.tolist() == [4] * 20
  assert (other.state.base_pos_w[:, 0] - 6.0).abs().max() < 1
  assert "terrain" not in env.shared_curriculum()  # each process of a run has levels of its own
