"""Metric rows: SI quantities without weights.

Each returns (value, share), both (N,): the log shows sum(value * share) / sum(share) over the envs
and steps of an iteration, so that a quantity of some envs or steps alone is a mean over those.
"""

import torch
from torch import Tensor
from torch.linalg import vecdot

from mjrl.envs.state import State

Metric = tuple[Tensor, Tensor]


def linear_error(s: State) -> Metric:
  """Distance of the horizontal velocity from the command, of moving robots, m/s."""
  return s.linear_miss_square.sqrt(), s.moving


def angular_error(s: State) -> Metric:
  """Distance of the yaw rate from the command, of moving robots, rad/s."""
  return s.miss[:, 2].abs(), s.moving


def wrong_feet(s: State) -> Metric:
  """Number of feet out of step with the gait clock, of moving robots."""
  return s.wrong_feet, s.moving


def feet_down(s: State) -> Metric:
  """Number of feet on the ground, of moving robots."""
  return s.feet_down, s.moving


def slip_speed(s: State) -> Metric:
  """Horizontal speed of the feet that are on the ground, m/s."""
  return vecdot(s.foot_speed_m_s, s.foot_contact_float) / s.feet_down.clamp(min=1), s.feet_down


def peak_height(s: State) -> Metric:
  """Greatest height of a swing, of the feet that land, m."""
  return vecdot(s.foot_peak_m, s.touchdown_float) / s.landings.clamp(min=1), s.landings


def landing_force(s: State) -> Metric:
  """Force on the feet that land, N."""
  return s.landing_load_n / s.landings.clamp(min=1), s.landings


def standing_drift(s: State) -> Metric:
  """Horizontal speed of robots that are asked to stand, m/s."""
  return torch.linalg.vector_norm(s.lin_vel_b[:, :2], dim=1), s.standing


def twist_error(s: State) -> Metric:
  """Distance of the twist from the command, rad."""
  return s.posture_miss[:, 0].abs(), torch.ones_like(s.moving)


def tilt_error(s: State) -> Metric:
  """Distance of pitch and roll together from the command, rad."""
  return torch.linalg.vector_norm(s.posture_miss[:, 1:3], dim=1), torch.ones_like(s.moving)


def height_error(s: State) -> Metric:
  """Distance of the base's height from the command, m."""
  return s.posture_miss[:, 3].abs(), torch.ones_like(s.moving)
