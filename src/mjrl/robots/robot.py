"""What a machine is, apart from any task: the names and figures that tasks build on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from mjrl.names import nearest

SENSORS: Mapping[str, str] = {
  "imu": "angular velocity of the base, and its orientation against gravity",
  "joint_position": "angle of every joint",
  "joint_velocity": "velocity of every joint",
  "joint_torque": "torque of every joint's servo",
  "foot_contact": "whether each foot is on the ground",
  "foot_force": "force of each foot on the ground, along three axes",
  "base_velocity": "linear velocity of the base",
  "foot_height": "height of each foot over the ground",
}
"""What a machine may be able to sense."""


@dataclass(frozen=True, kw_only=True)
class Robot:
  """One machine: its MJCF, and the names and figures a task needs.

  Attributes:
    name: The name it is loaded by.
    mjcf: Path of its MJCF: no floor in it, and keyframe 0 is HOME.
    base_body: Body that carries the free joint.
    joints: The actuated joints, in model order, which is also action and wire order.  (J,)
    gait_joints: The joints a walking policy drives, a subset of `joints` in the same order.
    arm_joints: The joints of limbs that are arms as well as legs, a subset of `joints`.
    feet: Names of the feet.  (F,)  Foot `f` owns the site `f`, the geom `f_foot`, and the sensors
      `f_pos`, `f_vel` (world frame) and `f_contact`.
    home_rad: Angle of every joint at HOME, rad.
    home_height_m: Height of the base origin above a flat floor at HOME, m.
    kp_n_m_rad: Position gain of every actuator, N·m/rad.
    kd_n_m_s_rad: Damping gain of every actuator, N·m·s/rad.
    effort_limit_n_m: Largest torque of every actuator, N·m.
    mirror_joints: Joint to (partner, sign) under the left-right mirror, y -> -y: the mirrored pose
      has q'[partner] = sign * q[joint]. The sign is -1 for an axis along x or z and +1 along y,
      because a mirror turns a rotation about its own normal into itself and reverses the others.
    mirror_feet: Foot to the foot that takes its place under the same mirror.
    soft_limit_factor: Part of each joint's range, about its middle, that costs nothing, in (0, 1].
    sensors: What the machine itself can sense, of `SENSORS`: a policy that reads anything else
      works in simulation only, and is not exported unless that is asked for.

  Raises:
    ValueError: If two of the fields disagree.
  """

  name: str
  mjcf: Path
  base_body: str
  joints: tuple[str, ...]
  gait_joints: tuple[str, ...]
  arm_joints: tuple[str, ...]
  feet: tuple[str, ...]
  home_rad: Mapping[str, float]
  home_height_m: float
  kp_n_m_rad: float
  kd_n_m_s_rad: float
  effort_limit_n_m: float
  mirror_joints: Mapping[str, tuple[str, int]]
  mirror_feet: Mapping[str, str]
  soft_limit_factor: float
  sensors: tuple[str, ...]

  def __post_init__(self) -> None:
    self._check_unique("joints", self.joints)
    self._check_unique("feet", self.feet)
    self._check_gait_joints()
    self._check_covers("home_rad", self.home_rad, self.joints)
    self._check_covers("mirror_joints", self.mirror_joints, self.joints)
    self._check_covers("mirror_feet", self.mirror_feet, self.feet)
    self._check_mirror_joints()
    self._check_mirror_feet()
    for field in ("home_height_m", "kp_n_m_rad", "kd_n_m_s_rad", "effort_limit_n_m"):
      if not getattr(self, field) > 0.0:
        raise ValueError(f"{self.name}: {field} is {getattr(self, field)}; it must be above 0")
    if not 0.0 < self.soft_limit_factor <= 1.0:
      raise ValueError(
        f"{self.name}: soft_limit_factor is {self.soft_limit_factor}; it must be in (0, 1]"
      )
    for sensor in self.sensors:
      if sensor not in SENSORS:
        raise ValueError(f"{self.name}: there is no sensor {sensor!r}; {nearest(sensor, SENSORS)}")

  def _check_unique(self, field: str, names: tuple[str, ...]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or not names:
      raise ValueError(
        f"{self.name}: {field} repeats {repeated}; it must name each of one or more once: {names}"
      )

  def _check_gait_joints(self) -> None:
    in_order = tuple(joint for joint in self.joints if joint in self.gait_joints)
    if self.gait_joints != in_order:
      raise ValueError(
        f"{self.name}: gait_joints are {self.gait_joints}; "
        f"they must be some of the joints, in their order: {self.joints}"
      )

  def _check_covers(self, field: str, keys: Collection[str], names: tuple[str, ...]) -> None:
    unknown, missing = sorted(set(keys) - set(names)), sorted(set(names) - set(keys))
    if unknown or missing:
      raise ValueError(
        f"{self.name}: {field} has unknown names {unknown} and lacks {missing}; "
        f"it must have exactly {names}"
      )

  def _check_mirror_joints(self) -> None:
    for joint, (partner, sign) in self.mirror_joints.items():
      if sign not in (-1, 1):
        raise ValueError(
          f"{self.name}: mirror_joints[{joint!r}] has sign {sign}; it must be -1 or +1"
        )
      if self.mirror_joints.get(partner) != (joint, sign):
        raise ValueError(
          f"{self.name}: mirror_joints[{joint!r}] is {(partner, sign)}; a mirror undoes itself, so "
          f"the partner must be one of {self.joints} and map back to {(joint, sign)}"
        )

  def _check_mirror_feet(self) -> None:
    for foot, partner in self.mirror_feet.items():
      if self.mirror_feet.get(partner) != foot:
        raise ValueError(
          f"{self.name}: mirror_feet[{foot!r}] is {partner!r}; a mirror undoes itself, so "
          f"the partner must be one of {self.feet} and map back to {foot!r}"
        )
