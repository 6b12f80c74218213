"""From a checkpoint to a folder that a robot's author can use, or to a reason why not."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mjrl.envs.describe import describe, differences
from mjrl.envs.task import Task
from mjrl.export import player
from mjrl.export.actor import Actor, torchscript_bytes
from mjrl.export.agreement import (
  check_closed_loop,
  check_frames,
  check_network,
  check_one_step,
  check_torchscript,
)
from mjrl.export.checks import (
  check_joints,
  check_measurable,
  check_pose,
  check_scene,
  check_servos,
  check_widths,
)
from mjrl.export.folder import LAYOUT, check_replaceable, whole_folder
from mjrl.export.layout import build_layout, metadata, not_measurable
from mjrl.export.onnx_file import onnx_bytes
from mjrl.export.readme import readme
from mjrl.export.reference import as_text, build_reference, commands, walking
from mjrl.export.runs import Command, drive, open_env, quiet
from mjrl.export.scene_files import SCENE, scene_files
from mjrl.learn import checkpoints
from mjrl.learn.policy import NetworkPolicy, load_network

FORMATS = ("onnx", "torchscript")
ONNX, TORCHSCRIPT, PLAYER = "actor.onnx", "actor.pt", "player.py"
README, REFERENCE = "README.md", "reference.json"
DEFAULT_NAME = "exported"
CLOSED_LOOP_S = 10.0


def export(
  *, task: Task, checkpoint: Path, out: Path | None, format: str, allow_unmeasurable: bool
) -> int:
  """Write a checkpoint's policy for a robot, whole or not at all.

  Args:
    task: as it is trained.
    checkpoint: file of the policy.
    out: folder, which is replaced if it is an export; None is `exported` beside the checkpoint.
    format: "onnx", or "torchscript" to have that beside it.
    allow_unmeasurable: export a policy that reads what the robot cannot measure.

  Returns:
    The exit code, 0.

  Raises:
    ValueError: the checkpoint does not fit, or a check failed; nothing was written.
  """
  folder = checkpoint.parent / DEFAULT_NAME if out is None else out
  check_replaceable(folder)
  check_measurable(task, not_measurable(task), allow_unmeasurable)
  saved = checkpoints.read(checkpoint)
  _check_task(checkpoint, saved, task)
  calm = quiet(task)
  env = open_env(calm, saved["recipe"]["history"])
  network = load_network(saved, env)
  actor = Actor(network)
  model = env.backend.model
  layout = build_layout(
    task,
    saved,
    actor,
    checkpoint,
    _sha256(checkpoint.read_bytes()),
    {joint: tuple(model.joint(joint).range.tolist()) for joint in task.robot.joints},
  )
  done = _Said()
  done("dimensions and term widths", lambda: check_widths(layout, actor))
  done("joint orders", lambda: check_joints(layout, model))
  done("servo gains, limits and rates", lambda: check_servos(layout, model))
  done("HOME and joint limits", lambda: check_pose(layout, model))

  policy = NetworkPolicy(network)
  frames = drive(env, policy, commands(layout))
  walk = drive(env, policy, [walking_forward(layout)] * round(CLOSED_LOOP_S / task.control_dt_s))
  with whole_folder(folder) as fresh:
    files = scene_files(task) | {
      ONNX: onnx_bytes(actor, metadata(layout)),
      PLAYER: Path(player.__file__).read_bytes(),
    }
    if format == "torchscript":
      files[TORCHSCRIPT] = torchscript_bytes(actor)
    for name, data in files.items():
      _write(fresh / name, data)
    done("scene.xml is the model of training", lambda: check_scene(fresh / SCENE, model))
    network_error = done(
      "actor.onnx = checkpoint", lambda: check_network(fresh / ONNX, network, actor, frames)
    )
    if format == "torchscript":
      path = fresh / TORCHSCRIPT
      done("actor.pt = checkpoint", lambda: check_torchscript(path, network, actor))
    controller = player.Controller(layout, player.Network(fresh / ONNX, layout))
    simulation = player.Simulation(fresh / SCENE, layout)
    layout["checks"] = {
      "network_error": network_error,
      "observation_error": done(
        "player's observations = mjrl's",
        lambda: check_frames(frames, controller, simulation, layout),
      ),
      "one_step_error": done("player's step = mjrl's", lambda: check_one_step(frames, simulation)),
      "closed_loop": done(
        f"player's {CLOSED_LOOP_S:g} s of walking = mjrl's",
        lambda: check_closed_loop(walk, controller, simulation, task.control_dt_s),
      ),
    }
    layout["files"] = {name: _sha256(data) for name, data in sorted(files.items())}
    text = json.dumps(layout, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    reference = build_reference(layout, _sha256(text.encode()), frames, simulation)
    _write(fresh / LAYOUT, text.encode())
    _write(fresh / REFERENCE, as_text(reference).encode())
    _write(fresh / README, readme(layout, TORCHSCRIPT in files).encode())
  print(_summary(folder, layout, task), flush=True)
  return 0


def walking_forward(layout: Mapping[str, Any]) -> Command:
  """The command of the closed loop: half of the fastest forward."""
  return (walking(layout)[0], 0.0, 0.0)


class _Said:
  """Runs checks, and says each that passed with what it found."""

  def __call__(self, what: str, check: Callable[[], Any]) -> Any:
    found = check()
    figure = f": largest difference {found:.2g}" if isinstance(found, float) else ""
    print(f"  checked: {what}{figure}", flush=True)
    return found


def _check_task(checkpoint: Path, saved: Mapping[str, Any], task: Task) -> None:
  """Refuse a checkpoint of another policy, and one of which the layout would be wrong."""
  asked = {"name": task.name, "observations": {"policy": describe(task.observations["policy"])}}
  checkpoints.check_networks(checkpoint, dict(saved), asked, saved["recipe"])
  lines = []
  for key in ("robot", "physics_dt_s", "control_dt_s", "action", "gait"):
    old, new = saved["task"][key], describe(getattr(task, key))
    lines += [
      line for line in differences(old, new, key) if not line.startswith("robot.sensors: absent")
    ]
  if lines:
    raise ValueError(
      f"{checkpoint} was trained on another {task.name}, and the layout would be wrong: "
      + "; ".join(lines)
    )


def _summary(folder: Path, layout: Mapping[str, Any], task: Task) -> str:
  loop = layout["checks"]["closed_loop"]
  lines = [
    "walking for {:g} s at {:g} m/s forward: player {:.4f} m/s, mjrl {:.4f} m/s".format(
      loop["seconds"], loop["command"][0], loop["velocity_player"][0], loop["velocity_mjrl"][0]
    )
  ]
  if loop["fell_after_s"] is not None:
    lines.append(f"the robot fell after {loop['fell_after_s']:g} s: this policy does not walk")
  if task.terrain and task.terrain.rough:
    lines.append(f"trained on rough ground; {SCENE} is flat, and so is what was compared")
  if layout["not_measurable"]:
    missing = ", ".join(layout["not_measurable"])
    lines.append(f"for simulation alone: the robot cannot measure {missing}")
  return "\n".join([*lines, f"wrote {folder}"])


def _write(path: Path, data: bytes) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(data)


def _sha256(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()
