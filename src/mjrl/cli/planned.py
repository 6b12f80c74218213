"""From a command line and a configuration to a training run: all that can be refused, is here."""

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mjrl import tasks
from mjrl.cli.changes import Changed, Layer, change, inherited, parse_sets
from mjrl.cli.config import Config
from mjrl.cli.flags import TrainFlags, check
from mjrl.cli.prepare import Plan, prepare, start_torch
from mjrl.cli.run_events import with_run_events
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.envs.describe import describe, differences
from mjrl.envs.recipe import RECURRENT, Memory, Recipe, for_envs, with_memory
from mjrl.learn import checkpoints
from mjrl.learn.options import Options
from mjrl.sim.ranks import ALONE, Ranks
from mjrl.sim.resolve import Resolved

if TYPE_CHECKING:
  from mjrl.envs.task import Task

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
  plan        engine, counts, folders
  checkpoint  to go on from
  scaled      how its recipe differs from the page's, for its number of envs and its memory
  changed     the task with its overrides and events, and what they change
  """

  flags: TrainFlags
  sources: Mapping[str, str]
  config: Config
  plan: Plan
  checkpoint: Path | None
  scaled: tuple[str, ...]
  changed: Changed

  @property
  def options(self) -> Options:
    """What the run does beside learning."""
    flags = self.flags
    return Options(
      eval_every=flags.eval_every,
      num_eval_episodes=flags.num_eval_episodes,
      best_metric=flags.best_metric,
      keep_last=flags.keep_last,
      logger=flags.logger,
      tensorboard_port=flags.tb_port if flags.tensorboard else None,
      headless=self.plan.headless,
      profile=flags.profile,
      profile_output=flags.profile_output,
    )

  @property
  def departures(self) -> list[str]:
    """Every way in which the run differs from what the task's page says."""
    asked, found = self.flags.max_iterations, list(self.scaled)
    resolved = self.plan.resolved
    if not resolved.ranks.alone:
      found.append(f"{resolved.ranks.world_size} processes of {resolved.num_envs} envs each")
    if (
      asked is not None
      and asked != self.changed.task.recipes[self.plan.resolved.backend].max_iterations
    ):
      found.append(f"max_iterations {asked}")
    added = [
      f"events.{name}: {row['call']} at {row['when']} (events in {self.config.name})"
      for name, row in self.config.events.items()
    ]
    return [*found, *self.changed.departures, *added]


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
  plan = prepare(flags, sources, flags.num_envs, None, ranks)
  checkpoint = saved = None
  if flags.resume or flags.checkpoint is not None:
    checkpoint = checkpoints.find(plan.log_dir, plan.entry.robot, plan.task, flags.checkpoint)
  _check_wandb(flags)
  start_torch(plan.resolved.torch_threads)  # first of all that loads it
  from mjrl.learn.evaluation import check_evaluation

  if checkpoint is not None:
    saved = checkpoints.read(checkpoint)
  engine = plan.resolved.backend
  layers = (
    inherited(saved, engine),
    Layer(source=f"set in {config.name}", values=config.overrides),
    Layer(source="--set", values=parse_sets(flags.set)),
  )
  page = tasks.build(plan.task)
  of_page = _recipe(page, engine)
  recipe = _scaled(of_page, plan.resolved, flags.recurrent, saved)
  scaled = replace(page, recipes={**page.recipes, engine: recipe})
  changed = change(scaled, engine, layers, _restored(saved))
  task = with_run_events(changed.task, config.events, config.name)
  check_evaluation(
    task,
    flags.eval_every,
    flags.best_metric,
    first=saved["iteration"] + 1 if saved else 0,
    iterations=flags.max_iterations or task.recipes[engine].max_iterations,
  )
  return PlannedRun(
    flags=flags,
    sources=sources,
    config=config,
    plan=plan,
    checkpoint=checkpoint,
    scaled=tuple(differences(describe(of_page), describe(recipe), "recipe")),
    changed=replace(changed, task=task),
  )


def _recipe(task: "Task", engine: str) -> Recipe:
  """The task's recipe for an engine.

  Raises:
    ValueError: there is none.
  """
  if engine not in task.recipes:
    raise ValueError(
      f"{task.name} has no recipe for {engine}; choose --backend {' or '.join(task.recipes)}"
    )
  return task.recipes[engine]


def _scaled(
  recipe: Recipe, resolved: Resolved, recurrent: bool, saved: Mapping[str, Any] | None
) -> Recipe:
  """The recipe for this number of envs, with the memory that is asked for or that was trained."""
  processes = resolved.ranks.world_size
  scaled = for_envs(replace(recipe, memory=None), resolved.num_envs, processes)
  memory = recipe.memory
  if recurrent:
    memory = memory or RECURRENT
  trained = (saved or {}).get("recipe", {}).get("memory")
  if trained is not None:
    memory = Memory(**trained)
  return with_memory(scaled, memory) if memory else scaled


def _restored(saved: Mapping[str, Any] | None) -> Callable[[str, Any], str]:
  """Refuses numbers of which a resumed run has a later state than the one they start from."""

  def refuse(path: str, value: Any) -> str:
    if saved is None:
      return ""
    match path.split("."):
      case ["recipe", "learning_rate" | "init_std" as name]:
        then = saved["recipe"][name]
      case ["recipe", "curriculum", name, "initial"] if name in saved["curriculum"]:
        then = saved["recipe"]["curriculum"].get(name, {}).get("initial")
      case _:
        return ""
    return "" if value == then else "has no effect: the run goes on from what its checkpoint has"

  return refuse


def _check_wandb(flags: TrainFlags) -> None:
  """Refuse a logger that is not there: the run would find out when it has been built."""
  found = importlib.util.find_spec("wandb")
  # One without an origin is some folder that is called wandb.
  if flags.logger == "wandb" and (found is None or found.origin is None):
    raise ValueError(
      "--logger wandb needs the package wandb, which is not installed: "
      "pip install 'mjrl[wandb]', or in a checkout pip install -e '.[wandb]'"
    )
