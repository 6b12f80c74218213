"""The walking tasks are one another's control: what differs, and the tables of the reference."""

import re
from math import pi, radians

import pytest

from mjrl import tasks
from mjrl.envs.describe import describe, differences

# Paths at which a gait may differ from another task: the gait, and what its ceiling implies.
ALLOWED = (
  r"name",
  r"gait(\..*)?",
  r"command\.(forward_m_s|left_m_s|yaw_rad_s)",
  r"observations\.(policy|critic)\.gait_phase",
  r"rewards\.(gait|stance_load|standing_load|stance_gap)",
  r"rewards\.track_linear_velocity\.params\.std_m_s",
  r"rewards\.track_angular_velocity\.params\.std_rad_s",
  r"rewards\.pose\.params\.standing_(arm|leg)_rad",
  r"curriculum\.rungs",
  r"metrics\.wrong_feet",
  r"recipes\.native\.curriculum\.\w+",
)


def page(name):
  return describe(tasks.build(name))


def test_flat_and_tripod_differ_in_nothing_but_the_gait():
  # Guards: a weight changed in one task, after which the two compare nothing.
  lines = differences(page("jumper.flat"), page("jumper.tripod"))
  paths = [line.split(": ")[0] for line in lines]
  for path in paths:
    assert any(re.fullmatch(allowed, path) for allowed in ALLOWED), path
  for allowed in ALLOWED:  # and the list has no entry that allows what does not differ
    assert any(re.fullmatch(allowed, path) for path in paths), allowed


def test_recipes_differ_in_what_a_clock_eases_alone():
  # Guards: one task that is learned with other numbers than the one it is compared with.
  flat, tripod = (tasks.build(name).recipes["native"].curriculum for name in RUNGS)
  assert flat.items() <= tripod.items()
  for key in tripod.keys() - flat.keys():
    assert tripod[key].metric == "wrong_feet", key


def test_a_change_would_be_seen():
  # Guards: a comparison that is blind.
  flat, tripod = page("jumper.flat"), page("jumper.tripod")
  tripod["rewards"]["foot_slip"]["weight"] = -0.2
  assert "rewards.foot_slip.weight: -0.1 -> -0.2" in differences(flat, tripod)


def test_ladders_are_of_one_shape():
  # Guards: a gait that climbs more easily than another.
  shapes = []
  for name in ("jumper.flat", "jumper.tripod"):
    task = tasks.build(name)
    ceiling, turn = task.command.forward_m_s[1], task.command.yaw_rad_s[1]
    shapes.append(
      [
        (r.linear, r.angular, r.linear_std_m_s / ceiling, r.angular_std_rad_s / turn)
        for r in task.curriculum.rungs
      ]
    )
  for rung, other in zip(*shapes, strict=True):
    assert rung == pytest.approx(other)


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


def test_the_rest_of_tripod_is_the_reference_s():
  # Guards: a rate, range or gain that drifted.
  task = tasks.build("jumper.tripod")
  assert (task.physics_dt_s, task.control_dt_s, task.episode_s) == (0.005, 0.02, 20.0)
  assert task.action.scale_rad == 0.25
  command = task.command
  assert command.forward_m_s == command.left_m_s == (-0.5, 0.5)
  assert command.yaw_rad_s == (-0.75, 0.75) and command.hold_s == (3.0, 8.0)
  assert (command.standing, command.heading, command.heading_gain_1_s) == (0.2, 0.3, 0.5)
  gait = task.gait
  assert (gait.cycle_steps, gait.swing_steps, gait.duty) == (16, 8, 0.5)
  assert gait.groups == (("LF", "RM", "LR"), ("RF", "LM", "RR")) and gait.mirror == (-1, -1)
  assert 1 / (gait.cycle_steps * task.control_dt_s) == pytest.approx(3.125)
  assert task.terminations["fell_over"].params == {"max_tilt_rad": radians(50)}
  start = task.events["start"].params
  assert start == {"spread_m": 0.5, "lift_m": (0.01, 0.05), "yaw_rad": pi}
  assert task.events["foot_friction"].params == {"sliding": (0.5, 1.5)}
  assert task.events["encoder_bias"].params == {"bias_rad": 0.015}
  assert task.events["base_com"].params == {"x_m": 0.025, "y_m": 0.025, "z_m": 0.03}
  assert task.events["push"].every_s == (1.0, 3.0)


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
