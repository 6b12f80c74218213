"""How a replay differs from training: made here, and said here; whether a policy fits it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mjrl.envs.describe import describe
from mjrl.envs.posture import POSTURE, PostureCommand
from mjrl.envs.scene import in_scene
from mjrl.envs.task import Task, noiseless
from mjrl.learn import checkpoints
from mjrl.measure.series import Posture, segment

# Longer than anybody watches, and still a whole number of control steps in float64.
ENDLESS_S = 1e7
_KEPT = ("startup", "reset")  # events that replays have too
_CAN_BE_KEPT = (*_KEPT, "never")  # those among them that an override switches on


def as_replayed(
  task: Task, *, obs_noise: bool, physics_hz: float | None
) -> tuple[Task, tuple[str, ...]]:
  """The task without pushes, time-outs and ladder, and each difference as a plain sentence.

  Args:
    task: as it is trained.
    obs_noise: whether the policy's observations keep their noise.
    physics_hz: physics rate, the control rate being kept; None keeps that of training.

  Raises:
    ValueError: physics_hz is not a whole multiple of the control rate.
  """
  said = []
  pushes = sorted(name for name, event in task.events.items() if event.when == "interval")
  if pushes:
    said.append(f"No disturbances: training's recurring events are off ({', '.join(pushes)}).")
  said.append(f"Episodes never time out; in training they end after {task.episode_s:g} s.")
  if task.all_ladders:
    said.append(
      "There is no command ladder: commands may reach the task's ceilings, whatever level training "
      "had reached."
    )
  terrain = task.terrain
  if terrain and terrain.rough and terrain.curriculum:
    if terrain.level is None:
      said.append("There is no terrain curriculum: envs are spread over all levels.")
    terrain = replace(terrain, curriculum=None)
  observations = task.observations
  if not obs_noise and noisy_rows(task):
    observations = {name: noiseless(group) for name, group in observations.items()}
    said.append(
      f"Observations are free of the noise of training (on {', '.join(noisy_rows(task))})."
    )
  physics_dt_s = _physics_dt_s(task, physics_hz)
  if physics_dt_s != task.physics_dt_s:
    said.append(
      f"The physics runs at {1 / physics_dt_s:g} Hz instead of the {1 / task.physics_dt_s:g} Hz of "
      f"training; control stays at {1 / task.control_dt_s:g} Hz."
    )
  changed = replace(
    task,
    events={name: event for name, event in task.events.items() if event.when in _KEPT},
    episode_s=ENDLESS_S,
    curriculum=None,
    ladders={},
    observations=observations,
    physics_dt_s=physics_dt_s,
    terrain=terrain,
  )
  return changed, tuple(said)


def kept(task: Task) -> tuple[str, ...]:
  """What stays random, as in training, in plain sentences."""
  events = in_scene(task).events
  world = sorted(name for name, event in events.items() if event.when in _KEPT)
  said = []
  if world:
    said.append(f"As in training, these differ from env to env: {', '.join(world)}.")
  if noisy_rows(task):
    said.append(f"As in training, observations are noisy: {', '.join(noisy_rows(task))}.")
  return tuple(said)


def unused(task: Task, path: str, *, obs_noise: bool, held: bool, physics_hz: float | None) -> str:
  """Why another number at a path of the task would not change a replay; "" if it would.

  Args:
    task: as it is trained.
    path: see `mjrl.envs.paths`.
    obs_noise: as `as_replayed` takes it.
    held: whether one command is held throughout.
    physics_hz: as `as_replayed` takes it.
  """
  table, _, rest = path.partition(".")
  event = task.events.get(rest.partition(".")[0])
  why = {
    "rewards": "a replay does not learn",
    "curriculum": "a replay climbs no ladder",
    "ladders": "a replay climbs no ladder",
    "metrics": "a replay has figures of its own",
    "episode_s": "episodes of a replay do not time out",
    "success": "a replay has no success, evaluations in training do",
    "command": "--command is held" if held else "",
    "physics_dt_s": "--physics_hz is given" if physics_hz is not None else "",
    "events": ""
    if event and event.when in _CAN_BE_KEPT
    else "a replay leaves this event out anyway",
    "terrain": "a replay climbs no levels" if rest.startswith("curriculum") else "",
    "observations": "a replay has no critic" if rest.startswith("critic.") else "",
  }.get(table, "")
  if table == "observations" and path.endswith(".noise") and not obs_noise:
    why = "--no-obs-noise is given"
  return f"has no effect: {why}" if why else ""


def check_posture(task: Task, posture: Posture, command: tuple[float, float, float] | None) -> None:
  """Refuse a posture that the task never asks for.

  Args:
    task: that is to be replayed.
    posture: to be held.
    command: the velocity that is held; None where it is drawn, and may be any.

  Raises:
    ValueError: names the number and its range, or that the task asks for no posture.
  """
  asked = next((c for c in task.commands.values() if isinstance(c, PostureCommand)), None)
  if asked is None:
    raise ValueError(f"--posture has no effect: {task.name} asks for no posture")
  parked = command is not None and segment(command).standing
  ranges = asked.parked if parked else asked.walking
  for name, value, (low, high) in zip(POSTURE, posture, ranges.ends().values(), strict=True):
    if not low <= value <= high:
      who = "stands" if parked else "may walk"
      cure = "" if parked else "; with --command 0 0 0 it stands"
      raise ValueError(
        f"--posture: {name} is {value:g}; of a robot that {who} it must be in {low:.4g} .. "
        f"{high:.4g}{cure}"
      )


def check_policy(checkpoint: Path, saved: Mapping[str, Any], task: Task) -> None:
  """Refuse a checkpoint whose policy is not one of this task.

  Only the policy has to fit: networks of the same size may have learned another gait.

  Args:
    checkpoint: for the error.
    saved: what it holds.
    task: that is to be replayed.

  Raises:
    ValueError: with each difference that matters.
  """
  policy = {"policy": describe(task.observations["policy"])}
  asked = {"name": task.name, "observations": policy}
  checkpoints.check_networks(checkpoint, dict(saved), asked, saved["recipe"])


def noisy_rows(task: Task) -> list[str]:
  """Rows of the policy's observation that carry noise, each with its half-width."""
  policy = task.observations["policy"]
  return [f"{name} ±{row.noise:g}" for name, row in policy.items() if row.noise]


def _physics_dt_s(task: Task, physics_hz: float | None) -> float:
  if physics_hz is None:
    return task.physics_dt_s
  control_hz = 1 / task.control_dt_s
  substeps = physics_hz / control_hz
  if substeps < 0.5 or abs(substeps - round(substeps)) > 1e-6:
    raise ValueError(
      f"--physics-hz {physics_hz:g} is not a whole multiple of the control rate, {control_hz:g} "
      f"Hz: try {max(1, round(substeps)) * control_hz:g}"
    )
  return task.control_dt_s / round(substeps)
