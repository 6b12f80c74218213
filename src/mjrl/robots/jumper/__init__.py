"""Jumper: two arms that also walk, four legs, 22 servos, 2.54 kg."""

from pathlib import Path

from mjrl.robots.robot import Robot

# One kind of servo turns every joint, so one set of gains holds for all. Not modelled:
# - Above 30.7352 rad/s the torque falls with speed w, as 1.7464 exp(-(w - 30.7352) / 25.185) N·m,
#   and is gone at 63.984 rad/s. MuJoCo's `dcmotor` falls in a straight line, and only when driving:
#   the best line is 10.8 % off, and 18 % off if it starts at the corner. It would matter little:
#   even random targets, 0.5 rad about HOME at 50 Hz, turn no joint faster than 28 rad/s.
# - A servo overheats after 0.3 s at its limit, and then gives 1.2 N·m at most.

_HOME_RAD = {
  "LF_J0": -0.5507, "LF_J1": -1.0658, "LF_J2": -0.4408, "LF_J3": -1.3740, "LF_J4": 0.0,
  "RF_J0": 0.5524, "RF_J1": -1.0660, "RF_J2": 0.4414, "RF_J3": 1.4173, "RF_J4": 0.0,
  "LM_J0": 0.0012, "LM_J1": 0.5356, "LM_J2": -1.8271,
  "RM_J0": -0.0012, "RM_J1": -0.5376, "RM_J2": 1.8313,
  "LR_J0": 0.6313, "LR_J1": 0.5534, "LR_J2": -1.8648,
  "RR_J0": -0.6326, "RR_J1": -0.5548, "RR_J2": 1.8678,
}  # fmt: skip

_JOINTS = tuple(_HOME_RAD)
_GRIPPERS = ("LF_J4", "RF_J4")
_ARM_ROLLS = ("LF_J1", "RF_J1")  # the only axes along y
_OTHER_SIDE = {"L": "R", "R": "L"}


def _mirrored(name: str) -> str:
  return _OTHER_SIDE[name[0]] + name[1:]


_FEET = ("LF", "RF", "LM", "RM", "LR", "RR")

JUMPER = Robot(
  name="jumper",
  mjcf=Path(__file__).parent / "jumper.xml",
  base_body="base_link",
  joints=_JOINTS,
  gait_joints=tuple(joint for joint in _JOINTS if joint not in _GRIPPERS),
  arm_joints=tuple(joint for joint in _JOINTS if joint[:2] in ("LF", "RF")),
  feet=_FEET,
  home_rad=_HOME_RAD,
  home_height_m=0.10647,
  kp_n_m_rad=10.0,
  kd_n_m_s_rad=0.5,
  effort_limit_n_m=1.7464,
  mirror_joints={joint: (_mirrored(joint), 1 if joint in _ARM_ROLLS else -1) for joint in _JOINTS},
  mirror_feet={foot: _mirrored(foot) for foot in _FEET},
  soft_limit_factor=0.95,  # ours: the maker states none
  sensors=("imu", "joint_position", "joint_velocity", "joint_torque"),
)
