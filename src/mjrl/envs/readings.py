"""Where the fields of a `State` lie in the engine's arrays."""

from typing import Any

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
    qpos, qvel = backend.read("qpos"), backend.read("qvel")
    sensors, torque = backend.read("sensordata"), backend.read("actuator_force")
    joints = len(robot.joints)

    def sensor(name: str) -> Tensor:
      address, size = model.sensor(name).adr[0], model.sensor(name).dim[0]
      return sensors[:, address : address + size]

    def of_feet(kind: str, size: int) -> Tensor:
      addresses = [int(model.sensor(f"{foot}_{kind}").adr[0]) for foot in robot.feet]
      first, feet = addresses[0], len(robot.feet)
      if addresses != [first + k * size for k in range(feet)]:
        raise ValueError(f"{robot.mjcf}: sensors *_{kind} must stand in the order of the feet")
      return sensors[:, first : first + feet * size].unflatten(1, (feet, size))

    first = int(model.sensor("imu_ang_vel").adr[0])
    if model.sensor("imu_lin_vel").adr[0] != first + 3:
      raise ValueError(f"{robot.mjcf}: sensor imu_lin_vel must stand right behind imu_ang_vel")
    twist = sensors[:, first : first + 6]
    contact = of_feet("contact", 4)
    self.fields: dict[str, Tensor] = {
      "base_pos_w": qpos[:, :3],
      "base_quat_w": qpos[:, 3:7],
      "joint_pos_rad": qpos[:, 7 : 7 + joints],
      "joint_vel_rad_s": qvel[:, 6 : 6 + joints],
      "joint_torque_n_m": torque,
      "twist_b": twist,
      "ang_vel_b": twist[:, :3],
      "lin_vel_b": twist[:, 3:],
      "forward_w": sensor("imu_forward"),
      "up_b": sensor("imu_up"),
      "foot_pos_w": of_feet("pos", 3),
      "foot_vel_w": of_feet("vel", 3),
      "foot_contacts": contact[:, :, 0],
      "foot_force_w": contact[:, :, 1:],
      "self_force": sensor("self_collision"),
    }

  def copies(self) -> dict[str, Tensor]:
    """The fields as they are now, out of the engine's reach."""
    return {name: view.clone() for name, view in self.fields.items()}


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
