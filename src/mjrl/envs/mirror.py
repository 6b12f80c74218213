"""Left-right symmetry: what observations and actions become when the world is mirrored, y to -y."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from mjrl.envs.env import Env
from mjrl.envs.task import Task
from mjrl.envs.terms import observations as o

# Row to the kind of quantity it is.  A row that is not here has no mirror image, and says so.
_KINDS: Mapping[Callable[..., Tensor], str] = {
  o.ang_vel_b: "axial",
  o.lin_vel_b: "polar",
  o.gravity_b: "polar",
  o.joint_offset: "joints",
  o.encoder_offset: "joints",
  o.joint_vel: "joints",
  o.joint_torque: "joints",
  o.action: "joints",
  o.command: "twist",
  o.posture: "posture",
  o.gait_phase: "phase",
  o.foot_height: "feet",
  o.foot_air_time: "feet",
  o.foot_contact: "feet",
  o.foot_force_log: "foot vectors",
}


def check_mirror(task: Task) -> None:
  """Refuse a task that has no mirror image, before anything is built.

  Raises:
    ValueError: a row has no known mirror image.
  """
  for rows in task.observations.values():
    for key, row in rows.items():
      _row_map(task, key, row.fn)


class Mirror:
  """Column maps of a task's groups and actions: mirrored[i] = sign[i] * value[source[i]]."""

  def __init__(self, env: Env) -> None:
    """Make the maps.

    Raises:
      ValueError: a row has no known mirror image.
    """
    self.groups = {}
    for name, rows in env.task.observations.items():
      source, sign = [], []
      for key, (width, frames) in env.observer.layout(name).items():
        row_source, row_sign = _row_map(env.task, key, rows[key].fn)
        for _ in range(frames):
          source += [len(sign) + s for s in row_source]
          sign += row_sign
        assert len(row_sign) == width
      self.groups[name] = _tensors(source, sign, env.device)
    self.action = _tensors(*_joint_map(env.task), env.device)

  def observations(self, groups: TensorDict) -> TensorDict:
    """Mirrored copies of some observations, (B, width) each."""
    mirrored = {name: _apply(columns, groups[name]) for name, columns in self.groups.items()}
    return TensorDict(mirrored, batch_size=groups.batch_size)

  def actions(self, action: Tensor) -> Tensor:
    """Mirrored copies of some actions, (B, G)."""
    return _apply(self.action, action)


Augmentation = Callable[..., tuple[TensorDict | None, Tensor | None]]


def augmentation(env: Env) -> Augmentation:
  """rsl_rl's augmentation function: the given samples first, their mirror images after them."""
  mirror = Mirror(env)

  def augment(
    *, env: object, obs: TensorDict | None, actions: Tensor | None
  ) -> tuple[TensorDict | None, Tensor | None]:
    if obs is not None:
      obs = torch.cat([obs, mirror.observations(obs)])  # type: ignore[arg-type]
    if actions is not None:
      actions = torch.cat([actions, mirror.actions(actions)])
    return obs, actions

  return augment


def _row_map(task: Task, key: str, fn: Callable[..., Tensor]) -> tuple[list[int], list[int]]:
  kind = _KINDS.get(fn)
  if kind == "axial":
    return [0, 1, 2], [-1, 1, -1]
  if kind == "polar":
    return [0, 1, 2], [1, -1, 1]
  if kind == "twist":
    return [0, 1, 2], [1, -1, -1]
  if kind == "posture":
    return [0, 1, 2, 3], [-1, 1, -1, 1]
  if kind == "phase" and task.gait:
    return [0, 1], list(task.gait.mirror)
  if kind == "joints":
    return _joint_map(task)
  if kind == "feet":
    return _foot_sources(task), [1] * len(task.robot.feet)
  if kind == "foot vectors":
    source = [3 * foot + axis for foot in _foot_sources(task) for axis in range(3)]
    return source, [1, -1, 1] * len(task.robot.feet)
  raise ValueError(
    f"{task.name}: observation {key!r} ({fn.__name__}) has no mirror image; switch mirroring off "
    "in the recipe, or say in mjrl.envs.mirror what kind of quantity it is"
  )


def _joint_map(task: Task) -> tuple[list[int], list[int]]:
  robot = task.robot
  partners = [robot.mirror_joints[joint] for joint in robot.gait_joints]
  return [robot.gait_joints.index(name) for name, _ in partners], [sign for _, sign in partners]


def _foot_sources(task: Task) -> list[int]:
  feet = task.robot.feet
  return [feet.index(task.robot.mirror_feet[foot]) for foot in feet]


def _tensors(source: Sequence[int], sign: Sequence[int], device: str) -> tuple[Tensor, Tensor]:
  return (
    torch.tensor(source, device=device),
    torch.tensor(sign, dtype=torch.float32, device=device),
  )


def _apply(column_map: tuple[Tensor, Tensor], value: Any) -> Tensor:
  source, sign = column_map
  return value.index_select(1, source) * sign
