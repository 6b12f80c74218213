"""A training run from start to end: what `scripts/train.py` does once its flags are understood."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from mjrl.envs.describe import describe, differences
from mjrl.envs.env import Env
from mjrl.envs.recipe import Recipe, for_envs
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Task
from mjrl.learn import checkpoints, resume
from mjrl.learn.distributed import check_alike, from_first, others_reachable, stop_agreed
from mjrl.learn.evaluation import check_best_metric, num_eval_envs, open_evaluation
from mjrl.learn.failures import CHECKPOINT, CONSOLE, SUMMARY
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.moments import RunEvents, check_can_fire
from mjrl.learn.options import Options
from mjrl.learn.profile import Profile, table, write_report
from mjrl.learn.run_config import run_config
from mjrl.learn.run_folder import new_run_folder, write_run, write_summary
from mjrl.learn.runner import Runner
from mjrl.learn.sinks import open_sinks
from mjrl.learn.tensorboard import TensorBoard
from mjrl.sim.memory import check_room
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
  stop: StopAsked,
  overrides: Mapping[str, Any] | None = None,
  run_events: Mapping[str, Any] | None = None,
  departures: Sequence[str] = (),
) -> int:
  """Train, and leave a run folder.

  In a distributed run, every process calls it within `mjrl.learn.distributed.joined`; seed,
  checkpoint, folder and files are the first one's.

  Args:
    task: what to learn.
    resolved: engine, device, env count and threads.
    seed: of networks, exploration and the environment.
    max_iterations: iterations of this run; None for the recipe's.
    checkpoint: to go on from, in a new folder; None starts anew.
    log_dir: root of all runs.
    command: as it was typed, for `run.yaml`.
    options: what is done beside learning.
    stop: asked before anything is written, and between control steps.
    overrides: path to value, of the numbers in `task` that are not its page's own.
    run_events: the events in `task` that are not its page's own, as a configuration writes them.
    departures: each way in which the run differs from the task's page, in words.

  Returns:
    The exit code: 0; 1 if the last checkpoint or the summary could not be written; 128 + the number
    of the signal that stopped it.

  Raises:
    ValueError: the checkpoint is broken or does not fit, the recipe's memory does not go with the
      number of envs, no evaluation could find the best, or an event could never fire; nothing has
      been built by then.
    ConnectionError: another process of the run is gone.
  """
  check_can_fire(task.events, options.eval_every)
  if options.eval_every is not None:
    check_best_metric(task, options.best_metric)
  ranks = resolved.ranks
  if not ranks.first:
    options = Options()
  recipe = for_envs(task.recipes[resolved.backend], resolved.num_envs, ranks.world_size)
  identity = {"task": describe(task), "recipe": describe(recipe), "backend": resolved.name}
  identity["set"] = dict(overrides or {})
  del identity["task"]["recipes"]  # the one that is used stands beside it
  saved = None
  if checkpoint is not None and ranks.first:
    saved = checkpoints.read(checkpoint)
    checkpoints.check_networks(checkpoint, saved, identity["task"], identity["recipe"])
  seed, checkpoint, saved = from_first((seed, checkpoint, saved))
  iterations = max_iterations or recipe.max_iterations
  check_alike(**identity, num_envs=resolved.num_envs, max_iterations=iterations)

  model = compile_scene(task)
  check_room(
    resolved,
    model,
    beside=_rollout_bytes_per_env(task, recipe),
    more_envs=num_eval_envs(options, resolved.num_envs),
  )
  of_networks, of_env, of_evaluation = streams(seed, 3, ranks.rank)
  torch.manual_seed(of_networks)
  env = Env(
    task,
    open_backend(resolved, model),
    of_env,
    history=recipe.history,
    anneal=recipe.curriculum,
    spread_starts=True,
    leads=ranks.first,
  )
  evaluation = open_evaluation(
    task, resolved, model, of_evaluation, history=recipe.history, options=options
  )
  if stop_agreed(stop):
    print("stopped before the run began: no folder was made")
    return stop.exit_code
  folder = from_first(
    new_run_folder(log_dir, task.robot.name, task.name) if ranks.first else log_dir
  )
  config = run_config(
    task=task.name,
    resolved=resolved,
    seed=seed,
    iterations=iterations,
    recurrent=recipe.memory is not None,
    checkpoint=checkpoint,
    options=options,
    overrides=identity["set"],
    run_events=run_events or {},
  )
  record = {
    "command": command,
    "departures": list(departures),
    "processes": ranks.world_size,
    "threads": resolved.threads,
    "torch_threads": resolved.torch_threads,
    "task": identity["task"],
    "recipe": identity["recipe"],
  }
  runner = Runner(
    env,
    recipe,
    folder,
    identity,
    sinks=open_sinks(folder, options.logger, config | record) if ranks.first else [],
    events=RunEvents(task.events),
    ranks=ranks,
    evaluation=evaluation,
    keep_last=options.keep_last,
  )
  if saved is not None:
    assert checkpoint is not None  # what was saved came from it
    world, why = None, f"this run has {ranks.world_size} processes"
    if ranks.alone:
      world, why = resume.read(
        checkpoint,
        saved["iteration"],
        resolved.name,
        resolved.num_envs,
        memory=recipe.memory is not None,
      )
    runner.restore(saved, world)
    print(
      f"resumed {checkpoint} at iteration {runner.next_iteration}; running {iterations} more, "
      f"through {runner.next_iteration + iterations - 1}; "
      + (f"episodes start anew: {why}" if why else "the world goes on where it was")
    )
    for part in ("task", "recipe"):
      for line in differences(saved[part], identity[part]):
        print(f"the checkpoint's {part} was another: {line}")
    if saved.get("best") and not runner.best:
      print("the best evaluation is looked for anew: the one before was of another task")
    print(f"the learning rate goes on from {runner.alg.learning_rate:.1e}, as its optimiser does")
  eased_until = max((row.until_iteration for row in recipe.curriculum.values()), default=0)
  if runner.next_iteration + iterations < eased_until:
    print(
      f"this run ends before iteration {eased_until}, from which on every reward is the task's "
      "own: the policy will have learned on eased ones"
    )
  if ranks.first:
    write_run(folder, config, record)
  print(f"run folder: {folder}")
  profile = Profile(env.device) if options.profile else None
  if profile:
    profile.attach(runner)
  began = time.time()
  window = None if options.headless else open_window(env)
  failed = None
  try:
    with TensorBoard(folder, options.tensorboard_port), others_reachable():
      runner.learn(
        iterations,
        stop=lambda: bool(stop),
        after_step=(lambda: window.draw(env)) if window else (lambda: None),
        agreed=None if ranks.alone else lambda: stop_agreed(stop),
      )
  except BaseException as error:
    failed = f"{type(error).__name__}: {error}"
    raise
  finally:
    if profile:
      profile.end()
    if window:
      window.close()
    end = {"stopped_by": stop.signal.name if stop.signal else None, "failed": failed}
    if ranks.first:
      summary = _summary(runner, resolved, seed, time.time() - began)
      with runner.failures.survived(SUMMARY):
        write_summary(folder, summary | {"departures": list(departures)} | end)
    with runner.failures.survived(CONSOLE):
      _farewell(task.name, runner, stop.signal.name if stop.signal else failed)
      if profile:
        _show_profile(profile, options.profile_output)
  return runner.failures.exit_code or stop.exit_code


def _rollout_bytes_per_env(task: Task, recipe: Recipe) -> int:
  """A generous guess at what learning keeps per env: a rollout's observations, and their copies."""
  rows = [row for group in task.observations.values() for row in group.values()]
  frames = max(row.frames(recipe.history) for row in rows)
  numbers_per_frame = 8 * len(task.robot.joints)
  copies = 3  # as stored, as shuffled into mini-batches, as activations of the first layers
  numbers = frames * numbers_per_frame + (recipe.memory.numbers if recipe.memory else 0)
  return 4 * copies * recipe.rollout_steps * numbers * len(task.observations)


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
    "processes": resolved.ranks.world_size,
    "num_envs": resolved.num_envs,
    "memory": describe(runner.recipe.memory),
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
    "evaluation": {k: v for k, v in log.items() if k.startswith("eval/")},
    "action_std": log.get("Policy/mean_std"),
    "updates_skipped": runner.alg.skipped_updates,
    "file_failures": dict(runner.failures.counts),
    "lost": {f"{what}; cure: {cure}": count for (what, cure), count in env.lost.items()},
    "checkpoint": runner.newest.name if runner.newest else None,
    "best": runner.best,
  }


def _show_profile(profile: Profile, path: Path | None) -> None:
  report = profile.report()
  print(table(report))
  if path is not None:
    write_report(path, report)
    print(f"profile: {path}")


def _farewell(task: str, runner: Runner, ended_by: str | None) -> None:
  if CHECKPOINT in runner.failures.open:
    whole = f"the newest whole one is {runner.newest}" if runner.newest else "there is none"
    print(f"the last checkpoint could not be written; {whole}")
    return
  if runner.newest is None:
    print("stopped before the first iteration was done: there is no checkpoint")
    return
  print(f"{f'stopped by {ended_by}' if ended_by else 'done'}: {runner.newest}")
  if runner.best:
    print("best: {metric} {value:.4g} at iteration {iteration}".format(**runner.best))
  print(
    "a finished run is not a result; measure it: "
    f"python scripts/play.py --task {task} --headless --measure"
  )
