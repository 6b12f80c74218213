"""Ladders and annealing."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.commands import Commands
from mjrl.envs.curriculum import Annealing, Ladder, trained_ranges
from mjrl.envs.holds import Holds
from mjrl.envs.recipe import Anneal
from mjrl.envs.scoring import Rewards
from mjrl.envs.task import CommandLadder, Rung

DT_S = 0.02


@pytest.fixture
def rewards(tripod):
  return Rewards(tripod.rewards, 4, "cpu", DT_S, set())


@pytest.fixture
def ladder(tripod, rewards, make_world):
  return Ladder(tripod.curriculum, Commands(tripod.command, make_world(4), DT_S), rewards)


GOOD = Holds(errors={"linear": 0.05, "angular": 0.05}, count=4)
SLOW = Holds(errors={"linear": 0.3, "angular": 0.05}, count=4)
TWISTED = Holds(errors={"linear": 0.05, "angular": 0.3}, count=4)


def climb(ladder, holds, steps=3000, every=20):
  for k in range(steps):
    ladder.step(holds if k % every == 0 else None)
  return ladder.level


@pytest.mark.parametrize("holds", [SLOW, TWISTED, None])
def test_time_alone_promotes_nobody(ladder, holds):
  # Guards: promotion at the end of the dwell whatever was measured, as the reference does.
  assert climb(ladder, holds, steps=8000) == 0


def test_who_tracks_is_promoted_after_the_dwell_and_not_before(ladder):
  # Guards: a ladder that cannot be climbed, or is climbed on a lucky hold.
  assert climb(ladder, GOOD, steps=2380) == 0
  assert climb(ladder, GOOD, steps=40) == 1
  assert ladder.steps < 40 and ladder.holds < 12  # what was measured on the rung below is forgotten
  assert climb(ladder, GOOD, steps=2000) == 1
  assert climb(ladder, GOOD, steps=8000) == 3  # and the top is the top


def test_a_few_good_holds_are_not_enough(ladder):
  # Guards: a promotion by two measurements.
  few = replace(GOOD, count=1)
  assert climb(ladder, few, steps=3000, every=50) == 0  # 60 holds
  assert climb(ladder, few, steps=300, every=50) == 1


def test_what_counts_is_recent(ladder):
  # Guards: a mean since the beginning, in which a robot's first thousand falls stay.
  climb(ladder, SLOW, steps=3000)
  assert climb(ladder, GOOD, steps=400) == 1


def test_one_good_hold_does_not_wipe_out_the_rest(ladder):
  # Guards: smoothing that is none.
  climb(ladder, SLOW, steps=3000)
  assert climb(ladder, GOOD, steps=20) == 0 and ladder.errors["linear"] > 0.2


def test_ranges_and_kernels_follow_the_rung(tripod, rewards, make_world):
  # Guards: a level in the log beside the ranges or the kernels of another.
  commands = Commands(tripod.command, make_world(2000), DT_S)
  ladder = Ladder(tripod.curriculum, commands, rewards)
  for level, rung in enumerate(tripod.curriculum.rungs):
    ladder.go_to(level)
    assert rewards.numbers["track_linear_velocity"]["std_m_s"] == rung.linear_std_m_s
    assert rewards.numbers["track_angular_velocity"]["std_rad_s"] == rung.angular_std_rad_s
    commands.draw(torch.ones(2000, dtype=torch.bool))
    reach = torch.tensor([0.5 * rung.linear, 0.5 * rung.linear, 0.75 * rung.angular])
    torch.testing.assert_close(commands.value.abs().amax(0), reach, atol=0, rtol=0.02)


def test_the_log_shows_what_decides(ladder):
  # Guards: a level that does not move, and nothing that says why.
  spec = replace(ladder.spec, bar_base_rad_s=0.04, bar_slope_angular=0.2)
  ladder.spec = replace(spec, bar_base_m_s=0.03, bar_slope=0.3)
  ladder.go_to(1)
  climb(ladder, SLOW, steps=1)
  log = ladder.log()
  assert log["level"] == 1
  assert log["linear_range_m_s"] == pytest.approx(0.35)
  assert log["angular_range_rad_s"] == pytest.approx(0.5)
  assert log["linear_error_m_s"] == pytest.approx(0.3)
  assert log["linear_bar_m_s"] == pytest.approx(0.03 + 0.3 * 0.35)
  assert log["angular_error_rad_s"] == pytest.approx(0.05)
  assert log["angular_bar_rad_s"] == pytest.approx(0.04 + 0.2 * 0.5)


def test_a_saved_ladder_goes_on(ladder, tripod, rewards, make_world):
  # Guards: a resumed run back on the first rung, or with its dwell begun anew.
  climb(ladder, GOOD, steps=4000)
  fresh = Rewards(tripod.rewards, 4, "cpu", DT_S, set())
  other = Ladder(tripod.curriculum, Commands(tripod.command, make_world(4), DT_S), fresh)
  other.load(ladder.save())
  assert other.level == 1 and other.save() == ladder.save()
  assert fresh.numbers == rewards.numbers
  for each in (ladder, other):
    climb(each, GOOD, steps=850)
  assert ladder.level == other.level == 2 and other.log() == ladder.log()


def test_a_saved_ladder_is_plain_numbers(ladder):
  # Guards: a checkpoint that cannot be loaded safely.
  assert all(type(value) in (int, float) for value in ladder.save().values())


def test_an_empty_ladder_is_refused(tripod):
  # Guards: an IndexError in the first step.
  with pytest.raises(ValueError, match="at least one rung"):
    replace(tripod.curriculum, rungs=())


def test_a_ladder_on_an_unknown_row_names_the_nearest(tripod):
  # Guards: a curriculum of a reward that does not exist (LocoWheeledLegged#11).
  ladder = replace(tripod.curriculum, linear="track_linear_velocty")
  with pytest.raises(ValueError, match=r"'track_linear_velocty'; did you mean 'track_linear_vel"):
    replace(tripod, curriculum=ladder)


def anneal(**changes):
  numbers = {
    "path": "rewards.gait.width_feet",
    "easy": 2.0,
    "metric": "wrong_feet",
    "initial": 3.0,
    "start": 2.0,
    "done": 1.0,
    "smoothing": 0.5,
    "fade_iterations": 10,
    "until_iteration": 100,
  }
  return Anneal(**numbers | changes)


def width(rewards):
  return rewards.numbers["gait"]["width_feet"]


def test_annealing_follows_the_metric(rewards):
  # Guards: an ease that goes by time, or the wrong way.
  row = Annealing(anneal(smoothing=1.0), rewards)
  assert width(rewards) == 2.0
  for metric, expected in (
    (3.0, 2.0),
    (2.0, 2.0),
    (1.5, 1.35),
    (1.0, 0.7),
    (0.2, 0.7),
    (1.5, 1.35),
  ):
    row.iteration(0, {"wrong_feet": metric})
    assert width(rewards) == pytest.approx(expected), metric
    assert row.log() == pytest.approx({"value": expected, "wrong_feet": metric})


def test_annealing_smooths_and_survives_a_missing_metric(rewards):
  # Guards: a KeyError in the iteration in which every robot was asked to stand.
  row = Annealing(anneal(), rewards)
  row.iteration(0, {"wrong_feet": 1.0})
  assert row.average == 2.0
  row.iteration(1, {})
  assert row.average == 2.0


def test_annealing_ends_on_the_task(rewards):
  # Guards: a measured policy that was trained on an easier task, because it learned nothing.
  row = Annealing(anneal(), rewards)
  values = {}
  for index in range(110):
    row.iteration(index, {"wrong_feet": 3.0})
    values[index + 1] = width(rewards)  # of the iteration that comes next
  assert values[90] == 2.0
  assert values[95] == pytest.approx(0.7 + 0.5 * 1.3)
  assert values[99] > 0.7
  assert values[100] == values[110] == 0.7  # exactly


def test_annealing_ends_on_the_rung_s_own_number(ladder, rewards):
  # Guards: two curricula that overwrite one another (LocoWheeledLegged#11).
  path = "rewards.track_linear_velocity.std_m_s"
  row = Annealing(anneal(path=path, easy=0.5, smoothing=1.0), rewards)
  row.iteration(0, {"wrong_feet": 1.5})
  assert rewards.numbers["track_linear_velocity"]["std_m_s"] == pytest.approx((0.5 + 0.125) / 2)
  ladder.go_to(2)
  assert rewards.numbers["track_linear_velocity"]["std_m_s"] == pytest.approx((0.5 + 0.25) / 2)
  row.iteration(99, {"wrong_feet": 1.5})
  assert rewards.numbers["track_linear_velocity"]["std_m_s"] == 0.25


def test_a_saved_annealing_goes_on(rewards, tripod):
  # Guards: a resumed run whose kernels are wide again.
  row = Annealing(anneal(), rewards)
  for index in range(95):
    row.iteration(index, {"wrong_feet": 1.6})
  fresh = Rewards(tripod.rewards, 4, "cpu", DT_S, set())
  other = Annealing(anneal(), fresh)
  other.load(row.save())
  assert fresh.numbers == rewards.numbers and 0.7 < width(fresh) < 1.2
  assert all(type(value) in (int, float) for value in row.save().values())


@pytest.mark.parametrize(
  ("bad", "says"),
  [
    ({"done": 2.0}, "start and done are both 2.0"),
    ({"fade_iterations": 0}, "fade_iterations 0 must be in 1..until_iteration"),
    ({"fade_iterations": 101}, "must be in 1..until_iteration"),
  ],
)
def test_an_annealing_without_a_way_is_refused(bad, says):
  # Guards: a division by zero, or a row that never ends.
  with pytest.raises(ValueError, match=says):
    anneal(**bad)


@pytest.mark.parametrize(
  ("bad", "says"),
  [
    ({"path": "rewards.gate.width_feet"}, r"no reward 'gate'; did you mean 'gait'\?"),
    ({"path": "rewards.gait.width_foot"}, r"no number 'width_foot'; did you mean 'width_feet'\?"),
    ({"path": "command.hold_s"}, "are in table 'rewards', not 'command'"),
    ({"metric": "wrong_foot"}, r"'wrong_foot'; did you mean 'wrong_feet'\?"),
  ],
)
def test_an_annealing_of_nothing_names_the_nearest(tripod, bad, says):
  # Guards: an easing that does nothing, found out after the run.
  recipe = replace(tripod.recipes["native"], curriculum={"a": anneal(**bad)})
  with pytest.raises(ValueError, match=says):
    replace(tripod, recipes={"native": recipe})


def test_a_rung_is_spelled_out():
  # Guards: a default that hides a number.
  with pytest.raises(TypeError):
    Rung(linear=1.0, angular=1.0)
  with pytest.raises(TypeError):
    CommandLadder(rungs=())


def test_what_was_trained_is_what_the_ladder_had_reached(tripod, make_world, rewards):
  # Guards: a robot driven at speeds that its policy never saw.
  commands = Commands(tripod.command, make_world(4000), DT_S)
  ladder = Ladder(tripod.curriculum, commands, rewards)
  for level in (0, len(tripod.curriculum.rungs) - 1):
    ladder.go_to(level)
    commands.draw(torch.ones(4000, dtype=torch.bool))
    ranges = torch.tensor(trained_ranges(tripod, level))
    assert (commands.value >= ranges[:, 0] - 1e-6).all()
    assert (commands.value <= ranges[:, 1] + 1e-6).all()
    assert (commands.value.amax(0) > 0.9 * ranges[:, 1]).all()
  assert trained_ranges(tripod, None)[0] == tripod.command.forward_m_s
