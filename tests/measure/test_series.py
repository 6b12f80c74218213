from dataclasses import replace
from math import radians

import pytest

from mjrl import tasks
from mjrl.envs.task import VelocityCommand
from mjrl.measure.replayed import check_posture
from mjrl.measure.series import segment, standard_series

TRIPOD = VelocityCommand(
  forward_m_s=(-0.5, 0.5),
  left_m_s=(-0.5, 0.5),
  yaw_rad_s=(-0.75, 0.75),
  hold_s=(3.0, 8.0),
  standing=0.2,
  heading=0.3,
  heading_gain_1_s=0.5,
)


def test_the_series_follows_the_ceilings():
  # Guards: a task measured at another task's speeds.
  commands = [s.command for s in standard_series(TRIPOD)]
  assert commands == [(0, 0, 0), (0.25, 0, 0), (0.5, 0, 0), (0, 0, 0.5), (0, 0, -0.5)]
  names = [s.name for s in standard_series(TRIPOD)]
  assert names[0] == "stand" and names[2] == "forward 0.5 m/s" and names[4] == "turn -0.5 rad/s"


def test_a_task_that_cannot_turn_is_not_measured_standing_three_times():
  # Guards: the same command measured again under another name.
  series = standard_series(replace(TRIPOD, yaw_rad_s=(0.0, 0.0)))
  assert [s.name for s in series] == ["stand", "forward 0.25 m/s", "forward 0.5 m/s"]


@pytest.mark.parametrize(
  ("command", "standing", "travelling"),
  [((0, 0, 0), True, False), ((0, 0, 0.5), False, False), ((0, -0.2, 0.1), False, True)],
)
def test_what_is_asked(command, standing, travelling):
  # Guards: a sideways walk or a turn taken for standing.
  assert segment(command).standing == standing
  assert segment(command).travelling == travelling


def test_names_tell_directions():
  # Guards: backwards called forward in a report.
  assert segment((-0.2, 0.1, 0.0)).name == "back 0.2 m/s, left 0.1 m/s"
  assert segment((0.0, -0.1, 0.3)).name == "right 0.1 m/s, turn +0.3 rad/s"


def test_postures_come_one_by_one_and_then_in_a_walk():
  # Guards: an axis or a side that is never measured; two segments of one name.
  task = tasks.build("jumper.posture")
  series = standard_series(task.command, task.commands["posture"], task.robot.home_height_m)
  assert [s.name for s in series] == [
    *("stand", "forward 0.25 m/s", "forward 0.5 m/s", "turn +0.5 rad/s", "turn -0.5 rad/s"),
    *("stand, twist +30°", "stand, twist -30°", "stand, pitch +20°", "stand, pitch -20°"),
    *("stand, roll +15°", "stand, roll -15°", "stand, height 150 mm", "stand, height 70 mm"),
    *("forward 0.25 m/s, twist/pitch/roll +7.5°", "forward 0.25 m/s, twist/pitch/roll -7.5°"),
  ]
  level = (0.0, 0.0, 0.0, task.robot.home_height_m)
  assert {s.posture for s in series[:5]} == {level}
  assert series[5].posture == pytest.approx((radians(30), 0, 0, level[3]))
  assert series[-1].posture == pytest.approx((*[radians(-7.5)] * 3, level[3]))
  for s in series:
    check_posture(task, s.posture, s.command)


@pytest.mark.parametrize(
  ("name", "posture", "command", "says"),
  [
    ("jumper.tripod", (0, 0, 0, 0.1), None, "no effect: jumper.tripod asks for no posture"),
    ("jumper.posture", (0.4, 0, 0, 0.1), None, r"twist_rad is 0.4; .*-0.2618 .. 0.2618; with --c"),
    ("jumper.posture", (0.4, 0, 0, 0.1), (0.1, 0, 0), "of a robot that may walk it must be in"),
    ("jumper.posture", (0.6, 0, 0, 0.1), (0, 0, 0), "of a robot that stands .* -0.5236 .. 0.5236$"),
    ("jumper.posture", (0, 0, 0, 0.0), (0, 0, 0), r"height_m is 0; .* in 0.07 .. 0.15"),
  ],
)
def test_a_posture_that_was_never_trained_is_refused(name, posture, command, says):
  # Guards: a flag without effect, or a measurement of what no policy has learned.
  with pytest.raises(ValueError, match=says):
    check_posture(tasks.build(name), posture, command)
