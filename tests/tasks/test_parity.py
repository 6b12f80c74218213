"""The walking tasks are one another's control: what differs, and the tables of the reference."""

import re
from itertools import combinations
from math import pi, radians

import pytest

from mjrl import tasks
from mjrl.envs.describe import describe, differences

WALKING = ("jumper.flat", "jumper.tripod", "jumper.tetrapod", "jumper.ripple")
CLOCKED = WALKING[1:]

# Paths at which two gaits may differ: the gait, and what it and its ceiling imply.
OF_A_GAIT = (
  r"name",
  r"gait\.(name|groups|mirror|swing_steps)",
  r"command\.(forward_m_s|left_m_s|yaw_rad_s)",
  r"rewards\.gait\.params\.max_contact_s",
  r"rewards\.stance_load\.params\.enough_n",
  r"rewards\.track_linear_velocity\.params\.std_m_s",
  r"rewards\.track_angular_velocity\.params\.std_rad_s",
  r"rewards\.pose\.params\.standing_(arm|leg)_rad",
  r"curriculum\.rungs",
  r"recipes\.native\.curriculum\.\w+\.(initial|start|done)",
  r"recipes\.native\.curriculum\.gait_width\.easy",
)
# Rows that a clock adds, or takes away.
OF_A_CLOCK = (
  r"gait",
  r"observations\.(policy|critic)\.gait_phase",
  r"rewards\.(gait|stance_load|standing_load|stance_gap|air_time)",
  r"metrics\.wrong_feet",
  r"recipes\.native\.curriculum\.\w+(\.(easy|metric|initial|start|done))?",
)


# Paths at which the task with postures may differ from the tripod, whose walk it shares.
OF_A_POSTURE = (
  r"name",
  r"command\.standing",
  r"(commands|ladders)\.posture",
  r"observations\.(policy|critic)\.posture",
  r"rewards\.(track_(twist|tilt|height)|upright|soft_landing)",
  r"rewards\.track_linear_velocity\.fn",
  r"rewards\.pose\.params\.standing_(arm|leg)_rad",
  r"metrics\.(twist_error_rad|tilt_error_rad|height_error_m)",
  r"recipes\.native\.curriculum\.(twist|tilt|height)_weight",
)


def page(name):
  return describe(tasks.build(name))


def paths(name, other):
  return [line.split(": ")[0] for line in differences(page(name), page(other))]


def allowed(path, patterns):
  return any(re.fullmatch(pattern, path) for pattern in patterns)


@pytest.mark.parametrize(("name", "other"), [*combinations(WALKING, 2)])
def test_two_gaits_differ_in_nothing_but_the_gait(name, other):
  # Guards: a weight changed in one task, after which the two compare nothing.
  without_clock = "jumper.flat" in (name, other)
  for path in paths(name, other):
    assert allowed(path, OF_A_GAIT + OF_A_CLOCK * without_clock), path


def test_a_posture_changes_nothing_of_the_walk():
  # Guards: a tripod that walks better or worse with postures, because its walk was changed too.
  for path in paths("jumper.tripod", "jumper.posture"):
    assert allowed(path, OF_A_POSTURE), path


def test_nothing_is_allowed_to_differ_that_does_not():
  # Guards: a list of exceptions that grows, and then lets through what it was not made for.
  for patterns, pairs in (
    (OF_A_GAIT, list(combinations(CLOCKED, 2))),
    (OF_A_CLOCK, [("jumper.flat", name) for name in CLOCKED]),
    (OF_A_POSTURE, [("jumper.tripod", "jumper.posture")]),
  ):
    found = [path for pair in pairs for path in paths(*pair)]
    for pattern in patterns:
      assert any(re.fullmatch(pattern, path) for path in found), pattern


def test_every_walking_task_is_compared():
  # Guards: a gait that is added and controlled by nothing.
  assert {name for name in tasks.TASKS if "walk" in tasks.entry(name).description} == set(WALKING)


def test_recipes_differ_in_what_a_clock_eases_alone():
  # Guards: one task that is learned with other numbers than the one it is compared with.
  tripod = tasks.build("jumper.tripod").recipes["native"].curriculum
  for name, scale in (("jumper.tetrapod", 2 / 3), ("jumper.ripple", 1.0)):
    eased = tasks.build(name).recipes["native"].curriculum
    assert eased.keys() == tripod.keys() and eased["speed_width"] == tripod["speed_width"]
    for key in eased.keys() - {"speed_width"}:
      assert eased[key].metric == "wrong_feet", key
      for number in ("initial", "start", "done"):
        expected = scale * getattr(tripod[key], number)
        assert getattr(eased[key], number) == pytest.approx(expected), (name, key)
  flat = tasks.build("jumper.flat").recipes["native"].curriculum
  assert flat["speed_width"] == tripod["speed_width"]
  assert {row.metric for row in flat.values()} == {"linear_error_m_s"}  # it knows of no feet


def test_a_change_would_be_seen():
  # Guards: a comparison that is blind.
  flat, tripod = page("jumper.flat"), page("jumper.tripod")
  tripod["rewards"]["foot_slip"]["weight"] = -0.2
  assert "rewards.foot_slip.weight: -0.1 -> -0.2" in differences(flat, tripod)


def test_ladders_are_of_one_shape():
  # Guards: a gait that climbs more easily than another.
  shapes = []
  for name in WALKING:
    task = tasks.build(name)
    ceiling, turn = task.command.forward_m_s[1], task.command.yaw_rad_s[1]
    shapes.append(
      [
        (r.linear, r.angular, r.linear_std_m_s / ceiling, r.angular_std_rad_s / turn)
        for r in task.curriculum.rungs
      ]
    )
  for shape in shapes[1:]:
    assert len(shape) == len(shapes[0])
    for rung, other in zip(shapes[0], shape, strict=True):
      assert rung == pytest.approx(other)


@pytest.mark.parametrize("name", CLOCKED)
def test_a_ceiling_is_what_the_clock_allows(name):
  # Guards: a speed that asks of a gait another step than of the others.
  task = tasks.build(name)
  cycle_s = task.gait.cycle_steps * task.control_dt_s
  assert task.command.forward_m_s[1] == pytest.approx(0.08 / cycle_s / task.gait.duty)
  assert task.command.yaw_rad_s[1] == pytest.approx(1.5 * task.command.forward_m_s[1])


# Reference: facts/jumper.md 2.1.
REWARDS = {  # weight, parameters
  "track_linear_velocity": (2.0, {"std_m_s": 0.25}),
  "track_angular_velocity": (2.0, {"std_rad_s": 0.30}),
  "upright": (1.0, {"variance": 0.2}),
  "pose": (
    1.0,
    {
      "standing_arm_rad": 0.20,
      "standing_leg_rad": 0.10,
      "moving_arm_rad": 0.60,
      "moving_leg_rad": 0.30,
    },
  ),
  "joint_limits": (-1.0, {}),
  "action_rate": (-0.1, {}),
  "foot_clearance": (-4.0, {"target_m": 0.025}),
  "swing_height": (-3.0, {"target_m": 0.025}),
  "foot_slip": (-0.1, {}),
  "soft_landing": (-1e-5, {}),
  "self_collision": (-0.25, {"threshold_n": 1.0}),
  "standing_sway": (-0.1, {}),
  "tilt_rate": (-0.05, {"free_rad2_s2": 0.5}),
  "gait": (1.0, {"width_feet": 0.7, "max_air_s": 0.5, "max_contact_s": 1.0}),
  "stance_load": (0.5, {"enough_n": 5.0}),
  "standing_load": (2.0, {"enough_n": 3.0}),
  "stance_gap": (-0.5, {"max_m": 0.05}),
}
POLICY = {  # frames, half-width of the noise
  "base_ang_vel": (1, 0.35),
  "projected_gravity": (1, 0.12),
  "joint_pos": (5, 0.01),
  "joint_vel": (5, 1.5),
  "actions": (5, 0.0),
  "command": (1, 0.0),
  "joint_torque": (5, 0.05),  # the reference does not say: ours
  "gait_phase": (1, 0.0),
}
CRITIC_MORE = {
  "base_lin_vel": 1,
  "foot_height": 5,
  "foot_air_time": 5,
  "foot_contact": 5,
  "foot_force": 5,
}
RUNGS = {  # linear and angular ceiling, linear and angular width
  "jumper.flat": [
    (0.40, 0.40, 0.20, 0.16),
    (0.56, 0.667, 0.28, 0.267),
    (0.80, 1.0, 0.40, 0.40),
    (0.80, 1.0, 0.20, 0.267),
  ],
  "jumper.tripod": [
    (0.25, 0.30, 0.125, 0.12),
    (0.35, 0.50, 0.175, 0.20),
    (0.50, 0.75, 0.25, 0.30),
    (0.50, 0.75, 0.125, 0.20),
  ],
  "jumper.ripple": [
    (0.20, 0.24, 0.10, 0.096),
    (0.28, 0.40, 0.14, 0.16),
    (0.40, 0.60, 0.20, 0.24),
    (0.40, 0.60, 0.10, 0.16),
  ],
}
RUNGS["jumper.tetrapod"] = RUNGS["jumper.tripod"]
# Gaits: steps of a cycle and of a swing, groups in swing order, mirror of the phase, N of a loaded
# foot, longest stance in s, widths of a standing robot's pose.
GAITS = {
  "jumper.tripod": (
    (16, 8, (("LF", "RM", "LR"), ("RF", "LM", "RR")), (-1, -1)),
    (5.0, 1.0, 0.20, 0.10),
  ),
  "jumper.tetrapod": (
    (12, 4, (("LF", "RR"), ("LM", "RM"), ("LR", "RF")), (-1, 1)),
    (3.7, 1.0, 0.10, 0.05),
  ),
  "jumper.ripple": (
    (12, 2, (("LF",), ("RM",), ("LR",), ("RF",), ("LM",), ("RR",)), (-1, -1)),
    (3.0, 1.5, 0.10, 0.05),
  ),
}


def test_rewards_of_tripod_are_those_of_the_reference():
  # Guards: a table that was tuned and still called the reference's.
  rows = tasks.build("jumper.tripod").rewards
  assert {key: (row.weight, dict(row.params)) for key, row in rows.items()} == {
    key: (weight, pytest.approx(params)) for key, (weight, params) in REWARDS.items()
  }


def test_observations_of_tripod_are_those_of_the_reference():
  # Guards: an order or a history that the controller on the robot does not have.
  groups = tasks.build("jumper.tripod").observations
  policy = groups["policy"]
  assert list(policy) == list(POLICY)
  assert {key: (row.history, row.noise) for key, row in policy.items()} == POLICY
  assert {row.delay_s for row in policy.values()} == {0.0}
  critic = groups["critic"]
  assert {key: row.history for key, row in critic.items()} == {
    key: frames for key, (frames, _) in POLICY.items()
  } | CRITIC_MORE
  assert policy["joint_pos"].fn.__name__ == "encoder_offset"
  assert critic["joint_pos"].fn.__name__ == "joint_offset"


@pytest.mark.parametrize("name", RUNGS)
def test_ladders_are_those_of_the_reference(name):
  # Guards: a rung whose kernel does not go with its range.
  task = tasks.build(name)
  ceiling, turn = task.command.forward_m_s[1], task.command.yaw_rad_s[1]
  rungs = [
    (r.linear * ceiling, r.angular * turn, r.linear_std_m_s, r.angular_std_rad_s)
    for r in task.curriculum.rungs
  ]
  assert rungs == [pytest.approx(rung, abs=1e-3) for rung in RUNGS[name]]
  ladder = task.curriculum
  assert (ladder.bar_base_m_s, ladder.bar_slope, ladder.dwell_steps) == (0.03, 0.3, 2400)


def test_a_robot_that_stands_still_fails_every_linear_bar():
  # Guards: a ladder climbed without walking: the bar above the error of the mean command.
  for name, rungs in RUNGS.items():
    ladder = tasks.build(name).curriculum
    for linear, *_ in rungs:
      # Mean distance from the centre of a square of half-width a is 0.765 a.
      assert ladder.bar_base_m_s + ladder.bar_slope * linear < 0.8 * 0.765 * linear, name


@pytest.mark.parametrize("name", GAITS)
def test_gaits_are_those_of_the_reference(name):
  # Guards: a clock of another order or rate than the robot's controller counts by.
  task, (clock, numbers) = tasks.build(name), GAITS[name]
  gait, rewards = task.gait, task.rewards
  assert (gait.cycle_steps, gait.swing_steps, gait.groups, gait.mirror) == clock
  pose = rewards["pose"].params
  assert numbers == (
    rewards["stance_load"].params["enough_n"],
    rewards["gait"].params["max_contact_s"],
    pose["standing_arm_rad"],
    pose["standing_leg_rad"],
  )
  assert rewards["gait"].params["max_air_s"] == 0.5
  assert rewards["gait"].params["width_feet"] == 0.7


def test_the_rest_of_tripod_is_the_reference_s():
  # Guards: a rate, range or gain that drifted.
  task = tasks.build("jumper.tripod")
  assert (task.physics_dt_s, task.control_dt_s, task.episode_s) == (0.005, 0.02, 20.0)
  assert task.action.scale_rad == 0.25
  command = task.command
  assert command.forward_m_s == command.left_m_s == (-0.5, 0.5)
  assert command.yaw_rad_s == (-0.75, 0.75) and command.hold_s == (3.0, 8.0)
  assert (command.standing, command.heading, command.heading_gain_1_s) == (0.2, 0.3, 0.5)
  assert 1 / (task.gait.cycle_steps * task.control_dt_s) == pytest.approx(3.125)
  assert task.terminations["fell_over"].params == {"max_tilt_rad": radians(50)}
  start = task.events["start"].params
  assert start == {"spread_m": 0.5, "lift_m": (0.01, 0.05), "yaw_rad": pi}
  assert task.events["foot_friction"].params == {"sliding": (0.5, 1.5)}
  assert task.events["encoder_bias"].params == {"bias_rad": 0.015}
  assert task.events["base_com"].params == {"x_m": 0.025, "y_m": 0.025, "z_m": 0.03}
  assert task.events["push"].every_s == (1.0, 3.0)
  off = [name for name, event in task.events.items() if event.when == "never"]
  assert off == ["mass", "gains", "strength", "delay"]


def test_the_gpu_recipe_is_the_reference_s():
  # Guards: a comparison with the reference that is none.
  recipe = tasks.build("jumper.tripod").recipes["warp"]
  expected = {
    "num_envs": 4096,
    "rollout_steps": 24,
    "max_iterations": 10_000,
    "save_every": 50,
    "actor_hidden": (512, 256, 128, 64),
    "critic_hidden": (512, 256, 128, 64),
    "activation": "elu",
    "init_std": 1.0,
    "epochs": 5,
    "mini_batches": 4,
    "learning_rate": 1e-3,
    "desired_kl": 0.01,
    "gamma": 0.99,
    "lam": 0.95,
    "clip": 0.2,
    "value_coef": 1.0,
    "clip_value_loss": True,
    "entropy_coef": 0.01,
    "max_grad_norm": 1.0,
    "mirror_augmentation": True,
    "mirror_coef": 1.0,
    "history": None,
  }
  assert {key: getattr(recipe, key) for key in expected} == expected
