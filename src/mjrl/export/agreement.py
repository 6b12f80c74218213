"""Whether what was exported acts as the policy does in training's own environment.

Each check returns the largest error that it saw, and raises a ValueError if that is too large.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray

from mjrl.export import player
from mjrl.export.actor import Actor, load_torchscript
from mjrl.export.onnx_file import external_data
from mjrl.export.runs import Frame
from mjrl.learn.policy import NetworkPolicy
from mjrl.learn.rsl import EmpiricalNormalization, MLPModel

NETWORK_ERROR = 1e-5
OBSERVATION_ERROR = 1e-5
ONE_STEP_ERROR = 1e-6
ACTION_ERROR = 1e-4
SPEED_SHARE = 0.02
FIRST_S = 1.0
"""How long a closed loop must give the same actions: later, two that differ in the last digit have
other contacts."""

_STEPS, _BATCH = 16, 7


def check_network(path: Path, network: MLPModel, actor: Actor, frames: Sequence[Frame]) -> float:
  """actor.onnx against the network of the checkpoint, on random and on recorded observations."""
  _check_file(path, actor)
  session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

  def run(inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    named = {name: value.numpy() for name, value in zip(actor.inputs, inputs, strict=True)}
    return [torch.from_numpy(np.asarray(v)) for v in session.run(actor.outputs, named)]

  seen = torch.from_numpy(np.stack([frame.observation for frame in frames]))
  error = max(
    _largest(run, network, actor, _random(network)), _largest(run, network, actor, seen[:, None])
  )
  return _within(error, NETWORK_ERROR, f"{path.name}: actions differ from the checkpoint's")


def check_torchscript(path: Path, network: MLPModel, actor: Actor) -> float:
  """actor.pt against the network of the checkpoint, on random observations."""
  module = load_torchscript(path)
  error = _largest(lambda inputs: list(module(*inputs)), network, actor, _random(network))
  return _within(error, NETWORK_ERROR, f"{path.name}: actions differ from the checkpoint's")


def check_frames(
  frames: Sequence[Frame],
  controller: player.Controller,
  simulation: player.Simulation,
  layout: Mapping[str, Any],
) -> float:
  """The player's observation, action and targets in each recorded state against the recorded."""
  worst = 0.0
  controller.start(frames[0].clock_step)
  for k, frame in enumerate(frames):
    simulation.load(frame.state, frame.forces)
    out = controller.step(simulation.read(), frame.command)
    error = np.abs(out.observation - frame.observation)
    at = int(error.argmax())
    where = f"control step {k}: observation[{at}], {place(layout, at)}, differs"
    worst = max(worst, _within(float(error[at]), OBSERVATION_ERROR, where))
    error = float(np.abs(out.action - frame.action).max())
    _within(error, OBSERVATION_ERROR, f"control step {k}: actions differ")
    error = np.abs(out.targets_rad - frame.targets_rad)
    at = layout["joints"]["wire"][int(error.argmax())]
    _within(float(error.max()), OBSERVATION_ERROR, f"control step {k}: the target of {at} differs")
  return worst


def check_one_step(frames: Sequence[Frame], simulation: player.Simulation) -> float:
  """What the player's simulation senses a control step after each recorded state."""
  worst = 0.0
  for k in range(len(frames) - 1):
    simulation.load(frames[k].state, frames[k].forces)
    simulation.step(frames[k].targets_rad)
    got = simulation.read()
    simulation.load(frames[k + 1].state, frames[k + 1].forces)
    for name, wanted in simulation.read().items():
      # Forces of some ten newtons were recorded as float32: relative to what is above 1.
      error = float((np.abs(got[name] - wanted) / np.maximum(np.abs(wanted), 1)).max())
      worst = max(worst, _within(error, ONE_STEP_ERROR, f"one step after {k}: {name} differs"))
  return worst


def check_closed_loop(
  frames: Sequence[Frame], controller: player.Controller, simulation: player.Simulation, dt_s: float
) -> dict[str, Any]:
  """The player on its own, from the first recorded state on, against the recorded run.

  Speeds are compared until one of the two falls.
  """
  controller.start(frames[0].clock_step)
  simulation.load(frames[0].state, frames[0].forces)
  velocities, action_error, fell = [], 0.0, None
  for k, frame in enumerate(frames):
    out = controller.step(simulation.read(), frame.command)
    simulation.step(out.targets_rad)
    if k * dt_s < FIRST_S:
      action_error = max(action_error, float(np.abs(out.action - frame.action).max()))
      _within(
        action_error, ACTION_ERROR, f"the player's actions differ from mjrl's at {k * dt_s:.2f} s"
      )
    velocities.append(simulation.velocity)
    if frame.fallen or simulation.fallen:
      fell = (k + 1) * dt_s
      break
  count = len(velocities)
  ours = np.mean([frame.velocity for frame in frames[:count]], axis=0)
  theirs = np.mean(velocities, axis=0)
  command = frames[0].command
  difference = float(np.linalg.norm(theirs[:2] - ours[:2]))
  scale = max(float(np.linalg.norm(v[:2])) for v in (ours, theirs, command))
  share = difference / scale if scale else 0.0
  _within(
    share,
    SPEED_SHARE,
    f"the player walks at {_text(theirs)} m/s, mjrl at {_text(ours)} m/s over {count * dt_s:.2f} s "
    f"(both acted alike for {FIRST_S:g} s: one that stumbles may then go elsewhere by the last "
    "digit; train it longer), which differ",
  )
  return {
    "command": command.tolist(),
    "seconds": round(count * dt_s, 9),
    "action_error_first_second": action_error,
    "velocity_mjrl": ours.tolist(),
    "velocity_player": theirs.tolist(),
    "speed_difference_share": share,
    "fell_after_s": fell,
  }


def place(layout: Mapping[str, Any], index: int) -> str:
  """The number of an observation in words: term, part, frame."""
  term = next(t for t in reversed(layout["observation"]["terms"]) if t["offset"] <= index)
  frame, part = divmod(index - term["offset"], term["frame_width"])
  age = term["frames"] - 1 - frame + term["delay_steps"]
  return f"{term['name']}/{term['parts'][part]}" + (f" {age} steps ago" if age else "")


def _check_file(path: Path, actor: Actor) -> None:
  model = onnx.load(str(path), load_external_data=False)
  outside = external_data(model)
  if outside:
    raise ValueError(f"{path.name}: weights lie in another file: {', '.join(outside)}")
  for value in (*model.graph.input, *model.graph.output):
    axis = 0 if value.name in (actor.inputs[0], actor.outputs[0]) else 1
    if not value.type.tensor_type.shape.dim[axis].dim_param:
      raise ValueError(f"{path.name}: {value.name} has a fixed batch")


def _random(network: MLPModel) -> torch.Tensor:
  """Observations as far from their mean as in training, (steps, batch, width)."""
  rng = torch.Generator().manual_seed(0)
  assert isinstance(network.obs_normalizer, EmpiricalNormalization)  # recipes have no other
  mean, std = network.obs_normalizer.mean, network.obs_normalizer.std
  return mean + 2 * std * torch.randn(_STEPS, _BATCH, network.obs_dim, generator=rng)


def _largest(run: Any, network: MLPModel, actor: Actor, observations: torch.Tensor) -> float:
  """Largest difference in action over steps, each side remembering on its own."""
  policy, memory, worst = NetworkPolicy(network), actor.start(observations.shape[1]), 0.0
  with torch.inference_mode():
    for seen in observations:
      action, *memory = run((seen, *memory))
      worst = max(worst, float((action - policy({"policy": seen})).abs().max()))
  return worst


def _within(error: float, limit: float, what: str) -> float:
  if not error <= limit:  # also when it is no number
    raise ValueError(f"{what}: by {error:.3g}; at most {limit:g} is allowed")
  return error


def _text(velocity: NDArray[np.float64]) -> str:
  return f"({velocity[0]:.4f}, {velocity[1]:.4f})"
