"""Event rows: fn(World, mask, **params) changes the masked envs.

Every randomised value is drawn afresh from the model's default, per env, so nothing accumulates.
"""

import functools

import torch
from torch import Tensor

from mjrl.envs.world import World


def start_at_home(
  world: World, mask: Tensor, *, spread_m: float, lift_m: tuple[float, float], yaw_rad: float
) -> None:
  """HOME at rest, within a square of +-spread, lifted a little, at any heading within +-yaw.

  On rough ground the square lies in the middle of the env's tile, and the height is over the
  highest ground within reach.
  """
  rows = mask[:, None]
  n = world.num_envs
  qpos = world.start_qpos
  place = world.uniform(-spread_m, spread_m, 2)
  height = world.robot.home_height_m + world.uniform(*lift_m, 1)
  half = world.uniform(-yaw_rad / 2, yaw_rad / 2)
  if world.tiles:
    place, clear = world.tiles.place(place)
    height = height + clear[:, None]
  zero = torch.zeros(n, device=half.device)
  quat = torch.stack((half.cos(), zero, zero, half.sin()), 1)
  home = _constant(tuple(world.robot.home_rad[j] for j in world.robot.joints), half.device)
  start = torch.cat((place, height, quat, home.expand(n, -1)), 1)
  own = qpos[:, : start.shape[1]]  # a scene may have movable objects behind the robot
  own.copy_(torch.where(rows, start, own))
  world.start_qvel.masked_fill_(rows, 0.0)


def encoder_bias(world: World, mask: Tensor, *, bias_rad: float) -> None:
  """What each encoder reads too much, within +-bias, all joints on their own."""
  bias = world.uniform(-bias_rad, bias_rad, len(world.robot.joints))
  world.encoder_bias_rad.copy_(torch.where(mask[:, None], bias, world.encoder_bias_rad))


def foot_friction(world: World, mask: Tensor, *, sliding: tuple[float, float]) -> None:
  """Sliding friction of the feet, one value for all feet of a robot."""
  model = world.backend.model
  friction = world.backend.get_model("geom_friction")
  value = world.uniform(*sliding)
  for foot in world.robot.feet:
    friction[:, model.geom(f"{foot}_foot").id, 0] = value
  world.backend.set_model(mask, "geom_friction", friction)


def base_com(world: World, mask: Tensor, *, x_m: float, y_m: float, z_m: float) -> None:
  """Moves the base's centre of mass by up to +-x, +-y, +-z."""
  body = world.backend.model.body(world.robot.base_body).id
  com = world.backend.get_model("body_ipos")
  reach = _constant((x_m, y_m, z_m), com.device)
  com[:, body] = world.backend.default("body_ipos")[body] + world.uniform(-1, 1, 3) * reach
  world.backend.set_model(mask, "body_ipos", com)


def mass_scale(world: World, mask: Tensor, *, factor: tuple[float, float]) -> None:
  """Multiplies every mass of the robot, and its inertia with it, by one factor per env."""
  scale = world.uniform(*factor)
  model = world.backend.model
  others = model.body_rootid != model.body(world.robot.base_body).id  # a scene's objects
  for field in ("body_mass", "body_inertia"):
    default = world.backend.default(field)
    value = default * scale.view(-1, *[1] * default.dim())
    value[:, others] = default[others]
    world.backend.set_model(mask, field, value)


def gain_scale(
  world: World, mask: Tensor, *, stiffness: tuple[float, float], damping: tuple[float, float]
) -> None:
  """Multiplies the servos' position and velocity gains, one factor each per joint and env."""
  gain, bias = world.backend.default("actuator_gainprm"), world.backend.default("actuator_biasprm")
  joints = len(world.robot.joints)
  stiff, damp = world.uniform(*stiffness, joints), world.uniform(*damping, joints)
  gain, bias = gain.repeat(world.num_envs, 1, 1), bias.repeat(world.num_envs, 1, 1)
  gain[:, :, 0] *= stiff
  bias[:, :, 1] *= stiff
  bias[:, :, 2] *= damp
  world.backend.set_model(mask, "actuator_gainprm", gain)
  world.backend.set_model(mask, "actuator_biasprm", bias)


def strength_scale(world: World, mask: Tensor, *, factor: tuple[float, float]) -> None:
  """Multiplies the largest torque of the servos, one factor per joint and env."""
  scale = world.uniform(*factor, len(world.robot.joints))
  limit = world.backend.default("actuator_forcerange") * scale[:, :, None]
  world.backend.set_model(mask, "actuator_forcerange", limit)


def actuator_delay(world: World, mask: Tensor, *, delay_s: tuple[float, float]) -> None:
  """Time between a target and the servo that acts on it, one value for all servos of a robot."""
  delay = world.uniform(*delay_s, 1).expand(-1, len(world.robot.joints)).contiguous()
  world.backend.set_model(mask, "actuator_delay", delay)


def push(
  world: World,
  mask: Tensor,
  *,
  horizontal_m_s: float,
  vertical_m_s: float,
  tilt_rad_s: float,
  yaw_rad_s: float,
) -> None:
  """Adds a random velocity, each component within +-, to the base."""
  reach = (horizontal_m_s, horizontal_m_s, vertical_m_s, tilt_rad_s, tilt_rad_s, yaw_rad_s)
  kick = world.uniform(-1, 1, 6) * _constant(reach, mask.device)
  qvel = world.backend.read("qvel").clone()
  qvel[:, :6] += kick
  world.backend.set_state(mask, qvel=qvel)


@functools.cache
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
  """Numbers of a row on the device, sent there once: each sending would hold up a GPU."""
  return torch.tensor(values, device=device)
