"""The description of a robot refuses what does not fit together, and says what would."""

import subprocess
import sys
from dataclasses import replace

import pytest

from mjrl import robots
from mjrl.robots.jumper import JUMPER


def test_every_robot_has_its_file_and_its_own_name():
  """Guards a model left out of the package: it would be missed at the first run only."""
  for name, robot in robots.ROBOTS.items():
    assert robots.load(name) is robot and robot.name == name
    assert robot.mjcf.is_file()


def test_unknown_name_lists_the_robots():
  """Guards an error that leaves its reader to guess."""
  with pytest.raises(ValueError, match=r"'jumpr'; did you mean 'jumper'\? valid names: jumper"):
    robots.load("jumpr")
  with pytest.raises(ValueError, match=r"'anymal'; valid names: jumper$"):
    robots.load("anymal")


def test_listing_loads_neither_simulator_nor_learner():
  """Guards a slow --help: a second or more of imports that nothing in a list needs."""
  code = "import sys, mjrl.robots; print({'mujoco', 'torch', 'numpy'} & set(sys.modules))"
  out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
  assert out.stdout.strip() == "set()"


@pytest.mark.parametrize(
  ("change", "text"),
  [
    ({"joints": (*JUMPER.joints, "LF_J0")}, r"joints repeats \['LF_J0'\]"),
    ({"feet": ()}, "feet repeats .* one or more"),
    ({"gait_joints": ("LF_J1", "LF_J0")}, "gait_joints are .* in their order"),
    ({"gait_joints": ("tail",)}, "gait_joints are .*'tail'.* some of the joints"),
    ({"home_rad": {**JUMPER.home_rad, "tail": 0.0}}, r"home_rad has unknown names \['tail'\]"),
    ({"mirror_feet": {"LF": "RF", "RF": "LF"}}, r"mirror_feet .* lacks \['LM', 'LR', 'RM', 'RR'\]"),
    ({"mirror_feet": {**JUMPER.mirror_feet, "LF": "RM"}}, r"mirror_feet\['LF'\] is 'RM'"),
    (
      {"mirror_joints": {**JUMPER.mirror_joints, "LF_J0": ("RF_J0", 1)}},
      r"mirror_joints\['LF_J0'\] is \('RF_J0', 1\); a mirror undoes itself",
    ),
    (
      {"mirror_joints": {**JUMPER.mirror_joints, "LF_J0": ("RF_J0", 0)}},
      r"mirror_joints\['LF_J0'\] has sign 0; it must be -1 or \+1",
    ),
    ({"kp_n_m_rad": 0.0}, "kp_n_m_rad is 0.0; it must be above 0"),
    ({"sensors": ("imu", "joint_positon")}, r"'joint_positon'; did you mean 'joint_position'\?"),
    ({"soft_limit_factor": 1.1}, r"soft_limit_factor is 1.1; it must be in \(0, 1\]"),
  ],
)
def test_disagreeing_fields_are_refused(change, text):
  """Guards a wrong name or mirror that would only show as a policy that learns badly."""
  with pytest.raises(ValueError, match=text):
    replace(JUMPER, **change)
