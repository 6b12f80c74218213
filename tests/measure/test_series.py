from dataclasses import replace

import pytest

from mjrl.envs.task import VelocityCommand
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
