"""Reward rows.  Each returns (N,); the environment multiplies it by weight and control step.

Formulas and their numbers follow the reference tasks of the jumper robot (NOTICE), unless said.
"""

import torch
from torch import Tensor
from torch.linalg import vecdot

from mjrl.envs.state import State


def track_linear_velocity(s: State, *, std_m_s: float) -> Tensor:
  """exp(-(|v_cmd - v|^2 + v_z^2) / std^2), v in the base frame.  (N,) in (0, 1]."""
  error = s.linear_miss_square + s.lin_vel_b[:, 2].square()
  return torch.exp(error * (-1.0 / std_m_s**2))


def track_angular_velocity(s: State, *, std_rad_s: float) -> Tensor:
  """exp(-(w_cmd - w_z)^2 / std^2).  (N,) in (0, 1]."""
  return torch.exp(s.miss[:, 2].square() * (-1.0 / std_rad_s**2))


def track_planar_velocity(s: State, *, std_m_s: float) -> Tensor:
  """As `track_linear_velocity`, with the vertical speed in the world.  (N,) in (0, 1].

  Ours: of a robot that is asked to walk with its nose down, v_z in the base frame is no error.
  """
  error = s.linear_miss_square + vecdot(s.lin_vel_b, s.up_b).square()
  return torch.exp(error * (-1.0 / std_m_s**2))


def track_twist(s: State, *, std_rad: float) -> Tensor:
  """exp(-(twist_cmd - twist)^2 / std^2), see `State.twist_rad`.  (N,) in (0, 1]."""
  return torch.exp(s.posture_miss[:, 0].square() * (-1.0 / std_rad**2))


def track_tilt(s: State, *, std_rad: float) -> Tensor:
  """exp(-((pitch_cmd - pitch)^2 + (roll_cmd - roll)^2) / std^2).  (N,) in (0, 1]."""
  return torch.exp(s.posture_miss[:, 1:3].square().sum(1) * (-1.0 / std_rad**2))


def track_height(s: State, *, std_m: float) -> Tensor:
  """exp(-(height_cmd - height)^2 / std^2) of the base over flat ground.  (N,) in (0, 1]."""
  return torch.exp(s.posture_miss[:, 3].square() * (-1.0 / std_m**2))


def upright(s: State, *, variance: float) -> Tensor:
  """exp(-sin^2(tilt) / variance).  (N,) in (0, 1]."""
  return torch.exp(s.tilt_sin_square * (-1.0 / variance))


def pose(
  s: State,
  *,
  standing_arm_rad: float,
  standing_leg_rad: float,
  moving_arm_rad: float,
  moving_leg_rad: float,
) -> Tensor:
  """exp(-mean((q - home)^2 / std^2)), wide while moving and narrow while standing.  (N,)."""
  standing = s.arm_offset_square * standing_arm_rad**-2 + s.leg_offset_square * standing_leg_rad**-2
  moving = s.arm_offset_square * moving_arm_rad**-2 + s.leg_offset_square * moving_leg_rad**-2
  return torch.exp(torch.lerp(standing, moving, s.moving) * (-1.0 / s.offset_rad.shape[1]))


def joint_limits(s: State) -> Tensor:
  """Sum of what the joints are beyond their soft limits, rad.  (N,)."""
  inside = s.joint_pos_rad.clamp(s.soft_low_rad, s.soft_high_rad)
  return (s.joint_pos_rad - inside).abs_().sum(1)


def action_rate(s: State) -> Tensor:
  """Sum of squares of the change of the action.  (N,)."""
  return (s.action - s.last_action).square().sum(1)


def foot_clearance(s: State, *, target_m: float) -> Tensor:
  """Sum over feet of |height - target| * horizontal speed, m^2/s.  (N,)."""
  return vecdot((s.foot_height_m - target_m).abs(), s.foot_speed_m_s)


def swing_height(s: State, *, target_m: float) -> Tensor:
  """Sum over feet that land of (peak height / target - 1)^2.  (N,)."""
  return vecdot((s.foot_peak_m / target_m - 1).square(), s.touchdown_float)


def air_time(s: State, *, min_s: float, max_s: float) -> Tensor:
  """Share of the feet that have been in the air for `min_s` to `max_s`, moving.  (N,) in [0, 1]."""
  per_s = s.substeps / s.dt_s
  low, high = round(min_s * per_s), round(max_s * per_s)
  swings = (s.foot_air_substeps >= low) & (s.foot_air_substeps <= high)
  return swings.float().mean(1) * s.moving


def foot_slip(s: State) -> Tensor:
  """Sum over feet on the ground of their squared horizontal speed, m^2/s^2.  (N,)."""
  return vecdot(s.foot_speed_square, s.foot_contact_float)


def soft_landing(s: State) -> Tensor:
  """Sum over feet that land of the force of the landing, N.  (N,)."""
  return s.landing_load_n


def self_collision(s: State, *, threshold_n: float) -> Tensor:
  """Physics substeps of this control step in which the robot presses on itself.  (N,).

  Contact forces are those of the last substep, which stands for all of them.
  """
  return (s.self_force_square > threshold_n**2) * float(s.substeps)


def standing_sway(s: State) -> Tensor:
  """|v|^2 + |w|^2 of a base that should stand.  (N,)."""
  return s.twist_b.square().sum(1) * s.standing


def tilt_rate(s: State, *, free_rad2_s2: float) -> Tensor:
  """Square of the roll and pitch rate beyond what is free, rad^2/s^2.  (N,)."""
  return (s.tilt_rate_square - free_rad2_s2).clamp_(min=0)


def gait(s: State, *, width_feet: float, max_air_s: float, max_contact_s: float) -> Tensor:
  """exp(-(feet out of step with the clock)^2 / width^2) of a robot that moves.  (N,) in [0, 1].

  Nothing while any foot has been in the air or on the ground for too long: a robot that stands is
  in step with half of the clock.
  """
  substeps_per_s = s.substeps / s.dt_s
  air, contact = s.foot_air_substeps.amax(1), s.foot_contact_substeps.amax(1)
  cycling = (air <= round(max_air_s * substeps_per_s)) & (
    contact <= round(max_contact_s * substeps_per_s)
  )
  return torch.exp(s.wrong_feet.square() * (-1.0 / width_feet**2)) * s.moving * cycling


def stance_load(s: State, *, enough_n: float) -> Tensor:
  """Mean over the feet that the clock wants down of min(load / enough, 1), moving.  (N,)."""
  loaded = (s.foot_load_n * (1.0 / enough_n)).clamp_(max=1)
  return vecdot(loaded, s.should_contact) / s.should_contact.sum(1) * s.moving


def standing_load(s: State, *, enough_n: float) -> Tensor:
  """Mean over all feet of min(load / enough, 1) of a robot that should stand.  (N,)."""
  return (s.foot_load_n * (1.0 / enough_n)).clamp_(max=1).mean(1) * s.standing


def stance_gap(s: State, *, max_m: float) -> Tensor:
  """Mean height over ground of the feet that should be down, all when standing, m.  (N,)."""
  down = torch.maximum(s.should_contact, s.standing[:, None])
  return vecdot(s.foot_height_m.clamp(0, max_m), down) / down.sum(1)
