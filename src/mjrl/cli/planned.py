"""From a command line and a configuration to a training run: all that can be refused, is here."""

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mjrl import tasks
from mjrl.cli.changes import Changed, Layer, change, checkpoint_layer, parse_sets, scene_layer
from mjrl.cli.config import Config
from mjrl.cli.flags import TrainFlags, check
from mjrl.cli.learning import learning_layers
from mjrl.cli.prepare import SharedPlan, plan_shared, start_torch
from mjrl.cli.run_events import with_run_events
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.cli.terrain import terrain_layers
from mjrl.envs.describe import describe
from mjrl.envs.recipe import RECURRENT, Memory, Recipe, for_envs, with_memory
from mjrl.envs.scenes import is_package
from mjrl.envs.task import Task
from mjrl.envs.typed import shown
from mjrl.learn import checkpoints
from mjrl.learn.options import Options
from mjrl.sim.ranks import ALONE, Ranks
from mjrl.view.offscreen import find_library

SETTINGS = {
  "task": "MJRL_TASK",
  "num_envs": "MJRL_NUM_ENVS",
  "backend": "MJRL_BACKEND",
  "device": "MJRL_DEVICE",
  "cpu_threads": "MJRL_CPU_THREADS",
  "log_dir": "MJRL_LOG_DIR",
  "seed": "MJRL_SEED",
  "tensorboard": "MJRL_TENSORBOARD",
  "tb_port": "MJRL_TB_PORT",
}


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
  """A run that has been checked, and not yet been built.

  flags       with settings and configuration applied
  sources     flag to where its value came from
  config      the configuration file's content
  shared      engine, counts, folders
  checkpoint  to go on from
  init_from   checkpoint to take the networks of, and nothing else
  library     that draws films, see `mjrl.view.offscreen`; "" where none are made
  changed     the task with its recipe for this run, overrides and events, and what they change
  """

  flags: TrainFlags
  sources: Mapping[str, str]
  config: Config
  shared: SharedPlan
  checkpoint: Path | None
  init_from: Path | None
  library: str
  changed: Changed

  @property
  def options(self) -> Options:
    """What the run does beside learning."""
    flags = self.flags
    return Options(
      eval_every=flags.eval_every,
      num_eval_episodes=flags.num_eval_episodes,
      best_metric=flags.best_metric,
      video_every=flags.video_every,
      video_library=self.library,
      keep_last=flags.keep_last,
      logger=flags.logger,
      tensorboard_port=flags.tb_port if flags.tensorboard else None,
      viewer=self.shared.viewer,
      profile=flags.profile,
      profile_output=flags.profile_output,
    )

  @property
  def departures(self) -> list[str]:
    """Every way in which the run differs from what the task's page says."""
    resolved, asked = self.shared.resolved, self.flags.max_iterations
    found = []
    if not resolved.ranks.alone:
      found.append(f"{resolved.ranks.world_size} processes of {resolved.num_envs} envs each")
    if asked not in (None, self.changed.task.recipes[resolved.backend].max_iterations):
      found.append(f"max_iterations {asked}")
    added = [
      f"events.{name}: {row['call']} at {row['when']} (events in {self.config.name})"
      for name, row in self.config.events.items()
    ]
    return [*self.changed.departures, *found, *added]


def plan_run(
  flags: TrainFlags, argv: Sequence[str], config: Config, ranks: Ranks = ALONE
) -> PlannedRun:
  """Check everything about a run that can be checked without building it.

  Args:
    flags: as parsed from argv.
    argv: the command line.
    config: the configuration file's content.
    ranks: which process of a distributed run this is.

  Raises:
    ValueError: a value that no run could use, or that would do nothing.
    BackendUnavailable: see mjrl.sim.resolve.
    FileNotFoundError: there is no checkpoint to go on from.
  """
  settings = read_settings(Path.cwd(), os.environ)
  flags, sources = apply_settings(flags, argv, SETTINGS, settings, config.settings())
  if sources.get("resume") == "given" and sources.get("checkpoint") != "given":
    flags = replace(flags, checkpoint=None)  # --resume was typed, the checkpoint is a file's
  check(flags, sources)
  shared = plan_shared(flags, sources, flags.num_envs, None, ranks)
  checkpoint = init_from = saved = None
  resumes = flags.resume or flags.checkpoint is not None
  if flags.init_from is not None:
    if resumes:
      raise ValueError(
        "--init_from starts a run, and --resume or --checkpoint goes on with one; give one of them"
      )
    init_from = checkpoints.find(shared.log_dir, shared.entry.robot, shared.task, flags.init_from)
  if resumes:
    checkpoint = checkpoints.find(shared.log_dir, shared.entry.robot, shared.task, flags.checkpoint)
  _check_wandb(flags)
  start_torch(shared.resolved.torch_threads)  # first of all that loads it
  from mjrl.learn.evaluation import check_evaluation

  if checkpoint is not None:
    saved = checkpoints.read(checkpoint)
  engine = shared.resolved.backend
  sets = parse_sets(flags.set)
  layers = [
    checkpoint_layer(saved, engine),
    scene_layer(flags.scene, sources),
    Layer(source=f"set in {config.name}", values=config.overrides),
    Layer(source="--set", values=sets),
  ]
  page = tasks.build(shared.task)
  own = _recipe(page, engine)
  memory = _memory(own, flags, config, saved)
  recipe = for_envs(replace(own, memory=None), shared.resolved.num_envs, ranks.world_size)
  recipe = with_memory(recipe, memory) if memory else recipe
  task = replace(page, recipes={**page.recipes, engine: recipe})
  layers += learning_layers(flags, sources, recipe, sets)
  layers += terrain_layers(flags, sources, sets, page)
  changed = change(task, engine, layers, _without_effect(saved, flags), page)
  if is_package(changed.task.scene):
    raise ValueError(
      f"scene {changed.task.scene}: policies are not trained in scene packages, since a package is "
      "one world with one place to start; replay in it, with play.py --scene"
    )
  if checkpoint is not None and saved is not None:
    of_run = describe(changed.task.recipes[engine])
    checkpoints.check_networks(checkpoint, saved, describe(changed.task), of_run)
  _check_learnable(changed.task, engine, init_from)
  task = with_run_events(changed.task, config.events, config.name)
  check_evaluation(
    task,
    flags.eval_every,
    flags.best_metric,
    first=saved["iteration"] + 1 if saved else 0,
    iterations=flags.max_iterations or task.recipes[engine].max_iterations,
  )
  films = flags.video_every is not None and ranks.first
  return PlannedRun(
    flags=flags,
    sources=sources,
    config=config,
    shared=shared,
    checkpoint=checkpoint,
    init_from=init_from,
    library=find_library(sys.platform, os.environ)[0] if films else "",
    changed=replace(changed, task=task),
  )


def _check_learnable(task: Task, engine: str, init_from: Path | None) -> None:
  """Refuse a mirror that the task has not, and networks that are not this task's."""
  recipe = task.recipes[engine]
  if recipe.mirror_augmentation or recipe.mirror_coef > 0:
    from mjrl.envs.mirror import check_mirror

    check_mirror(task)
  if init_from is not None:
    described, saved = describe(task), checkpoints.read(init_from)
    checkpoints.check_networks(init_from, saved, described, describe(recipe), any_task=True)


def _recipe(task: Task, engine: str) -> Recipe:
  """The task's recipe for an engine.

  Raises:
    ValueError: there is none.
  """
  if engine not in task.recipes:
    raise ValueError(
      f"{task.name} has no recipe for {engine}; choose --backend {' or '.join(task.recipes)}"
    )
  return task.recipes[engine]


def _memory(
  recipe: Recipe, flags: TrainFlags, config: Config, saved: Mapping[str, Any] | None
) -> Memory | None:
  """What the networks remember with: as they were trained, else the recipe's, else --recurrent's.

  A run.yaml says `recurrent` of every run with a memory, whoever gave it: there, and on top of a
  checkpoint with a memory, the flag repeats what is.

  Raises:
    ValueError: --recurrent, and the recipe has a memory of another kind.
  """
  trained = (saved or {}).get("recipe", {}).get("memory")
  if trained is not None:
    return Memory(**trained)
  if not flags.recurrent or recipe.memory == RECURRENT:
    return recipe.memory
  if recipe.memory is None:
    return RECURRENT
  if not config.record:
    raise ValueError(
      f"--recurrent has no effect: the recipe has a memory, {shown(recipe.memory)}; leave it out, "
      "or change that one, as by --set recipe.memory.hidden=32"
    )
  return recipe.memory


def _without_effect(
  saved: Mapping[str, Any] | None, flags: TrainFlags
) -> Callable[[str, Any], str]:
  """Refuses numbers that a resumed run starts from no more, and those that this run never reads."""

  def refuse(path: str, value: Any) -> str:
    match path.split("."):
      case ["success", *_] if flags.eval_every is None:
        return "has no effect: nothing is evaluated; give --eval_every N or leave it out"
      case ["recipe", "memory"] if flags.recurrent and value is None:
        return "takes away what --recurrent gives; leave one out"
    return _restored(saved, path, value) if saved else ""

  return refuse


def _restored(saved: Mapping[str, Any], path: str, value: Any) -> str:
  """Why a number has no effect of which the checkpoint has a later state; "" if it has one."""
  match path.split("."):
    case ["recipe", "learning_rate" | "init_std" as name]:
      then = saved["recipe"][name]
    case ["recipe", "curriculum", name, "initial"] if name in saved["curriculum"]:
      then = saved["recipe"]["curriculum"].get(name, {}).get("initial")
    case _:
      return ""
  return "" if value == then else "has no effect: the run goes on from what its checkpoint has"


def _check_wandb(flags: TrainFlags) -> None:
  """Refuse a logger that is not there: the run would find out when it has been built."""
  found = importlib.util.find_spec("wandb")
  # One without an origin is some folder that is called wandb.
  if flags.logger == "wandb" and (found is None or found.origin is None):
    raise ValueError(
      "--logger wandb needs the package wandb, which is not installed: "
      "pip install 'mjrl[wandb]', or in a checkout pip install -e '.[wandb]'"
    )
