"""Observation rows.  Each returns (N, width), without noise."""

from torch import Tensor

from mjrl.envs.state import State


def ang_vel_b(s: State) -> Tensor:
  """Angular velocity in the base frame, rad/s.  (N, 3)."""
  return s.ang_vel_b


def lin_vel_b(s: State) -> Tensor:
  """Linear velocity in the base frame, m/s; no robot measures it.  (N, 3)."""
  return s.lin_vel_b


def gravity_b(s: State) -> Tensor:
  """Direction of gravity in the base frame: (0, 0, -1) when level.  (N, 3)."""
  return s.gravity_b


def joint_offset(s: State) -> Tensor:
  """Driven joints relative to HOME, rad.  (N, G)."""
  return s.offset_rad


def encoder_offset(s: State) -> Tensor:
  """Driven joints relative to HOME as their encoders read them, bias included, rad.  (N, G)."""
  return s.encoder_offset_rad


def joint_vel(s: State) -> Tensor:
  """Velocity of the driven joints, rad/s.  (N, G)."""
  return s.gait_joint_vel_rad_s


def joint_torque(s: State) -> Tensor:
  """Torque of the driven joints' servos, N·m.  (N, G)."""
  return s.gait_joint_torque_n_m


def action(s: State) -> Tensor:
  """The action that led here, as the policy gave it.  (N, G)."""
  return s.action


def command(s: State) -> Tensor:
  """What is asked: m/s forward, m/s left, rad/s counter-clockwise.  (N, 3)."""
  return s.command


def posture(s: State) -> Tensor:
  """What is asked of the body: rad of twist, pitch and roll, m of height.  (N, 4)."""
  return s.posture


def gait_phase(s: State) -> Tensor:
  """Sine and cosine of the gait phase, both 0 when asked to stand.  (N, 2)."""
  return s.phase


def foot_height(s: State) -> Tensor:
  """Height of each foot's lowest point over the ground, m.  (N, F)."""
  return s.foot_height_m


def foot_air_time(s: State) -> Tensor:
  """Time since each foot left the ground, s; 0 while it is down.  (N, F)."""
  return s.foot_air_substeps * (s.dt_s / s.substeps)


def foot_contact(s: State) -> Tensor:
  """Whether each foot is on the ground, 0 or 1.  (N, F)."""
  return s.foot_contact_float


def foot_force_log(s: State) -> Tensor:
  """Force of each foot on the ground, sign(f) log(1 + |f|) of each world component.  (N, 3 F)."""
  force = s.foot_force_w.flatten(1)
  return force.sign() * force.abs().log1p()
