"""Counters of contact and of time in the air."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.task import at_reset

N, FEET = 4, 6


@pytest.fixture
def scripted(calm, make_env):
  """An env whose feet touch the ground as a script says: its counting, on states made by hand."""
  env = make_env(calm, num_envs=N)

  def count(down, height=0.0):
    height = torch.as_tensor(height, dtype=torch.float32).expand(N, FEET)
    radius = env.state.foot_radius_m
    pos = torch.stack((height * 0, height * 0, height + radius), 2)
    s = env.state.replace(foot_contacts=down.float(), foot_pos_w=pos)
    env._count_feet(s)
    return s

  count(torch.ones(N, FEET, dtype=torch.bool))
  return env, count


def test_counters_are_whole_substeps(scripted):
  # Guards: a float clock that grows until events vanish in its last digit (mjlab#1101).
  _, count = scripted
  down, up = torch.ones(N, FEET, dtype=torch.bool), torch.zeros(N, FEET, dtype=torch.bool)
  s = count(down)
  before = s.foot_contact_substeps.clone()
  for k in range(1, 4):
    s = count(up)
    assert s.foot_air_substeps.unique().tolist() == [4 * k]
    assert s.foot_contact_substeps.eq(0).all()
  s = count(down)
  assert s.foot_contact_substeps.unique().tolist() == [4] and s.foot_air_substeps.eq(0).all()
  for counter in (s.foot_air_substeps, s.foot_contact_substeps, before):
    assert not counter.is_floating_point()


def test_every_landing_is_counted_once(scripted):
  # Guards: landings that are missed or counted twice (IsaacLab#7283: 352 of 500).
  _, count = scripted
  rng = torch.Generator().manual_seed(0)
  was = torch.ones(N, FEET, dtype=torch.bool)
  landings = torch.zeros(N, FEET)
  expected = torch.zeros(N, FEET)
  for _ in range(2000):
    down = torch.rand(N, FEET, generator=rng) < 0.6
    s = count(down)
    assert torch.equal(s.touchdown, down & ~was)
    landings += s.touchdown
    expected += down & ~was
    was = down
  assert torch.equal(landings, expected) and landings.min() > 300


def test_landings_are_seen_late_in_a_long_episode(scripted):
  # Guards: the same, after an hour of simulated time.
  env, count = scripted
  hour = 3600 * 200
  env._contact = torch.full_like(env._contact, hour)
  s = count(torch.zeros(N, FEET, dtype=torch.bool))
  env._air = torch.full_like(env._air, hour)
  s = count(torch.ones(N, FEET, dtype=torch.bool))
  assert s.touchdown.all() and s.foot_contact_substeps.unique().tolist() == [4]


def test_the_peak_is_that_of_the_swing(scripted):
  # Guards: a peak that is forgotten before the landing is judged, or lasts into the next swing.
  _, count = scripted
  up, down = torch.zeros(N, FEET, dtype=torch.bool), torch.ones(N, FEET, dtype=torch.bool)
  for height in (0.01, 0.04, 0.02):
    s = count(up, height)
  torch.testing.assert_close(s.foot_peak_m, torch.full((N, FEET), 0.04))
  s = count(down, 0.001)
  torch.testing.assert_close(s.foot_peak_m, torch.full((N, FEET), 0.04))
  s = count(down, 0.001)
  assert not s.touchdown.any() and s.foot_peak_m.max() < 0.002
  s = count(up, 0.01)
  torch.testing.assert_close(s.foot_peak_m, torch.full((N, FEET), 0.01))


def drop(world, mask, *, height_m):
  world.start_qpos.zero_()
  world.start_qpos[:, 2] = world.robot.home_height_m + height_m
  world.start_qpos[:, 3] = 1.0
  world.start_qpos[:, 7:] = torch.tensor([world.robot.home_rad[j] for j in world.robot.joints])
  world.start_qvel.zero_()


def test_a_dropped_robot_lands_on_all_feet(calm, make_env):
  # Guards: contacts that are those of the limbs, of another foot, or of another robot.
  env = make_env(replace(calm, events={"drop": at_reset(drop, height_m=0.03)}))
  assert not env.state.foot_contact.any() and env.state.foot_air_substeps.unique().tolist() == [4]
  landings = torch.zeros(N, FEET)
  for k in range(1, 40):
    s = env.step(torch.zeros(N, 20)).state
    landings += s.touchdown
    if not s.touchdown.any() and not s.foot_contact.any():
      assert s.foot_air_substeps.unique().tolist() == [4 * (k + 1)]
  assert s.foot_contact.all() and landings.min() >= 1
  weight = 2.54296 * 9.81
  force = s.foot_force_w.sum(1)
  torch.testing.assert_close(force[:, 2], torch.full((N,), -weight), rtol=0.05, atol=0)


def test_a_new_episode_counts_anew(calm, make_env):
  # Guards: air time of a robot that fell, paid to the next.
  env = make_env(replace(calm, episode_s=0.2))
  for _ in range(10):
    step = env.step(torch.zeros(N, 20))
  assert step.timed_out.all()
  s = env.state
  assert s.foot_air_substeps.eq(4 * ~s.foot_contact).all()
  assert s.foot_contact_substeps.eq(4 * s.foot_contact).all()
  assert not s.touchdown.any() and s.foot_peak_m.eq(0).all()
