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
from mjrl.envs.show import TRAINING, open_show
from mjrl.envs.task import Task
from mjrl.learn import checkpoints, resume
from mjrl.learn.distributed import check_alike, from_first, others_reachable, stop_agreed
from mjrl.learn.ending import say_farewell, show_profile, summary
from mjrl.learn.evaluation import Evaluation, check_evaluation, num_eval_envs, open_evaluation
from mjrl.learn.failures import SUMMARY, Failures
from mjrl.learn.films import Films, num_film_envs, open_film_env
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.moments import RunEvents
from mjrl.learn.options import Options
from mjrl.learn.profile import Profile
from mjrl.learn.run_config import run_config
from mjrl.learn.run_folder import new_run_folder, write_run, write_summary
from mjrl.learn.runner import Runner
from mjrl.learn.sinks import open_sinks
from mjrl.learn.tensorboard import TensorBoard
from mjrl.sim.memory import check_room
from mjrl.sim.open import open_backend
from mjrl.sim.resolve import Resolved
from mjrl.sim.seeds import streams


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
  init_from: Path | None = None,
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
    init_from: a checkpoint to take the networks of, alone, where none is gone on from.
    run_events: the events in `task` that are not its page's own, as a configuration writes them.
    departures: each way in which the run differs from the task's page, in words.

  Returns:
    The exit code: 0; 1 if the last checkpoint, the summary or the profile could not be written;
    128 + the number of the signal that stopped it.

  Raises:
    ValueError: the checkpoint is broken or does not fit, the recipe's memory does not go with the
      number of envs, no evaluation would come or could find the best, or an event could never
      fire; nothing has been built by then.
    ConnectionError: another process of the run is gone.
  """
  ranks = resolved.ranks
  recipe = for_envs(task.recipes[resolved.backend], resolved.num_envs, ranks.world_size)
  identity = _identity(task, recipe, resolved, overrides or {})
  saved = _saved(checkpoint, identity) if ranks.first else None
  initial = _saved(init_from, identity, any_task=True) if ranks.first else None
  seed, checkpoint, saved, initial = from_first((seed, checkpoint, saved, initial))
  first = saved["iteration"] + 1 if saved else 0
  iterations = max_iterations or recipe.max_iterations
  check_evaluation(
    task, options.eval_every, options.best_metric, first=first, iterations=iterations
  )
  check_alike(**identity, num_envs=resolved.num_envs, max_iterations=iterations)
  if not ranks.first:
    options = options.without_output()
  env, evaluation, film_env = _build(task, resolved, recipe, seed, options)
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
    init_from=init_from,
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
  failures = Failures()
  if ranks.first:
    write_run(folder, config, record)
  sinks = open_sinks(folder, options.logger, config | record, failures) if ranks.first else []
  runner = Runner(
    env,
    recipe,
    folder,
    identity,
    sinks=sinks,
    events=RunEvents(task.events),
    ranks=ranks,
    evaluation=evaluation,
    films=Films(film_env, folder, options, sinks, failures) if film_env else None,
    keep_last=options.keep_last,
    failures=failures,
  )
  if saved is not None:
    assert checkpoint is not None  # what was saved came from it
    _resume(runner, checkpoint, saved, identity, resolved, iterations)
  if initial is not None:
    runner.start_from(initial)
    print(f"networks of {init_from}, iteration {initial['iteration']}; all else starts anew")
  eased_until = max((row.until_iteration for row in recipe.curriculum.values()), default=0)
  if runner.next_iteration + iterations < eased_until:
    print(
      f"this run ends before iteration {eased_until}, from which on every reward is the task's "
      "own: the policy will have learned on eased ones"
    )
  print(f"run folder: {folder}")
  profile = Profile(env.device) if options.profile else None
  began = time.time()
  failed = None
  try:
    _learn(runner, iterations, options, stop, profile)
  except BaseException as error:
    failed = f"{type(error).__name__}: {error}"
    raise
  finally:
    end = {"stopped_by": stop.signal.name if stop.signal else None, "failed": failed}
    if ranks.first:
      found = summary(runner, resolved, seed, time.time() - began)
      with failures.survived(SUMMARY):
        write_summary(folder, found | {"departures": list(departures)} | end)
    say_farewell(runner, stop.signal.name if stop.signal else failed)
    if profile:
      show_profile(runner, profile, options.profile_output)
  return failures.exit_code or stop.exit_code


def _identity(
  task: Task, recipe: Recipe, resolved: Resolved, overrides: Mapping[str, Any]
) -> dict[str, Any]:
  """What every checkpoint of the run says about it, in plain values."""
  described = describe(task)
  del described["recipes"]  # the one that is used stands beside it
  return {
    "task": described,
    "recipe": describe(recipe),
    "backend": resolved.name,
    "set": dict(overrides),
  }


def _saved(
  checkpoint: Path | None, identity: Mapping[str, Any], *, any_task: bool = False
) -> dict[str, Any] | None:
  """The checkpoint to go on from, or to take the networks of, if there is one; it fits."""
  if checkpoint is None:
    return None
  saved = checkpoints.read(checkpoint)
  checkpoints.check_networks(
    checkpoint, saved, identity["task"], identity["recipe"], any_task=any_task
  )
  return saved


def _build(
  task: Task, resolved: Resolved, recipe: Recipe, seed: int, options: Options
) -> tuple[Env, Evaluation | None, Env | None]:
  """The envs to learn in, to evaluate in, to film; torch's own stream is the networks' from now."""
  model = compile_scene(task)
  check_room(
    resolved,
    model,
    beside=_rollout_bytes_per_env(task, recipe),
    more_envs=num_eval_envs(options, resolved) + num_film_envs(options),
  )
  of_networks, of_env, of_evaluation, of_films = streams(seed, 4, resolved.ranks.rank)
  torch.manual_seed(of_networks)
  env = Env(
    task,
    open_backend(resolved, model),
    of_env,
    history=recipe.history,
    anneal=recipe.curriculum,
    spread_starts=True,
    leads=resolved.ranks.first,
  )
  evaluation = open_evaluation(
    task, resolved, model, of_evaluation, history=recipe.history, options=options
  )
  film_env = open_film_env(task, resolved, model, of_films, history=recipe.history, options=options)
  return env, evaluation, film_env


def _resume(
  runner: Runner,
  checkpoint: Path,
  saved: dict[str, Any],
  identity: Mapping[str, Any],
  resolved: Resolved,
  iterations: int,
) -> None:
  """Go on from a checkpoint, and say how, and from what that is not as it is now."""
  world, why = None, f"this run has {resolved.ranks.world_size} processes"
  if _ground(saved["task"]) != _ground(identity["task"]):
    why = "the ground is another"
  elif resolved.ranks.alone:
    world, why = resume.read(
      checkpoint,
      saved["iteration"],
      resolved.name,
      resolved.num_envs,
      memory=runner.recipe.memory is not None,
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
  if saved.get("best") and not runner.saves.best:
    print("the best evaluation is looked for anew: the one before was of another task")
  print(f"the learning rate goes on from {runner.alg.learning_rate:.1e}, as its optimiser does")


def _ground(task: Mapping[str, Any]) -> dict[str, Any] | None:
  """What robots of a described task walk on; None where it is flat."""
  terrain = task.get("terrain")
  if terrain is None or terrain["ground"] == "flat":
    return None
  return {name: value for name, value in terrain.items() if name != "curriculum"}


def _learn(
  runner: Runner, iterations: int, options: Options, stop: StopAsked, profile: Profile | None
) -> None:
  """The learning itself, shown and timed as the options ask for."""
  if profile:
    profile.attach(runner)
  show = open_show(runner.mjrl_env, options.viewer, TRAINING)
  try:
    with TensorBoard(runner.folder, options.tensorboard_port), others_reachable():
      runner.learn(iterations, stop=stop, after_step=show.step if show else lambda: None)
  finally:
    if profile:
      profile.end()
    if show:
      show.close()


def _rollout_bytes_per_env(task: Task, recipe: Recipe) -> int:
  """A generous guess at what learning keeps per env: a rollout's observations, and their copies."""
  rows = [row for group in task.observations.values() for row in group.values()]
  frames = max(row.frames(recipe.history) for row in rows)
  numbers_per_frame = 8 * len(task.robot.joints)
  copies = 3  # as stored, as shuffled into mini-batches, as activations of the first layers
  numbers = frames * numbers_per_frame + (recipe.memory.numbers if recipe.memory else 0)
  return 4 * copies * recipe.rollout_steps * numbers * len(task.observations)
