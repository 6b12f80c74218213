"""Reward, termination and metric rows on hand-made states."""

from math import exp, radians, sin

import pytest
import torch

from mjrl.envs.terms import metrics, observations, rewards, terminations

MOVING = [[0.3, 0.0, 0.0]]


def value(fn, s, **params):
  result = fn(s, **params)
  assert result.shape == (s.command.shape[0],)
  return result.tolist()[0]


def close(number):
  return pytest.approx(number, rel=1e-5, abs=1e-6)


def test_linear_tracking(standing):
  # Guards: v_z left out, or the width not squared.
  track = rewards.track_linear_velocity
  command = [[0.3, -0.1, 0.5]]
  exact = standing(command=command, lin_vel_b=[[0.3, -0.1, 0.0]], ang_vel_b=[[0.0, 0.0, -2.0]])
  assert value(track, exact, std_m_s=0.25) == close(1)
  off = standing(command=command, lin_vel_b=[[0.1, 0.0, 0.2]])
  assert value(track, off, std_m_s=0.25) == close(exp(-(0.04 + 0.01 + 0.04) / 0.0625))


def test_angular_tracking(standing):
  # Guards: roll and pitch taken for yaw, or a sign.
  s = standing(command=[[0.3, 0.0, 0.5]], ang_vel_b=[[3.0, -3.0, 0.3]])
  assert value(rewards.track_angular_velocity, s, std_rad_s=0.3) == close(exp(-0.04 / 0.09))


def test_upright(standing):
  # Guards: a lean forward that is seen and one sideways that is not.
  for lean in ([[0.6, 0.0, 0.8]], [[0.0, -0.6, 0.8]]):
    assert value(rewards.upright, standing(up_b=lean), variance=0.2) == close(exp(-0.36 / 0.2))


def test_pose_is_narrow_for_who_stands(standing):
  # Guards: arm and leg widths exchanged, standing and moving exchanged, the undriven joint counted.
  widths = {
    "standing_arm_rad": 0.2,
    "standing_leg_rad": 0.1,
    "moving_arm_rad": 0.6,
    "moving_leg_rad": 0.3,
  }
  joints = [[0.1 + 0.2, 0.2 - 0.1, 2.0]]
  stands = standing(joint_pos_rad=joints)
  assert value(rewards.pose, stands, **widths) == close(exp(-(1 + 1) / 2))
  moves = standing(joint_pos_rad=joints, command=MOVING)
  assert value(rewards.pose, moves, **widths) == close(exp(-2 * (1 / 9) / 2))


def test_joint_limits(standing):
  # Guards: one side that is free, and joints the policy does not drive.
  s = standing(joint_pos_rad=[[-1.2, 1.0, 1.3]])
  assert value(rewards.joint_limits, s) == close(0.2 + 0.3)


def test_action_rate(standing):
  # Guards: the size of the action taken for its change.
  s = standing(action=[[1.0, -1.0]], last_action=[[1.0, -0.5]])
  assert value(rewards.action_rate, s) == close(0.25)


def test_foot_clearance(standing):
  # Guards: a foot that stands counted, vertical speed counted, radius forgotten.
  s = standing(foot_pos_w=[[[0, 0, 0.02], [0, 0, 0.01]]], foot_vel_w=[[[0.3, 0.4, 9], [0, 0, 9]]])
  assert value(rewards.foot_clearance, s, target_m=0.025) == close(0.015 * 0.5)


def test_swing_height(standing):
  # Guards: feet judged in the air instead of at their landing.
  s = standing(foot_peak_m=[[0.015, 0.2]], touchdown=[[True, False]])
  assert value(rewards.swing_height, s, target_m=0.03) == close(0.25)


def test_air_time_pays_for_swings_alone(standing):
  # Guards: feet that never come down paid for, or a robot that tramples when it should stand.
  for substeps, moving, share in ((20, 1.0, 0.5), (4, 1.0, 0.0), (100, 1.0, 0.0), (20, 0.0, 0.0)):
    s = standing(foot_air_substeps=[[0, substeps]], command=[[moving, 0.0, 0.0]])
    assert value(rewards.air_time, s, min_s=0.06, max_s=0.3) == close(share), (substeps, moving)


def test_foot_slip_ignores_a_swinging_foot(standing):
  # Guards: a swing that is punished as a slip.
  s = standing(foot_vel_w=[[[0.3, 0.4, 5.0], [0.3, 0.0, 0.0]]], foot_contacts=[[1.0, 0.0]])
  assert value(rewards.foot_slip, s) == close(0.25)


def test_soft_landing(standing):
  # Guards: the weight of a standing robot taken for a landing.
  s = standing(foot_force_w=[[[3.0, 0.0, -4.0], [0.0, 0.0, -9.0]]], touchdown=[[True, False]])
  assert value(rewards.soft_landing, s) == close(5)


@pytest.mark.parametrize(("force", "steps"), [(0.9, 0.0), (1.1, 4.0)])
def test_self_collision(standing, force, steps):
  # Guards: the number of contacts taken for the force.
  s = standing(self_force=[[3.0, 0.0, force, 0.0]])
  assert value(rewards.self_collision, s, threshold_n=1.0) == steps


def test_standing_sway(standing):
  # Guards: motion punished that was asked for.
  twist = {"lin_vel_b": [[0.3, 0.0, 0.4]], "ang_vel_b": [[0.0, 0.5, 0.0]]}
  assert value(rewards.standing_sway, standing(**twist)) == close(0.5)
  assert value(rewards.standing_sway, standing(command=MOVING, **twist)) == 0


def test_tilt_rate(standing):
  # Guards: yaw counted, and no free part.
  s = standing(ang_vel_b=[[0.8, 0.6, 5.0]])
  assert value(rewards.tilt_rate, s, free_rad2_s2=0.4) == close(0.6)
  assert value(rewards.tilt_rate, s, free_rad2_s2=1.2) == 0


GAIT = {"width_feet": 0.7, "max_air_s": 0.5, "max_contact_s": 1.0}


def test_gait(standing):
  # Guards: the wrong foot rewarded: 0 wrong gives 1, 1 gives 0.13, 2 give 0.0003.
  for contacts, wrong in (([[0, 1]], 0), ([[1, 1]], 1), ([[1, 0]], 2)):
    s = standing(command=MOVING, foot_contacts=contacts)
    assert value(rewards.gait, s, **GAIT) == close(exp(-(wrong**2) / 0.49)), contacts
  later = standing(command=MOVING, foot_contacts=[[1, 0]], clock_steps=2)
  assert value(rewards.gait, later, **GAIT) == close(1)


def test_gait_pays_only_who_steps(standing):
  # Guards: half of the reward for standing still for ever, and any for marching when told to stand.
  right = {"foot_contacts": [[0, 1]]}
  assert value(rewards.gait, standing(**right), **GAIT) == 0
  for counter, limit in (("foot_air_substeps", 100), ("foot_contact_substeps", 200)):
    for extra, reward in ((0, 1), (1, 0)):  # 0.5 s and 1 s in substeps of 5 ms
      s = standing(command=MOVING, **right, **{counter: [[4, limit + extra]]})
      assert value(rewards.gait, s, **GAIT) == close(reward), (counter, extra)


def test_stance_load(standing):
  # Guards: the load of the swinging feet.
  force = [[[0.0, 0.0, -50.0], [0.0, 0.0, -2.0]]]
  assert value(
    rewards.stance_load, standing(command=MOVING, foot_force_w=force), enough_n=5.0
  ) == close(0.4)
  assert value(rewards.stance_load, standing(foot_force_w=force), enough_n=5.0) == 0


def test_standing_load(standing):
  # Guards: one foot that carries it all being enough.
  force = [[[0.0, 0.0, -50.0], [0.0, 0.0, -1.5]]]
  assert value(rewards.standing_load, standing(foot_force_w=force), enough_n=3.0) == close(0.75)
  moving = standing(command=MOVING, foot_force_w=force)
  assert value(rewards.standing_load, moving, enough_n=3.0) == 0


def test_stance_gap(standing):
  # Guards: the swinging foot held down, and feet in the air when asked to stand.
  heights = [[[0.0, 0.0, 0.01 + 0.2], [0.0, 0.0, 0.01 + 0.03]]]
  moving = standing(command=MOVING, foot_pos_w=heights)
  assert value(rewards.stance_gap, moving, max_m=0.05) == close(0.03)
  assert value(rewards.stance_gap, standing(foot_pos_w=heights), max_m=0.05) == close(0.04)


@pytest.mark.parametrize(("norm", "moves"), [(0.05, 0.0), (0.051, 1.0)])
def test_who_is_asked_to_move(standing, norm, moves):
  # Guards: two rows that disagree on what standing is.
  s = standing(command=[[0.0, 0.0, norm]])
  assert s.moving.tolist() == [moves] and s.standing.tolist() == [1 - moves]


@pytest.mark.parametrize(("degrees", "fell"), [(49, False), (51, True), (100, True), (170, True)])
def test_fell_over(standing, degrees, fell):
  # Guards: a robot on its back, whose tilt has a small sine.
  from math import cos

  for axis in (0, 1):
    up = [0.0, 0.0, cos(radians(degrees))]
    up[axis] = -sin(radians(degrees))
    assert terminations.fell_over(standing(up_b=[up]), max_tilt_rad=radians(50)).tolist() == [fell]


def weighted(row, s):
  number, share = row(s)
  return number.tolist(), share.tolist()


def test_metrics_of_moving_robots_leave_out_who_stands(standing):
  # Guards: an error that falls because more robots are asked to stand.
  s = standing(
    2,
    command=[[0.3, 0.4, 0.5], [0.0, 0.0, 0.0]],
    lin_vel_b=[[0.0] * 3, [9.0] * 3],
    clock_steps=[0, 0],
  )
  assert weighted(metrics.linear_error, s)[0][0] == close(0.5)
  assert weighted(metrics.angular_error, s)[0][0] == close(0.5)
  assert weighted(metrics.wrong_feet, s)[0] == [1, 1]
  for row in (metrics.linear_error, metrics.angular_error, metrics.wrong_feet, metrics.feet_down):
    assert weighted(row, s)[1] == [1, 0], row
  drift, share = weighted(metrics.standing_drift, s)
  assert share == [0, 1] and drift[1] == close(9 * 2**0.5)


def test_metrics_of_feet_are_means_over_feet(standing):
  # Guards: a mean over envs in which one foot counts as much as six.
  s = standing(
    2,
    foot_vel_w=[[[0.3, 0.4, 0.0], [0.0, 0.0, 0.0]], [[9.0, 0.0, 0.0], [1.0, 0.0, 0.0]]],
    foot_contacts=[[1, 1], [0, 1]],
    foot_peak_m=[[0.02, 0.04], [0.01, 0.5]],
    touchdown=[[True, True], [True, False]],
    foot_force_w=[[[0, 0, -4.0], [0, 0, -6.0]], [[0, 3.0, -4.0], [0, 0, -99.0]]],
  )
  for row, numbers, shares in (
    (metrics.slip_speed, [0.25, 1.0], [2, 1]),
    (metrics.peak_height, [0.03, 0.01], [2, 1]),
    (metrics.landing_force, [5, 5], [2, 1]),
  ):
    got = weighted(row, s)
    assert got[0] == [close(n) for n in numbers] and got[1] == shares, row


def test_nothing_to_measure_has_no_share(standing):
  # Guards: 0/0 in the log of a robot that is in the air.
  s = standing(foot_contacts=[[0, 0]])
  for row in (metrics.slip_speed, metrics.peak_height, metrics.landing_force):
    number, share = row(s)
    assert share.tolist() == [0] and number.isfinite().all(), row


def test_observation_rows_that_compute(standing):
  # Guards: air time in steps, a force whose sign is lost, a phase shown to who stands.
  s = standing(
    command=MOVING,
    foot_air_substeps=[[6, 0]],
    foot_force_w=[[[1.0, 0.0, -3.0], [0.0, 0.0, 0.0]]],
    encoder_bias_rad=[[0.01, -0.02, 9.0]],
    clock_steps=1,
  )
  assert observations.foot_air_time(s).tolist() == [[close(0.03), 0]]
  log = observations.foot_force_log(s)
  torch.testing.assert_close(log[0, :3].exp(), torch.tensor([2.0, 1.0, 0.25]))
  assert observations.encoder_offset(s).tolist() == [[close(0.01), close(-0.02)]]
  assert observations.joint_offset(s).tolist() == [[0, 0]]
  assert observations.gait_phase(s).tolist() == [[1, 0]]
  assert observations.gait_phase(standing(clock_steps=1)).tolist() == [[0, 0]]
  assert observations.gravity_b(s).tolist() == [[0, 0, -1]]
