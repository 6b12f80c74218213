"""A training run from start to end: what `scripts/train.py` does once its flags are understood."""

import time
from pathlib import Path
from typing import Any

import torch

from mjrl.envs.describe import describe, differences
from mjrl.envs.env import Env
from mjrl.envs.recipe import Recipe, for_envs
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Task
from mjrl.learn import checkpoints, resume
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.moments import RunEvents
from mjrl.learn.options import Options
from mjrl.learn.run_folder import new_run_folder, write_run, write_summary
from mjrl.learn.runner import Runner
from mjrl.learn.sinks import open_sinks
from mjrl.learn.tensorboard import TensorBoard
from mjrl.sim.memory import check_fits
from mjrl.sim.open import open_backend
from mjrl.sim.resolve import Resolved
from mjrl.sim.seeds import streams
from mjrl.view.window import open_window


def train(
  *,
  task: Task,
  resolved: Resolved,
  seed: int,
  max_iterations: int | None,
  checkpoint: Path | None,
  log_dir: Path,
  command: str,
  options: Options,
) -> int:
  """Train, and leave a run folder.

  Args:
    task: what to learn.
    resolved: engine, device, env count and threads.
    seed: of networks, exploration and the environment.
    max_iterations: iterations of this run; None for the recipe's.
    checkpoint: to go on from, in a new folder; None starts anew.
    log_dir: root of all runs.
    command: as it was typed, for `run.yaml`.
    options: what is done beside learning.

  Returns:
    The exit code: 0, or 128 + the number of the signal that stopped it.

  Raises:
    ValueError: the checkpoint is broken or does not fit; nothing has been built by then.
  """
  recipe = for_envs(task.recipes[resolved.backend], resolved.num_envs)
  identity = {"task": describe(task), "recipe": describe(recipe), "backend": resolved.name}
  del identity["task"]["recipes"]  # the one that is used stands beside it
  saved = None
  if checkpoint is not None:
    saved = checkpoints.read(checkpoint)
    checkpoints.check_fits(checkpoint, saved, identity["task"], identity["recipe"])

  model = compile_scene(task)
  check_fits(resolved, model, beside=_rollout_bytes_per_env(task, recipe))
  of_networks, of_env = streams(seed, 2)
  torch.manual_seed(of_networks)
  env = Env(
    task,
    open_backend(resolved, model),
    of_env,
    history=recipe.history,
    anneal=recipe.curriculum,
    spread_starts=True,
  )
  folder = new_run_folder(log_dir, task.robot.name, task.name)
  runner = Runner(
    env,
    recipe,
    folder,
    identity,
    sinks=open_sinks(folder, options.logger),
    events=RunEvents(task.events),
  )
  iterations = max_iterations or recipe.max_iterations
  if saved is not None:
    assert checkpoint is not None  # what was saved came from it
    world, why = resume.read(checkpoint, saved["iteration"], resolved.name, resolved.num_envs)
    runner.restore(saved, world)
    print(
      f"resumed {checkpoint} at iteration {runner.next_iteration}; running {iterations} more, "
      f"through {runner.next_iteration + iterations - 1}; "
      + (f"episodes start anew: {why}" if why else "the world goes on where it was")
    )
    for part in ("task", "recipe"):
      for line in differences(saved[part], identity[part]):
        print(f"the checkpoint's {part} was another: {line}")
    print(f"the learning rate goes on from {runner.alg.learning_rate:.1e}, as its optimiser does")
  eased_until = max((row.until_iteration for row in recipe.curriculum.values()), default=0)
  if runner.next_iteration + iterations < eased_until:
    print(
      f"this run ends before iteration {eased_until}, from which on every reward is the task's "
      "own: the policy will have learned on eased ones"
    )
  write_run(
    folder,
    command=command,
    seed=seed,
    num_envs=resolved.num_envs,
    threads=resolved.threads,
    max_iterations=iterations,
    resumed_from=str(checkpoint) if checkpoint else None,
    **identity,
  )
  print(f"run folder: {folder}")
  began = time.time()
  window = None if options.headless else open_window(env)
  stop, failed = StopAsked(), None
  try:
    with stop, TensorBoard(folder, options.tensorboard_port):
      runner.learn(
        iterations,
        stop=lambda: bool(stop),
        after_step=(lambda: window.draw(env)) if window else (lambda: None),
      )
  except BaseException as error:
    failed = f"{type(error).__name__}: {error}"
    raise
  finally:
    if window:
      window.close()
    end = {"stopped_by": stop.signal.name if stop.signal else None, "failed": failed}
    write_summary(folder, _summary(runner, resolved, seed, time.time() - began) | end)
    _farewell(task.name, runner, stop.signal.name if stop.signal else failed)
  return stop.exit_code


def _rollout_bytes_per_env(task: Task, recipe: Recipe) -> int:
  """A generous guess at what learning keeps per env: a rollout's observations, and their copies."""
  rows = [row for group in task.observations.values() for row in group.values()]
  frames = max(row.frames(recipe.history) for row in rows)
  numbers_per_frame = 8 * len(task.robot.joints)
  copies = 3  # as stored, as shuffled into mini-batches, as activations of the first layers
  return 4 * copies * recipe.rollout_steps * frames * numbers_per_frame * len(task.observations)


def _summary(runner: Runner, resolved: Resolved, seed: int, wall_s: float) -> dict[str, Any]:
  log, env = runner.last_log, runner.mjrl_env
  tracking = {
    name: {"reached": log.get(f"Episode_Reward/{name}"), "weight": env.task.rewards[name].weight}
    for name in env.rewards.rows
    if name.startswith("track_")
  }
  return {
    "task": env.task.name,
    "backend": resolved.name,
    "num_envs": resolved.num_envs,
    "seed": seed,
    "iterations": runner.next_iteration,
    "env_steps": runner.env_steps,
    "wall_s": round(wall_s, 1),
    "reward_first": runner.first_reward,
    "reward_last": log.get("Train/mean_reward"),
    "tracking": tracking,
    "eased_rewards": {
      number: {"own": own, "used": used} for number, (own, used) in env.rewards.eased().items()
    },
    "curriculum": {k: v for k, v in log.items() if k.startswith("Curriculum/")},
    "action_std": log.get("Policy/mean_std"),
    "updates_skipped": runner.alg.skipped_updates,
    "lost": {f"{what}; cure: {cure}": count for (what, cure), count in env.lost.items()},
    "checkpoint": runner.newest.name if runner.newest else None,
  }


def _farewell(task: str, runner: Runner, ended_by: str | None) -> None:
  if runner.newest is None:
    print("stopped before the first iteration was done: there is no checkpoint")
    return
  print(f"{f'stopped by {ended_by}' if ended_by else 'done'}: {runner.newest}")
  print(
    "a finished run is not a result; measure it: "
    f"python scripts/play.py --task {task} --headless --measure"
  )
