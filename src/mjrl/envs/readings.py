"""Where the fields of a `State` lie in the engine's arrays."""

from collections.abc import Mapping
from typing import Any

import mujoco
import torch
from torch import Tensor

from mjrl.envs.task import Task
from mjrl.robots.robot import Robot
from mjrl.sim.backend import Backend


class Readings:
  """Views of the engine's arrays by the names that `State` gives them.

  The engine refreshes its arrays in place, so the views are made once.
  """

  def __init__(self, robot: Robot, backend: Backend) -> None:
    """Look up every address once.

    Raises:
      ValueError: sensors that are read together do not lie one behind the other.
    """
    model = backend.model
    names = ("qpos", "qvel", "sensordata", "actuator_force")
    self._sources = {name: backend.read(name) for name in names}

    def address(name: str) -> int:
      return int(model.sensor(name).adr[0])

    def of_feet(kind: str, width: int) -> tuple[str, int, int]:
      """Where the sensors of a kind of all feet lie, each of width numbers."""
      first, feet = address(f"{robot.feet[0]}_{kind}"), len(robot.feet)
      if [address(f"{foot}_{kind}") for foot in robot.feet] != [
        first + k * width for k in range(feet)
      ]:
        raise ValueError(f"{robot.mjcf}: sensors *_{kind} must stand in the order of the feet")
      return "sensordata", first, feet * width

    imu = address("imu_ang_vel")
    if address("imu_lin_vel") != imu + 3:
      raise ValueError(f"{robot.mjcf}: sensor imu_lin_vel must stand right behind imu_ang_vel")
    # Name of a part to the array that it lies in, its first column, and how many there are.
    self._parts = {
      "base_pos_w": ("qpos", 0, 3),
      "base_quat_w": ("qpos", 3, 4),
      "joint_pos_rad": ("qpos", 7, len(robot.joints)),
      "joint_vel_rad_s": ("qvel", 6, len(robot.joints)),
      "joint_torque_n_m": ("actuator_force", 0, model.nu),
      "twist_b": ("sensordata", imu, 6),
      "ang_vel_b": ("sensordata", imu, 3),
      "lin_vel_b": ("sensordata", imu + 3, 3),
      "forward_w": ("sensordata", address("imu_forward"), 3),
      "up_b": ("sensordata", address("imu_up"), 3),
      "foot_pos_w": of_feet("pos", 3),
      "foot_vel_w": of_feet("vel", 3),
      "foot_contact": of_feet("contact", 4),
      "self_force": ("sensordata", address("self_collision"), 4),
    }
    self._feet = len(robot.feet)
    self.fields = self._views(self._sources)

  def copies(self) -> dict[str, Tensor]:
    """The fields as they are now, out of the engine's reach."""
    return self._views({name: source.clone() for name, source in self._sources.items()})

  def _views(self, sources: Mapping[str, Tensor]) -> dict[str, Tensor]:
    views = {
      name: sources[source][:, first : first + width]
      for name, (source, first, width) in self._parts.items()
    }
    for name in ("foot_pos_w", "foot_vel_w", "foot_contact"):
      views[name] = views[name].unflatten(1, (self._feet, -1))
    contact = views.pop("foot_contact")  # of each foot: whether, and the force
    return views | {"foot_contacts": contact[:, :, 0], "foot_force_w": contact[:, :, 1:]}


def constants(task: Task, backend: Backend) -> dict[str, Any]:
  """The fields of a `State` that never change."""
  robot, model, device = task.robot, backend.model, backend.device

  def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)

  low_high = tensor([model.joint(j).range.tolist() for j in robot.joints])
  middle, half = low_high.mean(1), (low_high[:, 1] - low_high[:, 0]) / 2
  radii = {foot: float(model.geom(f"{foot}_foot").size[0]) for foot in robot.feet}
  if len(set(radii.values())) > 1:
    raise ValueError(f"{robot.mjcf}: feet must have one radius, and theirs are {radii} m")
  fields: dict[str, Any] = {
    "home_feet_m": tensor(_home_feet_m(robot, model)),
    "home_rad": tensor([robot.home_rad[j] for j in robot.joints]),
    "gait_joints": torch.tensor([robot.joints.index(j) for j in robot.gait_joints], device=device),
    "is_arm": tensor([j in robot.arm_joints for j in robot.gait_joints]),
    "is_leg": tensor([j not in robot.arm_joints for j in robot.gait_joints]),
    "soft_low_rad": middle - robot.soft_limit_factor * half,
    "soft_high_rad": middle + robot.soft_limit_factor * half,
    "foot_radius_m": radii[robot.feet[0]],
    "substeps": task.substeps,
    "dt_s": task.control_dt_s,
    "commanded": torch.tensor([3, 4, 2], device=device),
  }
  if task.gait:
    fields["should_contact_table"] = tensor(task.gait.contact_table(robot.feet))
    fields["phase_table"] = tensor(task.gait.phase_table())
  return fields


def _home_feet_m(robot: Robot, model: mujoco.MjModel) -> list[list[float]]:
  """Places of the feet at HOME about their middle, along the base's x and y.  (F, 2) m."""
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_kinematics(model, data)
  base = data.body(robot.base_body).xmat.reshape(3, 3)
  feet = [(data.site(foot).xpos @ base)[:2] for foot in robot.feet]
  middle = sum(feet) / len(feet)
  return [(foot - middle).tolist() for foot in feet]
