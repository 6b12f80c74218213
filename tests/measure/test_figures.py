from dataclasses import replace

import numpy as np
import pytest

from mjrl.measure.figures import (
  cost_of_transport,
  drift_speed,
  joint_figures,
  segment_figures,
  tracking,
)
from mjrl.measure.series import segment
from mjrl.measure.statistics import counted_steps, mean_over_time, spread

FEET = ("LF", "RF", "LM", "RM", "LR", "RR")
JOINTS = ("A_J0", "A_J1")


def figures(recording, clock, command=(0.4, 0.0, 0.0), settle_s=0.2):
  return segment_figures(
    recording,
    segment(command),
    joints=JOINTS,
    feet=FEET,
    clock=clock,
    effort_limit_n_m=2.0,
    mass_kg=2.5,
    settle_s=settle_s,
  )


def test_settling_is_left_out_after_every_fall_and_not_only_at_the_start():
  # Guards: a robot that keeps falling being credited with the seconds in which it is set up again.
  ended = np.zeros((8, 2), bool)
  ended[3, 0] = True
  counted = counted_steps(ended, settle_steps=2)
  assert counted[:, 0].tolist() == [False, False, True, False, False, False, True, True]
  assert counted[:, 1].tolist() == [False, False] + [True] * 6


def test_a_mean_over_no_steps_is_missing_and_not_zero():
  # Guards: an env that never got going pulling the mean of the others to zero, unseen.
  counted = np.array([[True, False], [True, False]])
  means = mean_over_time(np.array([[1.0, 9.0], [3.0, 9.0]]), counted)
  assert means[0] == 2.0 and np.isnan(means[1])
  assert spread(means).mean == 2.0 and spread(means).std == 0.0
  assert spread(np.array([np.nan])) is None


def test_spread_is_over_envs():
  # Guards: the standard deviation being taken over time, where the sway of the gait hides the envs.
  assert spread(np.array([1.0, 3.0])).std == 1.0


def test_speed_is_half_of_what_was_asked():
  # Guards: error or ratio the wrong way round.
  got = tracking(0.4, np.array([0.1, 0.3]))
  assert got.achieved.mean == pytest.approx(0.2)
  assert got.error == pytest.approx(-0.2) and got.ratio == pytest.approx(0.5)
  assert tracking(-0.4, np.array([-0.2])).ratio == pytest.approx(0.5)


def test_no_ratio_to_a_command_of_zero():
  # Guards: an infinite or invented ratio for an axis that nobody commanded.
  got = tracking(0.0, np.array([0.1]))
  assert got.ratio is None and got.error == pytest.approx(0.1)


def test_drift_is_the_way_from_first_to_last_place_and_not_the_path():
  # Guards: a swaying robot reported as drifting, and a drifting one as standing.
  place = np.zeros((11, 2, 2))
  place[:, 0, 0] = 0.01 * np.arange(11)  # 0.1 m in ten steps of 0.1 s
  place[1::2, 1, 1] = 0.05  # there and back
  assert drift_speed(place, np.ones((11, 2), bool), 0.1) == pytest.approx([0.1, 0.0])


def test_being_put_back_after_a_fall_is_no_drift():
  # Guards: the jump to the next episode's start counted as movement.
  place = np.zeros((6, 1, 2))
  place[3:] = 5.0
  counted = np.array([True, True, False, False, True, True])[:, None]
  assert drift_speed(place, counted, 0.1) == pytest.approx([0.0])


def test_torque_of_one_joint():
  # Guards: a peak that ignores the sign, a mean in place of the root mean square, a limit that
  # float32 never quite reaches.
  torque = np.array([[0.0], [-2.0], [1.0], [np.float32(1.9999)]])
  counted = np.array([[True], [True], [True], [False]])
  got = joint_figures(torque, counted, 2.0)
  assert got.peak_torque_n_m == 2.0
  assert got.rms_torque_n_m == pytest.approx((5 / 3) ** 0.5)
  assert got.share_at_limit == pytest.approx(1 / 3)
  assert joint_figures(torque, np.ones((4, 1), bool), 2.0).share_at_limit == 0.5


def test_cost_of_transport():
  # Guards: weight or speed missing from it; a finite cost of a robot that stands.
  power = np.full((4, 2), 5.0)
  axes = np.array([[0.3, 0.4, 9.0], [0.0, 0.001, 0.0]])
  got = cost_of_transport(power, axes, np.ones((4, 2), bool), mass_kg=2.0)
  assert got[0] == pytest.approx(5.0 / (2.0 * 9.81 * 0.5))
  assert np.isnan(got[1])


def test_a_perfect_walk(walk, tripod):
  # Guards: any figure lost between the arrays and the report.
  got = figures(walk, tripod)
  assert got.steps == 160 and got.counted_share == pytest.approx(150 / 160)
  assert (got.falls, got.envs_failed, got.diverged) == (0, 0, 0)
  assert got.forward_m_s.ratio == pytest.approx(0.5) and got.yaw_rad_s.ratio is None
  assert got.drift_m_s is None
  assert got.clock_match_strict.mean == got.clock_match_lenient.mean == 1.0
  assert got.cost_of_transport.mean == pytest.approx(5.0 / (2.5 * 9.81 * 0.2))
  assert got.height_m.mean.mean == pytest.approx(0.1)
  assert got.tilt_rad.greatest == pytest.approx(0.05)
  assert list(got.feet) == list(FEET) and list(got.joints) == list(JOINTS)
  for foot in (*got.feet.values(), got.all_feet):
    assert foot.clock_match.mean == 1.0
    assert foot.lift_m.mean == pytest.approx(0.032)
    assert foot.clearance_m.mean == pytest.approx(0.03)
    assert foot.slip_m_s.mean == pytest.approx(0.01)
    assert foot.duty.mean == pytest.approx(0.5, abs=0.03)
    assert foot.short_flights == 0
  assert got.all_feet.swings == sum(foot.swings for foot in got.feet.values()) > 0


def test_standing_has_drift_and_no_clock(walk, tripod):
  # Guards: a robot asked to stand being judged by a clock that it cannot see.
  got = figures(walk, tripod, command=(0.0, 0.0, 0.0))
  assert got.drift_m_s.mean == pytest.approx(0.2)
  assert got.clock_match_strict is None and got.clock_match_lenient is None
  assert got.all_feet.clock_match is None and got.cost_of_transport is None


def test_turning_on_the_spot_has_no_cost_of_transport(walk, tripod):
  # Guards: a cost per metre where no metre was asked for.
  assert figures(walk, tripod, command=(0.0, 0.0, 0.5)).cost_of_transport is None


def test_a_task_without_a_gait_has_no_clock_figures(walk):
  # Guards: clock figures made up for a task that has no clock.
  got = figures(walk, None)
  assert got.clock_match_strict is None and got.feet["LF"].clock_match is None
  assert got.all_feet.lift_m.mean == pytest.approx(0.032)


def test_falls_are_counted_apart_from_divergences_and_during_settling(walk, tripod):
  # Guards: a fall in the first second vanishing with the samples that do not count.
  ended = walk.ended.copy()
  ended[2, 0] = ended[50, 0] = ended[60, 1] = True
  diverged = np.zeros_like(ended)
  diverged[50, 0] = True
  got = figures(replace(walk, ended=ended, diverged=diverged), tripod)
  assert (got.falls, got.diverged, got.envs_failed) == (2, 1, 2)


def test_a_robot_that_always_falls_has_no_figures(walk, tripod):
  # Guards: numbers from a replay in which nothing counted.
  got = figures(replace(walk, ended=np.ones_like(walk.ended)), tripod)
  assert got.counted_share == 0 and got.falls == 320
  assert got.forward_m_s.achieved is None and got.forward_m_s.ratio is None
  assert got.all_feet.lift_m is None and got.clock_match_lenient is None
  assert got.joints["A_J0"].peak_torque_n_m is None and got.height_m.least is None


def test_a_posture_is_compared_number_by_number(walk, tripod):
  # Guards: a twist under the name of a roll; the way to a posture averaged with the posture.
  body = np.broadcast_to(np.array([0.1, 0.2, -0.1, 0.12]), (160, 2, 4)).copy()
  body[:10] = 9.0  # before anything counts
  body[:, 1, 1] = 0.3
  asked = (0.0, 0.5, -0.2, 0.1)
  found = segment_figures(
    replace(walk, posture=body),
    segment((0.2, 0.0, 0.0), asked),
    joints=JOINTS,
    feet=FEET,
    clock=tripod,
    effort_limit_n_m=2.0,
    mass_kg=2.5,
    settle_s=0.2,
  ).posture
  axes = (found.twist_rad, found.pitch_rad, found.roll_rad, found.height_m)
  assert tuple(axis.commanded for axis in axes) == asked
  assert [axis.achieved.mean for axis in axes] == pytest.approx([0.1, 0.25, -0.1, 0.12])
  assert found.pitch_rad.error == pytest.approx(-0.25) and found.pitch_rad.achieved.std > 0.04
  assert found.twist_rad.ratio is None and found.roll_rad.ratio == pytest.approx(0.5)


def test_a_task_without_postures_has_no_figures_of_them(walk, tripod):
  # Guards: zeros where nothing was asked.
  assert figures(walk, tripod).posture is None
