"""What each observation row is made of: its unit, its parts, and what a robot needs to know it.

A row that is not in the table cannot be exported; a test wants an entry for every row of the
library.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mjrl.envs.terms import observations as o
from mjrl.robots.robot import Robot

_AXES = ("x", "y", "z")


@dataclass(frozen=True, kw_only=True)
class Quantity:
  """One observation row, for whoever has to provide it on a robot.

  sensor   of `mjrl.robots.robot.SENSORS`; None for what the controller itself knows
  unit     "" for a number without
  parts    names of its numbers; "joints", "feet" or "feet xyz" stand for the robot's
  meaning  in a sentence
  """

  sensor: str | None
  unit: str
  parts: tuple[str, ...] | str
  meaning: str

  def labels(self, robot: Robot) -> tuple[str, ...]:
    """A name for each number of a frame."""
    if self.parts == "joints":
      return robot.gait_joints
    if self.parts == "feet":
      return robot.feet
    if self.parts == "feet xyz":
      return tuple(f"{foot}_{axis}" for foot in robot.feet for axis in _AXES)
    return tuple(self.parts)


QUANTITIES: Mapping[Callable[..., Any], Quantity] = {
  o.ang_vel_b: Quantity(
    sensor="imu",
    unit="rad/s",
    parts=_AXES,
    meaning="Angular velocity of the base about its own axes, counter-clockwise seen from the tip "
    "of the axis: rolling to the right, pitching the nose down and turning left are positive.",
  ),
  o.lin_vel_b: Quantity(
    sensor="base_velocity",
    unit="m/s",
    parts=_AXES,
    meaning="Linear velocity of the IMU along the base's own axes.",
  ),
  o.gravity_b: Quantity(
    sensor="imu",
    unit="",
    parts=_AXES,
    meaning="Unit vector of gravity along the base's own axes: (0, 0, -1) when level, x positive "
    "with the nose down, y positive with the left side down.",
  ),
  o.joint_offset: Quantity(
    sensor="joint_position",
    unit="rad",
    parts="joints",
    meaning="Angle of the joint less its angle at HOME.",
  ),
  o.encoder_offset: Quantity(
    sensor="joint_position",
    unit="rad",
    parts="joints",
    meaning="Angle of the joint as its encoder reads it, less its angle at HOME. An encoder's bias "
    "is left in: the policy was trained with one.",
  ),
  o.joint_vel: Quantity(
    sensor="joint_velocity",
    unit="rad/s",
    parts="joints",
    meaning="Velocity of the joint, positive as its angle.",
  ),
  o.joint_torque: Quantity(
    sensor="joint_torque",
    unit="N·m",
    parts="joints",
    meaning="Torque of the servo on the joint, positive as the joint's angle, in the last physics "
    "step before the frame.",
  ),
  o.action: Quantity(
    sensor=None,
    unit="",
    parts="joints",
    meaning="The network's last output, as it was; 0 in the first control step.",
  ),
  o.command: Quantity(
    sensor=None,
    unit="m/s, m/s, rad/s",
    parts=("forward", "left", "yaw"),
    meaning="What the robot is asked for: velocity forward and to the left, and yaw rate, "
    "counter-clockwise seen from above.",
  ),
  o.gait_phase: Quantity(
    sensor=None,
    unit="",
    parts=("sin", "cos"),
    meaning="Sine and cosine of the gait clock's phase; both 0 while the command asks to stand.",
  ),
  o.foot_height: Quantity(
    sensor="foot_height",
    unit="m",
    parts="feet",
    meaning="Height of the foot's lowest point over the ground below it.",
  ),
  o.foot_air_time: Quantity(
    sensor="foot_contact",
    unit="s",
    parts="feet",
    meaning="Time since the foot left the ground; 0 while it is down.",
  ),
  o.foot_contact: Quantity(
    sensor="foot_contact",
    unit="",
    parts="feet",
    meaning="1 while the foot is on the ground, else 0.",
  ),
  o.foot_force_log: Quantity(
    sensor="foot_force",
    unit="log(1 + N)",
    parts="feet xyz",
    meaning="sign(f) log(1 + |f|) of each world component of the foot's force on the ground.",
  ),
}
