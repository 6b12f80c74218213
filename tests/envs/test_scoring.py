"""Reward and metric tables at work."""

import pytest
import torch

from mjrl.envs.scoring import Metrics, Rewards
from mjrl.envs.task import Reward, Term, reward, term
from mjrl.envs.terms import metrics, rewards

DT_S = 0.02
EPISODE_S = 2.0
FULL = torch.ones(2)  # episodes that could last their whole length


def one(s):
  return torch.ones(len(s.command))


def never(s):
  raise AssertionError("a row of weight 0 was evaluated")


def make(rows, num_envs=2, kept=()):
  return Rewards(rows, num_envs, "cpu", DT_S, set(kept))


def row(weight, fn, **params):
  return Reward(weight=weight, fn=fn, params=params)


def test_a_perfect_row_climbs_to_its_weight(standing):
  # Guards: a curve in other units than its table: a sum, or a mean over the steps there were.
  table = make({"good": row(2.0, one), "bad": row(-0.5, one)})
  s = standing(2)
  for _ in range(100):
    assert table.score(s).tolist() == pytest.approx([1.5 * DT_S] * 2)
  table.end_episodes(torch.tensor([True, True]), FULL)
  log = table.drain(EPISODE_S)
  assert log == pytest.approx({"good": 2.0, "bad": -0.5})


def test_an_episode_cut_short_gives_its_share(standing):
  # Guards: a fall after a second that looks as good as an episode.
  table = make({"good": row(2.0, one)})
  for k in range(100):
    table.score(standing(2))
    table.end_episodes(torch.tensor([k == 24, False]), FULL)
  assert table.drain(EPISODE_S) == pytest.approx({"good": 0.5})
  table.end_episodes(torch.tensor([True, True]), FULL)
  assert table.drain(EPISODE_S) == pytest.approx({"good": (1.5 + 2.0) / 2})


def test_a_first_episode_made_short_counts_as_what_it_is(standing):
  # Guards: curves that begin far below their weights because first episodes are cut short.
  table = make({"good": row(2.0, one)})
  for k in range(1, 101):
    table.score(standing(2))
    table.end_episodes(torch.tensor([k == 25, k == 100]), torch.tensor([0.25, 1.0]))
  assert table.drain(EPISODE_S) == pytest.approx({"good": 2.0})


def test_nothing_ended_is_nothing_logged(standing):
  # Guards: zeros in the curves of iterations in which no episode ended.
  table = make({"good": row(2.0, one)})
  table.score(standing(2))
  assert table.drain(EPISODE_S) == {}


def test_rows_of_weight_zero_cost_nothing(standing):
  # Guards: a row that was switched off and still takes its time, or still pays.
  table = make({"good": row(1.0, one), "off": row(0.0, never)})
  assert table.score(standing(2)).tolist() == pytest.approx([DT_S] * 2)
  assert list(table.rows) == ["good"]


def test_a_row_that_a_curriculum_moves_is_kept(standing):
  # Guards: a weight that is raised from 0 and does nothing.
  table = make({"good": row(1.0, one), "later": row(0.0, one)}, kept=["later"])
  assert table.score(standing(2)).tolist() == pytest.approx([DT_S] * 2)
  table.set_own("later", "weight", 3.0)
  assert table.score(standing(2)).tolist() == pytest.approx([4 * DT_S] * 2)


def test_numbers_can_be_moved_and_come_back(standing):
  # Guards: an eased number that stays eased, or that edits the task's page.
  rows = {"upright": reward(1.0, rewards.upright, variance=0.2)}
  table = make(rows)
  s = standing(2, up_b=[[0.6, 0.0, 0.8]])
  before = table.score(s)
  table.set_ease("upright", "variance", 2.0, 0.5)
  assert table.numbers["upright"] == {"weight": 1.0, "variance": pytest.approx(1.1)}
  assert (table.score(s) > before).all()
  table.set_ease("upright", "weight", 5.0, 1.0)
  assert table.numbers["upright"]["weight"] == 5.0
  for key in ("variance", "weight"):
    table.set_ease("upright", key, 2.0, 0.0)
  assert torch.equal(table.score(s), before)
  assert rows["upright"].params == {"variance": 0.2}


def test_unknown_names_are_told():
  # Guards: a number that is moved and does not exist (LocoWheeledLegged#11).
  table = make({"upright": reward(1.0, rewards.upright, variance=0.2)})
  with pytest.raises(ValueError, match=r"no reward row 'uprigth'; did you mean 'upright'\?"):
    table.set_own("uprigth", "variance", 1.0)
  with pytest.raises(ValueError, match=r"has no number 'varianc'; did you mean 'variance'\?"):
    table.set_ease("upright", "varianc", 1.0, 0.5)


@pytest.mark.parametrize(
  ("params", "says"),
  [
    ({"variance": 0.2, "std": 1.0}, r"unknown parameters \['std'\], missing \[\]"),
    ({}, r"unknown parameters \[\], missing \['variance'\]; it accepts \['variance'\]"),
  ],
)
def test_a_row_checks_its_parameters(params, says):
  # Guards: a typo that is found at the first step, or a default that hides a number.
  with pytest.raises(ValueError, match=says):
    reward(1.0, rewards.upright, **params)


def test_sums_are_saved_and_taken_up(standing):
  # Guards: a resumed run whose first episodes look half as good.
  table, other = (make({"good": row(2.0, one)}) for _ in range(2))
  for _ in range(60):
    table.score(standing(2))
  other.load(table.save())
  for each in (table, other):
    for _ in range(40):
      each.score(standing(2))
    each.end_episodes(torch.tensor([True, True]), FULL)
  assert table.drain(EPISODE_S) == other.drain(EPISODE_S) == pytest.approx({"good": 2.0})


def test_a_bad_number_can_be_forgotten(standing):
  # Guards: one NaN that makes a curve NaN to the end of the run, or takes other envs along.
  poison = [True]

  def sometimes(s):
    value = one(s)
    if poison:
      value[0] = poison.pop() and torch.nan
    return value

  table = make({"good": row(1.0, sometimes)})
  first = table.score(standing(2))
  assert first[0].isnan() and first[1] == pytest.approx(
    DT_S
  )  # the env has to see it, and to say so
  table.forget(torch.tensor([True, False]))
  for _ in range(99):
    table.score(standing(2))
  table.end_episodes(torch.tensor([False, True]), FULL)
  assert table.drain(EPISODE_S) == pytest.approx({"good": 1.0})
  table.end_episodes(torch.tensor([True, False]), FULL)
  assert table.drain(EPISODE_S) == pytest.approx({"good": 0.99})


def test_metrics_are_means_over_those_they_are_about(standing):
  # Guards: an error diluted by robots that stand.
  table = Metrics(
    {"error": term(metrics.linear_error), "drift": term(metrics.standing_drift)}, "cpu"
  )
  for speed in (0.1, 0.3):
    table.add(
      standing(
        3, command=[[0.3, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0] * 3], lin_vel_b=[[speed, 0.0, 0.0]] * 3
      )
    )
  assert table.drain() == pytest.approx({"error": 0.1, "drift": 0.2}, abs=1e-6)
  assert table.drain() == {}
  table.add(standing(3))
  assert table.drain() == {"drift": 0.0}


def test_metrics_of_no_rows(standing):
  # Guards: a task without metrics that stops at its first step.
  table = Metrics({}, "cpu")
  table.add(standing(2))
  assert table.drain() == {}


def test_a_metric_is_a_plain_row():
  # Guards: metric rows with parameters that nothing checks.
  assert isinstance(term(metrics.feet_down), Term)
  with pytest.raises(ValueError, match="unknown parameters"):
    term(metrics.feet_down, limit=3)
