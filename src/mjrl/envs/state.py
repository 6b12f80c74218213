"""What one control step looks like: the quantities that rows of a task read."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.linalg import vecdot

from mjrl.envs.ground import Ground
from mjrl.envs.task import STANDING_COMMAND


class once:
  """A property computed when first read.

  As `functools.cached_property`, which takes a lock at every such read up to Python 3.11: there are
  forty in a control step.
  """

  def __init__(self, compute: Callable[[Any], Tensor]) -> None:
    """Decorate a method."""
    self._compute, self._name, self.__doc__ = compute, compute.__name__, compute.__doc__

  def __get__(self, instance: Any, owner: type) -> Any:
    """Compute, and stand in the instance's own attributes from then on."""
    if instance is None:
      return self
    value = instance.__dict__[self._name] = self._compute(instance)
    return value


class State:
  """One control step of N envs with J joints, G of them driven by the policy, and F feet.

  Measured fields are given; the others are computed from them when first read, once per step.
  Frames: `_w` world, `_b` base.  All are float32 unless said otherwise.

  Given, from the engine:
    base_pos_w        (N, 3) m
    base_quat_w       (N, 4) w x y z
    forward_w         (N, 3) the base's x axis
    up_b              (N, 3) the world's z axis
    ang_vel_b         (N, 3) rad/s
    lin_vel_b         (N, 3) m/s, of the IMU
    twist_b           (N, 6) ang_vel_b and lin_vel_b, side by side
    joint_pos_rad     (N, J)
    joint_vel_rad_s   (N, J)
    joint_torque_n_m  (N, J)
    foot_pos_w        (N, F, 3) m, centre of the foot
    foot_vel_w        (N, F, 3) m/s
    foot_contacts     (N, F) number of contacts of the foot with the ground
    foot_force_w      (N, F, 3) N, of the foot on the ground: downwards is negative
    self_force        (N, 4) number of contacts of the robot with itself, and the largest force, N

  Given, kept by the environment:
    action, last_action    (N, G) as the policy gave them
    command                (N, 3) m/s forward, m/s left, rad/s counter-clockwise
    posture                (N, 4) asked of the body, where a task asks for one: rad of twist, of
                           pitch and of roll, m of height; signs as those of `body_posture`
    clock_steps            (N,) int64 control steps on the gait clock
    foot_air_substeps      (N, F) int32 substeps since take-off, in whole control steps, 0 down
    foot_contact_substeps  (N, F) int32 substeps since landing, in whole control steps, 0 up
    foot_peak_m            (N, F) greatest height of the foot since its last take-off
    touchdown              (N, F) bool, landed in this control step
    encoder_bias_rad       (N, J)

  Given, constant:
    home_rad              (J,)
    home_feet_m           (F, 2) x and y in the base frame at HOME, from the middle of all feet
    gait_joints           (G,) int64 columns of the driven joints
    is_arm, is_leg        (G,) 1 where a driven joint is an arm's, a leg's
    soft_low_rad, soft_high_rad  (J,)
    commanded             (3,) int64 columns of twist_b that a command is about
    should_contact_table  (S, F) and phase_table (S, 2), of a gait of S control steps
    foot_radius_m, substeps, dt_s (of a control step)
    ground  what is below on rough ground; None where it is flat
  """

  def __init__(self, given: Mapping[str, object]) -> None:
    """Take the given fields as attributes, without copying."""
    self.__dict__.update(given)

  def replace(self, **given: object) -> "State":
    """The same control step with other given fields, and nothing computed yet."""
    mine = {name: v for name, v in self.__dict__.items() if name not in _COMPUTED}
    return State(mine | given)

  # The given fields, for readers and type checkers; `__init__` sets them.
  base_pos_w: Tensor
  base_quat_w: Tensor
  forward_w: Tensor
  twist_b: Tensor
  lin_vel_b: Tensor
  ang_vel_b: Tensor
  up_b: Tensor
  joint_pos_rad: Tensor
  joint_vel_rad_s: Tensor
  joint_torque_n_m: Tensor
  foot_pos_w: Tensor
  foot_vel_w: Tensor
  foot_contacts: Tensor
  foot_force_w: Tensor
  self_force: Tensor
  action: Tensor
  last_action: Tensor
  command: Tensor
  posture: Tensor
  clock_steps: Tensor
  foot_air_substeps: Tensor
  foot_contact_substeps: Tensor
  foot_peak_m: Tensor
  touchdown: Tensor
  encoder_bias_rad: Tensor
  home_rad: Tensor
  home_feet_m: Tensor
  gait_joints: Tensor
  is_arm: Tensor
  is_leg: Tensor
  soft_low_rad: Tensor
  soft_high_rad: Tensor
  foot_radius_m: float
  substeps: int
  dt_s: float
  commanded: Tensor
  should_contact_table: Tensor
  phase_table: Tensor
  ground: Ground | None

  @once
  def height_m(self) -> Tensor:
    """Height of the base over the ground below it.  (N,) m."""
    return self._over_ground(self.base_pos_w)

  @once
  def yaw_rad(self) -> Tensor:
    """Heading of the base.  (N,) rad in (-pi, pi]."""
    return torch.atan2(self.forward_w[:, 1], self.forward_w[:, 0])

  @once
  def twist_rad(self) -> Tensor:
    """Yaw of the base over its feet, counter-clockwise, 0 at HOME.  (N,) rad in (-pi, pi].

    The feet's heading is that of the turn about the vertical which takes their pattern at HOME
    closest to where they are, by least squares: six feet share the error of a swing.
    """
    feet, home = self.foot_pos_w[:, :, :2], self.home_feet_m  # about their middle, one is enough
    along = vecdot(feet, home).sum(1)
    across = (feet[:, :, 1] * home[:, 0] - feet[:, :, 0] * home[:, 1]).sum(1)
    x, y = self.forward_w[:, 0], self.forward_w[:, 1]
    return torch.atan2(along * y - across * x, along * x + across * y)

  @once
  def pitch_rad(self) -> Tensor:
    """Angle of the base's x axis below the horizontal: nose down is positive.  (N,) rad."""
    return torch.atan2(-self.up_b[:, 0], torch.linalg.vector_norm(self.up_b[:, 1:], dim=1))

  @once
  def roll_rad(self) -> Tensor:
    """Turn about the base's x axis: right side down is positive.  (N,) rad."""
    return torch.atan2(self.up_b[:, 1], self.up_b[:, 2])

  @once
  def body_posture(self) -> Tensor:
    """What a posture command asks for: rad of twist, pitch and roll, m of height.  (N, 4)."""
    return torch.stack((self.twist_rad, self.pitch_rad, self.roll_rad, self.height_m), 1)

  @once
  def posture_miss(self) -> Tensor:
    """Posture that is asked for less that of the body.  (N, 4)."""
    return self.posture - self.body_posture

  @once
  def gravity_b(self) -> Tensor:
    """Direction of gravity seen from the base.  (N, 3), unit."""
    return -self.up_b

  @once
  def tilt_sin_square(self) -> Tensor:
    """Square of the sine of the angle between the base's and the world's z.  (N,)."""
    return self.up_b[:, :2].square().sum(1)

  @once
  def tilt_rate_square(self) -> Tensor:
    """Square of the base's rate of roll and pitch.  (N,) rad^2/s^2."""
    return self.twist_b[:, :2].square().sum(1)

  @once
  def self_force_square(self) -> Tensor:
    """Square of the largest force of the robot on itself.  (N,) N^2."""
    return self.self_force[:, 1:].square().sum(1)

  @once
  def velocity(self) -> Tensor:
    """What a command asks for: m/s forward, m/s left, rad/s counter-clockwise.  (N, 3)."""
    return self.twist_b.index_select(1, self.commanded)

  @once
  def miss(self) -> Tensor:
    """Command less velocity.  (N, 3)."""
    return self.command - self.velocity

  @once
  def linear_miss_square(self) -> Tensor:
    """Square of the distance of the horizontal velocity from the command.  (N,) m^2/s^2."""
    return self.miss[:, :2].square().sum(1)

  @once
  def offset_rad(self) -> Tensor:
    """Driven joints relative to HOME.  (N, G) rad."""
    return (self.joint_pos_rad - self.home_rad).index_select(1, self.gait_joints)

  @once
  def arm_offset_square(self) -> Tensor:
    """Sum of the squared offsets of the driven joints that belong to arms.  (N,) rad^2."""
    return self.offset_rad.square() @ self.is_arm

  @once
  def leg_offset_square(self) -> Tensor:
    """Sum of the squared offsets of the driven joints that belong to legs.  (N,) rad^2."""
    return self.offset_rad.square() @ self.is_leg

  @once
  def encoder_offset_rad(self) -> Tensor:
    """Driven joints relative to HOME as their encoders read them.  (N, G) rad."""
    return self.offset_rad + self.encoder_bias_rad.index_select(1, self.gait_joints)

  @once
  def gait_joint_vel_rad_s(self) -> Tensor:
    """Velocity of the driven joints.  (N, G) rad/s."""
    return self.joint_vel_rad_s.index_select(1, self.gait_joints)

  @once
  def gait_joint_torque_n_m(self) -> Tensor:
    """Torque of the driven joints' servos.  (N, G) N·m."""
    return self.joint_torque_n_m.index_select(1, self.gait_joints)

  @once
  def foot_height_m(self) -> Tensor:
    """Height of the foot's lowest point over the ground below the foot's centre.  (N, F) m."""
    return self._over_ground(self.foot_pos_w) - self.foot_radius_m

  @once
  def foot_speed_square(self) -> Tensor:
    """Square of the foot's horizontal speed.  (N, F) m^2/s^2."""
    return self.foot_vel_w[:, :, :2].square().sum(2)

  @once
  def foot_speed_m_s(self) -> Tensor:
    """Horizontal speed of the foot.  (N, F) m/s."""
    return self.foot_speed_square.sqrt()

  @once
  def foot_contact(self) -> Tensor:
    """Whether the foot touches the ground.  (N, F) bool."""
    return self.foot_contacts > 0

  @once
  def foot_contact_float(self) -> Tensor:
    """`foot_contact` as 0 or 1.  (N, F)."""
    return self.foot_contact.float()

  @once
  def feet_down(self) -> Tensor:
    """Number of feet on the ground.  (N,)."""
    return self.foot_contact_float.sum(1)

  @once
  def touchdown_float(self) -> Tensor:
    """`touchdown` as 0 or 1.  (N, F)."""
    return self.touchdown.float()

  @once
  def landings(self) -> Tensor:
    """Number of feet that landed in this control step.  (N,)."""
    return self.touchdown_float.sum(1)

  @once
  def foot_load_n(self) -> Tensor:
    """Size of the force between foot and ground.  (N, F) N."""
    return torch.linalg.vector_norm(self.foot_force_w, dim=2)

  @once
  def landing_load_n(self) -> Tensor:
    """Sum of the loads of the feet that landed in this control step.  (N,) N."""
    return vecdot(self.foot_load_n, self.touchdown_float)

  @once
  def moving(self) -> Tensor:
    """1 where the command asks for motion, 0 where it asks to stand.  (N,)."""
    return (torch.linalg.vector_norm(self.command, dim=1) > STANDING_COMMAND).float()

  @once
  def standing(self) -> Tensor:
    """1 where the command asks to stand, 0 where it asks for motion.  (N,)."""
    return 1 - self.moving

  @once
  def should_contact(self) -> Tensor:
    """Which feet the gait clock wants on the ground.  (N, F), 0 or 1."""
    return self.should_contact_table.index_select(0, self.clock_steps)

  @once
  def phase(self) -> Tensor:
    """Sine and cosine of the gait phase, both 0 where the command asks to stand.  (N, 2)."""
    return self.phase_table.index_select(0, self.clock_steps) * self.moving[:, None]

  @once
  def wrong_feet(self) -> Tensor:
    """Number of feet whose contact differs from the clock's.  (N,)."""
    return (self.foot_contact_float - self.should_contact).abs().sum(1)

  def _over_ground(self, points_w: Tensor) -> Tensor:
    height = points_w[..., 2]
    return height if self.ground is None else height - self.ground.height_m(points_w[..., :2])


_COMPUTED = frozenset(n for n, v in vars(State).items() if isinstance(v, once))
