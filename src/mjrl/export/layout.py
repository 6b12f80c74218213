"""layout.json: what the numbers of a policy mean, as plain values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mjrl.envs.actions import JointOffset
from mjrl.envs.task import STANDING_COMMAND, CommandLadder, Observation, Task, VelocityCommand
from mjrl.envs.terms.quantities import QUANTITIES
from mjrl.export.actor import Actor
from mjrl.export.onnx_file import OPSET
from mjrl.learn.checkpoints import iteration_of
from mjrl.sim.versions import EXPORT_PACKAGES, PACKAGES, versions_of

SCHEMA = "mjrl/layout/1"


def build_layout(
  task: Task,
  saved: Mapping[str, Any],
  actor: Actor,
  checkpoint: Path,
  sha256: str,
  joint_limits_rad: Mapping[str, tuple[float, float]],
) -> dict[str, Any]:
  """The layout of a checkpoint's policy, less what the export adds: files and checks.

  Args:
    task: as it is today.
    saved: the checkpoint.
    actor: its network.
    checkpoint: its file, of which the names alone are kept.
    sha256: of that file.
    joint_limits_rad: joint to (lower, upper), from the model.

  Raises:
    ValueError: the task is of a kind that the player does not know.
  """
  robot, action, command = task.robot, task.action, task.command
  if not isinstance(action, JointOffset) or command is None or task.commands:
    raise ValueError(
      f"{task.name}: the exported player knows position targets about HOME and a velocity command, "
      "and this task has others, so that it cannot be exported"
    )
  return {
    "schema": SCHEMA,
    "task": task.name,
    "robot": robot.name,
    "source": {
      "checkpoint": checkpoint.name,
      "sha256": sha256,
      "run": checkpoint.absolute().parent.name,
      "iteration": int(saved.get("iteration", iteration_of(checkpoint))),
      "trained_on": saved["backend"],
      "versions": versions_of(PACKAGES + EXPORT_PACKAGES),
    },
    "conventions": {
      "base_axes": "x forward, y left, z up, at the IMU",
      "quaternion": "w x y z, turns base vectors into world vectors",
      "joint_sign": "right-handed about the joint's axis in robot.xml",
      "units": "m, kg, s, rad, N, N·m",
    },
    "joints": {
      "model": list(robot.joints),
      "wire": list(robot.joints),
      "observation": list(robot.gait_joints),
      "action": list(robot.gait_joints),
      "held_at_home": [j for j in robot.joints if j not in robot.gait_joints],
    },
    "feet": list(robot.feet),
    "home_rad": dict(robot.home_rad),
    "home_height_m": robot.home_height_m,
    "joint_limits_rad": {joint: list(limits) for joint, limits in joint_limits_rad.items()},
    "control": {
      "control_hz": 1 / task.control_dt_s,
      "control_dt_s": task.control_dt_s,
      "physics_dt_s": task.physics_dt_s,
      "decimation": task.substeps,
      "kp_n_m_rad": robot.kp_n_m_rad,
      "kd_n_m_s_rad": robot.kd_n_m_s_rad,
      "effort_limit_n_m": robot.effort_limit_n_m,
      "law": "torque = kp * (target - angle) - kd * velocity, limited to +-effort_limit",
    },
    "action": {
      "width": len(robot.gait_joints),
      "scale_rad": action.scale_rad,
      "offset": "home_rad",
      "clip": None,
      "targets_clamped": False,
      "law": "target = home_rad + scale_rad * action; joints that are held stay at home_rad",
    },
    "observation": _observation(task, saved["recipe"]["history"]),
    "gait": _gait(task),
    "command": _command(command, task.curriculum, saved),
    "start": {
      "pose": "HOME, at rest, servos holding it",
      "history": "filled with the first frame",
      "previous_action": 0.0,
      "clock_step": "any",
      "memory": "zeros" if actor.states else None,
    },
    "network": {
      "format": "onnx",
      "opset": OPSET,
      "input": "obs",
      "output": "action",
      "normaliser": "inside",
      "hidden": list(saved["recipe"]["actor_hidden"]),
      "activation": saved["recipe"]["activation"],
      "memory": _memory(actor),
    },
    "not_measurable": not_measurable(task),
  }


def not_measurable(task: Task) -> list[str]:
  """Terms of the policy's observation that the robot has no sensor for."""
  return [
    name
    for name, row in task.observations["policy"].items()
    if row.fn in QUANTITIES and QUANTITIES[row.fn].sensor not in (None, *task.robot.sensors)
  ]


def metadata(layout: Mapping[str, Any]) -> dict[str, Any]:
  """What actor.onnx says of itself, should it lose its layout."""
  names = ("schema", "task", "robot", "source", "joints", "home_rad", "control", "action")
  return {name: layout[name] for name in names} | {
    "observation": [
      {key: term[key] for key in ("name", "offset", "width", "frames", "scale", "clip")}
      for term in layout["observation"]["terms"]
    ]
  }


def _observation(task: Task, history: int | None) -> dict[str, Any]:
  terms, offset = [], 0
  for name, row in task.observations["policy"].items():
    terms.append(_term(task, name, row, row.frames(history), offset))
    offset += terms[-1]["width"]
  return {
    "width": offset,
    "order": "term after term; of each its frames, oldest first",
    "noise": "not included: training added it to imitate sensors",
    "terms": terms,
  }


def _term(task: Task, name: str, row: Observation, frames: int, offset: int) -> dict[str, Any]:
  quantity = QUANTITIES[row.fn]
  parts = quantity.labels(task.robot)
  return {
    "name": name,
    "quantity": row.fn.__name__,
    "offset": offset,
    "width": len(parts) * frames,
    "frame_width": len(parts),
    "frames": frames,
    "frame_order": "oldest first",
    "delay_steps": round(row.delay_s / task.control_dt_s),
    "scale": row.scale,
    "clip": None if row.clip is None else list(row.clip),
    "parts": list(parts),
    "unit": quantity.unit,
    "meaning": quantity.meaning,
    "sensor": quantity.sensor,
    "noise_in_training": row.noise,
  }


def _gait(task: Task) -> dict[str, Any] | None:
  gait = task.gait
  if gait is None:
    return None
  period_s = gait.cycle_steps * task.control_dt_s
  return {
    "name": gait.name,
    "cycle_steps": gait.cycle_steps,
    "period_s": period_s,
    "frequency_hz": 1 / period_s,
    "swing_steps": gait.swing_steps,
    "duty": gait.duty,
    "swing_order": [list(group) for group in gait.groups],
    "phase_rule": "angle = 2 pi clock_step / cycle_steps; clock_step grows by 1 each control step "
    "and starts again at cycle_steps, also while the robot stands; it may start anywhere",
    "standing_rule": "sine and cosine are both 0 while the command asks to stand",
  }


def _command(
  spec: VelocityCommand, ladder: CommandLadder | None, saved: Mapping[str, Any]
) -> dict[str, Any]:
  """The ceilings, and the ranges that the ladder had reached when the checkpoint was written."""
  level, linear, angular = None, 1.0, 1.0
  if ladder is not None:
    level = int(saved["curriculum"].get("command", {"level": len(ladder.rungs) - 1})["level"])
    linear, angular = ladder.rungs[level].linear, ladder.rungs[level].angular
  ceilings = {
    "forward_m_s": spec.forward_m_s,
    "left_m_s": spec.left_m_s,
    "yaw_rad_s": spec.yaw_rad_s,
  }
  share = {"forward_m_s": linear, "left_m_s": linear, "yaw_rad_s": angular}
  return {
    "parts": ["forward_m_s", "left_m_s", "yaw_rad_s"],
    "signs": "forward, to the left and counter-clockwise seen from above are positive",
    "standing_norm": STANDING_COMMAND,
    "standing_rule": "a command whose norm, of all three numbers, is at most this asks to stand",
    "ceilings": {name: list(ends) for name, ends in ceilings.items()},
    "trained": {name: [end * share[name] for end in ends] for name, ends in ceilings.items()},
    "level": level,
    "levels": len(ladder.rungs) if ladder is not None else None,
  }


def _memory(actor: Actor) -> list[dict[str, Any]]:
  shapes = [state.shape for state in actor.start(1)]
  return [
    {"input": f"{name}_in", "output": f"{name}_out", "shape": [shape[0], "batch", shape[2]]}
    for name, shape in zip(actor.states, shapes, strict=True)
  ]
