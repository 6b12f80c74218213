"""Velocity commands, and how a hold of one is judged."""

from math import cos, pi, sin

import pytest
import torch

from mjrl.envs.commands import Commands
from mjrl.envs.task import VelocityCommand

DT_S = 0.02


def spec(**changes):
  numbers = {
    "forward_m_s": (-0.5, 1.0),
    "left_m_s": (-0.4, 0.4),
    "yaw_rad_s": (-0.8, 0.8),
    "hold_s": (3.0, 8.0),
    "standing": 0.2,
    "heading": 0.0,
    "heading_gain_1_s": 0.5,
  }
  return VelocityCommand(**numbers | changes)


def everyone(n):
  return torch.ones(n, dtype=torch.bool)


def nobody(n):
  return torch.zeros(n, dtype=torch.bool)


def drawn(make_world, n=4000, **changes):
  commands = Commands(spec(**changes), make_world(n), DT_S)
  commands.draw(everyone(n))
  return commands


def test_a_share_is_asked_to_stand(make_world):
  # Guards: a share of 0 or of the rest; "nearly zero" for zero.
  stands = (drawn(make_world).value == 0).all(1)
  assert 0.17 < stands.float().mean() < 0.23


def test_commands_fill_the_ranges_of_the_ladder(make_world):
  # Guards: a level that is logged and never asked for; a side that is not asked for.
  commands = Commands(spec(standing=0.0), make_world(4000), DT_S)
  for linear, angular in ((1.0, 1.0), (0.5, 0.25)):
    commands.set_ranges({"linear": linear, "angular": angular})
    commands.draw(everyone(4000))
    low, high = commands.value.amin(0), commands.value.amax(0)
    scale = torch.tensor([linear, linear, angular])
    torch.testing.assert_close(low, torch.tensor([-0.5, -0.4, -0.8]) * scale, atol=0.01, rtol=0)
    torch.testing.assert_close(high, torch.tensor([1.0, 0.4, 0.8]) * scale, atol=0.01, rtol=0)
    assert (low >= torch.tensor([-0.5, -0.4, -0.8]) * scale).all()


def test_only_the_masked_get_a_new_command(make_world):
  # Guards: every reset of one env changing what all are asked.
  commands = drawn(make_world, 6)
  before, mask = commands.value.clone(), torch.tensor([True, False] * 3)
  commands.draw(mask)
  assert torch.equal(commands.value[~mask], before[~mask])
  assert not torch.equal(commands.value[mask], before[mask])


def test_a_hold_lasts_as_long_as_it_should(make_world, standing):
  # Guards: holds counted in physics steps, or all envs changing at once.
  commands = drawn(make_world, 300, standing=0.0, hold_s=(0.2, 0.4))
  s, ages = standing(300), []
  age = torch.zeros(300)
  for _ in range(60):
    before = commands.value
    commands.advance(s.replace(command=before), nobody(300), nobody(300), True)
    age += 1
    changed = (commands.value != before).any(1)
    ages += age[changed].tolist()
    age[changed] = 0
  assert min(ages) == 10 and max(ages) in (19, 20) and len(set(ages)) >= 10


def test_heading_is_reached_the_short_way(make_world, standing):
  # Guards: a robot that turns 350 degrees, or away; a turn beyond the range; one who should stand.
  n = 400
  commands = drawn(make_world, n, heading=1.0, hold_s=(100.0, 100.0))
  stands = (commands.value == 0).all(1)
  sideways = commands.value[:, :2].clone()
  yaw, turned = torch.full((n,), 3.0), torch.zeros(n)
  for _ in range(1000):  # a robot that turns as it is told
    forward = torch.stack((yaw.cos(), yaw.sin(), torch.zeros(n)), 1)
    commands.advance(standing(n, forward_w=forward), nobody(n), nobody(n), True)
    turn = commands.value[:, 2]
    assert turn.abs().max() <= 0.8 and turn[stands].eq(0).all()
    yaw, turned = yaw + turn * DT_S, turned + turn.abs() * DT_S
  assert turn.abs().max() < 0.01  # there
  assert turned.max() < pi + 0.01
  headings = torch.atan2(yaw.sin(), yaw.cos())[~stands]
  assert headings.min() < -3 and headings.max() > 3 and abs(headings.mean()) < 0.4
  assert torch.equal(commands.value[:, :2], sideways)
  assert 0.15 < stands.float().mean() < 0.25


def test_heading_follows_the_ladder(make_world, standing):
  # Guards: a yaw rate of the last rung asked for on the first.
  commands = Commands(spec(heading=1.0, standing=0.0), make_world(500), DT_S)
  commands.set_ranges({"linear": 0.5, "angular": 0.25})
  commands.draw(everyone(500))
  commands.advance(standing(500), nobody(500), nobody(500), True)
  assert commands.value[:, 2].abs().max() == pytest.approx(0.2)


def test_a_share_of_those_who_move_is_steered(make_world, standing):
  # Guards: all or none of them.
  n = 4000
  commands = drawn(make_world, n, heading=0.3)
  stands, before = (commands.value == 0).all(1), commands.value
  commands.advance(standing(n), nobody(n), nobody(n), True)
  steered = (commands.value != before)[:, 2]
  assert 0.21 < steered.float().mean() < 0.27  # 0.3 of 0.8
  assert not steered[stands].any()


def test_a_command_before_it_was_steered_stays_as_it_was(make_world, standing):
  # Guards: a state whose command changes after it was judged.
  commands = drawn(make_world, 50, heading=1.0, standing=0.0)
  before = commands.value
  copy = before.clone()
  commands.advance(standing(50), nobody(50), nobody(50), True)
  assert torch.equal(before, copy) and not torch.equal(commands.value, copy)


def judge(make_world, standing, track, *, steps=200, fell_at=None, **changes):
  """What became of one hold of (0.6, 0, 0.5), tracked as `track(t)` says: (v_x, v_y, w)."""
  n = 4
  commands = drawn(make_world, n, standing=0.0, hold_s=(4.0, 4.0), **changes)
  commands.value = torch.tensor([[0.6, 0.0, 0.5]]).repeat(n, 1)
  for k in range(steps):
    vx, vy, w = track(k * DT_S)
    s = standing(
      n, command=commands.value, lin_vel_b=[[vx, vy, 0.0]] * n, ang_vel_b=[[0.0, 0.0, w]] * n
    )
    fell = everyone(n) if k == fell_at else nobody(n)
    holds = commands.advance(s, fell, fell, True)
    if holds or k == fell_at:
      return holds
  return None


def test_who_tracks_perfectly_on_a_circle_has_no_error(make_world, standing):
  # Guards: a turning robot judged by the straight line it did not go (mjlab#934).
  holds = judge(make_world, standing, lambda t: (0.6, 0.0, 0.5))
  assert holds.count == 4
  assert holds.errors["linear"] == pytest.approx(0, abs=1e-6)
  assert holds.errors["angular"] == pytest.approx(0, abs=1e-6)


def test_who_sways_in_step_with_the_gait_has_little_error(make_world, standing):
  # Guards: a bar that only a gliding robot could pass.
  def sway(t):
    return 0.6 + 0.3 * sin(2 * pi * 3.125 * t), 0.3 * cos(2 * pi * 3.125 * t), 0.5

  assert judge(make_world, standing, sway).errors["linear"] < 0.02


def test_who_stands_still_misses_all_of_it(make_world, standing):
  # Guards: a ladder climbed by standing.
  holds = judge(make_world, standing, lambda t: (0.0, 0.0, 0.0))
  assert holds.errors["linear"] == pytest.approx(0.6, rel=1e-4)
  assert holds.errors["angular"] == pytest.approx(0.5, rel=1e-4)


def test_who_goes_sideways_misses(make_world, standing):
  # Guards: a speed compared instead of a velocity.
  holds = judge(make_world, standing, lambda t: (0.0, 0.6, 0.5))
  assert holds.errors["linear"] == pytest.approx(0.6 * 2**0.5, rel=1e-4)


def test_the_first_half_second_is_not_judged(make_world, standing):
  # Guards: the time it takes to get up to speed counted as a miss.
  holds = judge(make_world, standing, lambda t: (0.6, 0.0, 0.5) if t > 0.49 else (0.0, 0.0, 0.0))
  assert holds.errors["linear"] == pytest.approx(0, abs=1e-6)


def test_a_fall_is_no_tracking_at_all(make_world, standing):
  # Guards: a promotion by robots that are fast until they fall.
  holds = judge(make_world, standing, lambda t: (0.6, 0.0, 0.5), fell_at=120)
  assert holds.count == 4
  assert holds.errors["linear"] == pytest.approx(0.6, rel=1e-4)
  assert holds.errors["angular"] == pytest.approx(0.5, rel=1e-4)


def test_an_early_fall_counts(make_world, standing):
  # Guards: a ladder climbed by those who did not fall at the start.
  holds = judge(make_world, standing, lambda t: (0.6, 0.0, 0.5), fell_at=40)
  assert holds.count == 4 and holds.errors["linear"] == pytest.approx(0.6)


def test_a_bad_number_is_no_error(make_world, standing):
  # Guards: one NaN in a moving average that is compared with a bar from then on.
  assert judge(make_world, standing, lambda t: (float("nan"), 0.0, 0.5)) is None


def test_who_is_asked_to_stand_is_not_judged(make_world, standing):
  # Guards: a ladder climbed by robots that stand as asked.
  commands = drawn(make_world, 4, standing=1.0, hold_s=(2.0, 2.0))
  for _ in range(150):
    assert commands.advance(standing(4), nobody(4), nobody(4), True) is None


def test_a_fixed_command_stays(make_world, standing):
  # Guards: a replay at 0.5 m/s that is asked for something else after eight seconds.
  commands = drawn(make_world, 4, heading=1.0, hold_s=(0.1, 0.2))
  fixed = torch.tensor([[0.5, 0.0, -0.25]]).repeat(4, 1)
  commands.fix(fixed)
  for _ in range(30):
    ended = torch.tensor([True, False, False, False])
    commands.advance(standing(4, command=fixed), ended, nobody(4), True)
    commands.draw(ended)
    assert torch.equal(commands.value, fixed)


def test_what_is_saved_goes_on_the_same(make_world, standing):
  # Guards: a resumed run whose holds start anew.
  commands = [drawn(make_world, 20, heading=0.5, hold_s=(0.5, 1.5)) for _ in range(2)]
  s = standing(20, lin_vel_b=[[0.1, 0.0, 0.0]] * 20)
  for _ in range(37):
    commands[0].advance(s.replace(command=commands[0].value), nobody(20), nobody(20), True)
  commands[1].load(commands[0].save())
  commands[1]._world.rng.set_state(commands[0]._world.rng.get_state())
  for _ in range(60):
    holds = [c.advance(s.replace(command=c.value), nobody(20), nobody(20), True) for c in commands]
    assert holds[0] == holds[1]
    assert torch.equal(commands[0].value, commands[1].value)


def test_commands_that_were_fixed_are_drawn_again(make_world):
  # Guards: a command that is held for good, or dropped and never drawn.
  commands = drawn(make_world, standing=0.0)
  commands.fix(torch.full((4000, 3), 0.1))
  commands.draw(everyone(4000))
  assert (commands.value == 0.1).all()
  commands.release()
  assert commands.value[:, 0].std() > 0.1
  before = commands.value
  commands.draw(everyone(4000))
  assert not torch.equal(commands.value, before)
