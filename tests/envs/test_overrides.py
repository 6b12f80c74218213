"""Other numbers by path: they arrive where they were meant to, or are refused."""

from dataclasses import replace

import pytest

from mjrl import tasks
from mjrl.envs.describe import describe, differences
from mjrl.envs.overrides import merge, override, plain
from mjrl.envs.task import Observation, Task
from mjrl.envs.terms import observations

NATIVE = "recipes.native."


@pytest.mark.parametrize(
  ("path", "value", "changes"),
  [
    ("rewards.foot_slip.weight", -0.2, "rewards.foot_slip.weight: -0.1 -> -0.2"),
    ("rewards.foot_slip.weight", 0, "rewards.foot_slip.weight: -0.1 -> 0.0"),
    ("rewards.gait.width_feet", 1, "rewards.gait.params.width_feet: 0.7 -> 1.0"),
    ("rewards.gait.params.width_feet", 1, "rewards.gait.params.width_feet: 0.7 -> 1.0"),
    (
      "observations.policy.joint_pos.noise",
      0,
      "observations.policy.joint_pos.noise: 0.01 -> 0.0",
    ),
    (
      "observations.policy.command.clip",
      [-1, 1],
      "observations.policy.command.clip: None -> [-1.0, 1.0]",
    ),
    ("command.forward_m_s", [-0.3, 0.6], "command.forward_m_s: [-0.5, 0.5] -> [-0.3, 0.6]"),
    ("command.forward_m_s.1", 0.6, "command.forward_m_s: [-0.5, 0.5] -> [-0.5, 0.6]"),
    ("events.push.every_s", [1, 2], "events.push.every_s: [1.0, 3.0] -> [1.0, 2.0]"),
    ("events.push.yaw_rad_s", 0.1, "events.push.params.yaw_rad_s: 0.4 -> 0.1"),
    (
      "terminations.fell_over.max_tilt_rad",
      1,
      "terminations.fell_over.params.max_tilt_rad: 0.8726646259971648 -> 1.0",
    ),
    ("episode_s", 10, "episode_s: 20.0 -> 10.0"),
    ("action.scale_rad", 0.3, "action.scale_rad: 0.25 -> 0.3"),
    ("curriculum.min_holds", 8, "curriculum.min_holds: 64 -> 8"),
    ("recipe.learning_rate", 1e-3, NATIVE + "learning_rate: 0.0005 -> 0.001"),
    ("recipe.actor_hidden", [64], NATIVE + "actor_hidden: [128, 128] -> [64]"),
    ("recipe.history", None, NATIVE + "history: 1 -> None"),
    (
      "recipe.curriculum.gait_width.easy",
      3,
      NATIVE + "curriculum.gait_width.easy: 2.0 -> 3.0",
    ),
  ],
)
def test_one_number_changes_and_nothing_else(tripod, path, value, changes):
  # Guards: a number that lands in another row, on another engine, or nowhere.
  before = describe(tripod)
  changed = override(tripod, "native", {path: value})
  assert differences(before, describe(changed)) == [changes]
  assert isinstance(changed, Task) and describe(tripod) == before


@pytest.mark.parametrize("event", ["mass", "gains", "strength", "delay"])
def test_what_never_happens_is_switched_on(tripod, event):
  # Guards: a number that is set for an event that never happens, and a robot as it always was.
  (name, value), *_ = tripod.events[event].params.items()
  wider = {f"events.{event}.{name}": [value[0], 2 * value[1]]}
  with pytest.raises(ValueError, match=rf"no effect: {event} never happens; set events.{event}.wh"):
    override(tripod, "native", wider)
  changed = override(tripod, "native", {f"events.{event}.when": "startup", **wider})
  row = changed.events[event]
  assert (row.when, row.params[name]) == ("startup", (value[0], 2 * value[1]))


def test_a_rung_is_reached_by_its_place(tripod):
  # Guards: the same for what lies in a list.
  changed = override(tripod, "native", {"curriculum.rungs.1.linear": 0.6})
  assert [rung.linear for rung in changed.curriculum.rungs] == [0.5, 0.6, 1.0, 1.0]
  assert differences(describe(tripod.curriculum), describe(changed.curriculum))


def test_what_is_null_is_taken_out(tripod):
  # Guards: a push that is set to null, and still pushes.
  changed = override(
    tripod, "native", {"events.push": None, "recipe.curriculum.yaw_width": None, "curriculum": None}
  )
  assert set(tripod.events) - set(changed.events) == {"push"}
  anneals = [t.recipes["native"].curriculum for t in (tripod, changed)]
  assert set(anneals[0]) - set(anneals[1]) == {"yaw_width"}
  assert changed.curriculum is None


def test_numbers_that_depend_on_each_other_change_at_once(tripod):
  # Guards: two rates of which neither may change before the other.
  rates = {"physics_dt_s": 0.007, "control_dt_s": 0.014}
  changed = override(tripod, "native", rates)
  assert (changed.physics_dt_s, changed.control_dt_s) == (0.007, 0.014)


@pytest.mark.parametrize(
  ("values", "says"),
  [
    ({"rewards.fot_slip.weight": 1}, "rewards has no 'fot_slip'; did you mean 'foot_slip'"),
    ({"rewards.gait.width": 1}, r"rewards\.gait has no 'width'; did you mean 'width_feet'"),
    ({"reward.gait.weight": 1}, "task jumper.tripod has no 'reward'; did you mean 'rewards'"),
    ({"recipe.lerning_rate": 1}, "recipe has no 'lerning_rate'; did you mean 'learning_rate'"),
    ({"curriculum.rungs.9.linear": 1}, r"curriculum\.rungs has no '9'; valid names: 0, 1, 2, 3"),
    ({"episode_s.x": 1}, r"episode_s is 20\.0, and has no parts"),
    ({"rewards.foot_slip": -1}, "set one of its parts: weight"),
    ({"rewards.foot_slip": None}, r"taken out by rewards\.foot_slip\.weight=0"),
    ({"terminations.fell_over": None}, "cannot be taken out"),
    ({"gait": None}, "rows read the clock"),
    ({"rewards.foot_slip.weight": "low"}, '"low" does not do; it must be a finite number'),
    ({"rewards.foot_slip.weight": float("nan")}, "it must be a finite number"),
    ({"rewards.foot_slip.weight": None}, "null does not do"),
    ({"rewards.gait.width_feet": True}, "true does not do; it must be a finite number"),
    ({"recipe.epochs": 2.5}, r"2\.5 does not do; it must be a whole number"),
    ({"recipe.clip_value_loss": 1}, "1 does not do; it must be true or false"),
    ({"recipe.actor_hidden": [64, "x"]}, "it must be a list, each item a whole number"),
    ({"command.forward_m_s": [1]}, "it must be a list of 2, each a finite number"),
    ({"command.forward_m_s": 1}, "it must be a list of 2, each a finite number"),
    ({"recipe.num_envs": 8}, "no effect on a run; use --num_envs"),
    ({"recipe.max_iterations": 8}, "no effect on a run; use --max_iterations"),
    ({"recipes.warp.epochs": 8}, "the recipe of the engine that runs, and another has no effect"),
    ({"name": "x"}, "--task chooses another"),
    ({"robot.name": "x"}, "a task is made for its robot"),
    ({"rewards.gait.fn": "x"}, r"rewards\.gait has no 'fn'"),
    ({"events.push.when": "iteration"}, "what happens at 'interval' cannot happen at 'iteration'"),
    ({"episode_s": 3, "rewards.gait.params.width_feet": 1, "rewards.gait.width_feet": 2}, "twice"),
    ({"command.forward_m_s.0": -1, "command.forward_m_s": [0, 1]}, "is set twice"),
    ({"curriculum": None, "curriculum.min_holds": 3}, "is set twice"),
    # What the rebuilt task and recipe refuse names the override that did it, and no other.
    ({"episode_s": 3, "physics_dt_s": 0.007}, r"^physics_dt_s=0\.007: .* not a whole multiple"),
    ({"command.forward_m_s": [2, 1]}, r"^command\.forward_m_s=\[2, 1\]: .*the lower end"),
    ({"recipe.bootstrap": "prev"}, "did you mean 'previous'"),
    ({"recipe.activation": "ellu"}, "did you mean 'elu'"),
    ({"recipe.learning_rate": -1}, r"learning_rate is -1\.0; it must be above 0"),
    ({"recipe.actor_hidden": []}, "layers of at least 1"),
    ({"recipe.gamma": 1.5}, r"it must be in 0\.\.1"),
    ({"observations.policy.command.history": 0}, "history 0"),
    ({"episode_s": 0.001}, "at least a control step"),
    ({"rewards.track_linear_velocity.weight": 0}, "whose width the ladder sets"),
    ({"recipe.curriculum.gait_width.path": "rewards.gait.wide"}, "no number 'wide'"),
  ],
)
def test_what_cannot_be_is_refused(tripod, values, says):
  # Guards: a typo that trains the task's own numbers for a night.
  with pytest.raises(ValueError, match=says):
    override(tripod, "native", values)


@pytest.mark.parametrize(
  ("values", "says"),
  [
    (
      {"rewards.upright.weight": 0, "rewards.upright.variance": 1},
      "^rewards.upright.variance: has no effect: the weight of upright is 0",
    ),
    (
      {"rewards.track_linear_velocity.std_m_s": 1},
      r"each rung sets it, see curriculum\.rungs\.0\.linear_std_m_s",
    ),
    ({"rewards.gait.weight": 0}, r"set recipe\.curriculum\.gait_weight=null too"),
    (
      {
        "rewards.gait.weight": 0,
        "recipe.curriculum.gait_weight": None,
        "recipe.curriculum.gait_width.easy": 3,
      },
      "^recipe.curriculum.gait_width.easy: has no effect: the weight of gait is 0",
    ),
    ({"command.heading": 0, "command.heading_gain_1_s": 1}, "with command.heading 0"),
    ({"observations.policy.joint_pos.history": 3}, "recipe.history, 1, counts for every row"),
  ],
)
def test_what_would_do_nothing_is_refused(tripod, values, says):
  # Guards: a number that is printed in the banner, kept in run.yaml, and never used.
  with pytest.raises(ValueError, match=says):
    override(tripod, "native", values)


@pytest.mark.parametrize(
  "values",
  [
    {"rewards.track_linear_velocity.std_m_s": 1, "curriculum": None},
    {"rewards.gait.weight": 0, "recipe.curriculum.gait_weight": None},
    {"observations.policy.joint_pos.history": 3, "recipe.history": None},
  ],
)
def test_what_does_something_is_not(tripod, values):
  # Guards: a rule that is too strict to be useful.
  assert override(tripod, "native", values) != tripod


def test_a_recipe_is_of_the_engine_that_runs(tripod):
  # Guards: the other engine's recipe changed instead.
  changed = override(tripod, "warp", {"recipe.epochs": 7})
  assert [changed.recipes[e].epochs for e in ("native", "warp")] == [4, 7]
  bare = replace(tripod, recipes={})
  with pytest.raises(ValueError, match="no recipe is used here"):
    override(bare, "native", {"recipe.epochs": 7})


def test_the_upper_of_two_sets_has_its_way(tripod):
  # Guards: a resumed run that keeps its checkpoint's number although another was typed.
  lower = {"command.forward_m_s": [-1, 1], "events.push.yaw_rad_s": 1, "episode_s": 5}
  upper = {"rewards.gait.params.width_feet": 1, "command.forward_m_s.1": 2, "events.push": None}
  merged = merge(*(plain(tripod, "native", values) for values in (lower, upper)))
  assert merged == {
    "command.forward_m_s": [-1, 2],
    "episode_s": 5,
    "rewards.gait.width_feet": 1,
    "events.push": None,
  }


def test_an_observation_checks_its_numbers():
  # Guards: a history of zero frames, of a row that was not made by `obs`.
  with pytest.raises(ValueError, match="noise -1"):
    Observation(fn=observations.action, noise=-1)


def test_a_ladder_of_another_command_can_be_set_and_taken_out():
  # Guards: a second ladder that no override reaches.
  task = tasks.build("jumper.posture")
  path = "ladders.posture.rungs.0.fraction"
  changed = override(task, "native", {path: 0.25})
  assert changed.ladders["posture"].rungs[0].fraction == 0.25
  width = {"rewards.track_tilt.std_rad": 0.1}
  with pytest.raises(ValueError, match=r"see ladders\.posture\.rungs\.0\.tilt_std_rad"):
    override(task, "native", width)
  without = override(task, "native", {"ladders.posture": None} | width)
  assert not without.ladders and without.rewards["track_tilt"].params == {"std_rad": 0.1}
  with pytest.raises(ValueError, match=r"a ladder widens command 'posture'; "):
    replace(task, commands={})
