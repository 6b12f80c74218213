"""A task made ready to be replayed, with everything that differs from training said."""

from dataclasses import dataclass
from math import degrees
from pathlib import Path
from typing import Any

from mjrl.envs.curriculum import trained_ranges
from mjrl.envs.describe import describe, differences
from mjrl.envs.env import Env
from mjrl.envs.policy import Policy
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Event, Task
from mjrl.learn import checkpoints
from mjrl.measure import agents
from mjrl.measure.replayed import as_replayed, check_policy, kept
from mjrl.measure.series import Posture
from mjrl.sim.memory import check_room
from mjrl.sim.open import open_backend
from mjrl.sim.resolve import Resolved
from mjrl.sim.seeds import streams


@dataclass(frozen=True, kw_only=True)
class Replay:
  """Who drives what, where, and how that differs from training.

  checkpoint, iteration  of a trained agent
  obs_noise              whether observations are as noisy as in training
  trained                (3,) ranges of the command that the policy was trained on
  pushes                 recurring events of training, which the replay leaves out
  """

  env: Env
  policy: Policy
  agent: str
  checkpoint: Path | None
  iteration: int | None
  resolved: Resolved
  seed: int
  obs_noise: bool
  trained: tuple[tuple[float, float], ...]
  pushes: tuple[Event, ...]
  differences: tuple[str, ...]
  as_in_training: tuple[str, ...]


def open_replay(
  task: Task,
  resolved: Resolved,
  *,
  seed: int,
  agent: str,
  checkpoint: Path | None,
  command: tuple[float, float, float] | None,
  posture: Posture | None,
  obs_noise: bool,
  physics_hz: float | None,
  measure: bool,
) -> Replay:
  """Build the env of a task as it is trained, changed for replay, and its driver.

  Raises:
    ValueError: a physics rate or a checkpoint that does not fit the task.
  """
  replayed, changed = as_replayed(task, obs_noise=obs_noise, physics_hz=physics_hz)
  saved = None
  if checkpoint:
    saved = checkpoints.read(checkpoint)
    check_policy(checkpoint, saved, task)
  model = compile_scene(replayed)
  check_room(resolved, model)
  of_agent, of_env = streams(seed, 2)
  env = Env(
    replayed,
    open_backend(resolved, model),
    of_env,
    history=saved["recipe"]["history"] if saved else None,
  )
  return Replay(
    env=env,
    policy=_policy(agent, env, of_agent, saved),
    agent=agent,
    checkpoint=checkpoint,
    iteration=int(saved["iteration"]) if saved else None,
    resolved=resolved,
    seed=seed,
    obs_noise=obs_noise,
    trained=trained_ranges(task, _level(saved)),
    pushes=tuple(event for event in task.events.values() if event.when == "interval"),
    differences=changed + _since(saved, task) + _driven(agent, command, posture, measure),
    as_in_training=kept(replayed),
  )


def _driven(
  agent: str,
  command: tuple[float, float, float] | None,
  posture: Posture | None,
  measure: bool,
) -> tuple[str, ...]:
  """The differences that lie in who drives and what is asked."""
  who = {
    "trained": "The policy acts by its mean; in training its actions are drawn around it.",
    "zero": "No policy acts: every action is zero, which asks for HOME.",
    "random": "No policy acts: actions are uniform in [-1, 1).",
  }
  said = [who[agent]]
  if command is not None:
    said.append(
      "The command is held at {:g} m/s forward, {:g} m/s left, {:g} rad/s; in training it is drawn "
      "anew every few seconds.".format(*command)
    )
  if posture is not None:
    twist, pitch, roll, height_m = posture
    said.append(
      f"The body is held at {degrees(twist):.3g}° of twist, {degrees(pitch):.3g}° of pitch, "
      f"{degrees(roll):.3g}° of roll and {height_m:g} m of height; in training a posture is drawn "
      "anew every few seconds."
    )
  if measure and command is None and posture is None:
    said.append("Commands are a fixed series; in training they are drawn anew every few seconds.")
  return tuple(said)


def _level(saved: dict[str, Any] | None) -> int | None:
  """The level that the ladder of a checkpoint's run had reached, if it had one."""
  ladder = saved["curriculum"].get("command") if saved else None
  return int(ladder["level"]) if ladder else None


def _policy(agent: str, env: Env, seed: int, saved: dict[str, Any] | None) -> Policy:
  if saved:
    from mjrl.learn.policy import load_policy  # loads the learner, which other agents do without

    return load_policy(saved, env)
  return agents.random(env, seed) if agent == "random" else agents.zero(env)


def _since(saved: dict[str, Any] | None, task: Task) -> tuple[str, ...]:
  """What has changed in the task since the checkpoint was trained, or was overridden for it."""
  if saved is None:
    return ()
  now = describe(task)
  del now["recipes"]  # a checkpoint keeps the one that it used beside its task
  return tuple(
    f"The checkpoint's task was another: {line}." for line in differences(saved["task"], now)
  )
