"""From a command line and a configuration to a training run: all that can be refused, is here."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mjrl import tasks
from mjrl.cli.changes import Changed, Layer, change, inherited, parse_sets
from mjrl.cli.config import Config
from mjrl.cli.flags import TrainFlags, check
from mjrl.cli.prepare import Plan, prepare, start_torch
from mjrl.cli.run_events import with_run_events
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.learn import checkpoints
from mjrl.learn.options import Options
from mjrl.learn.run_config import full_length

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
  changed     the task with its overrides and events, and what they change
  """

  flags: TrainFlags
  sources: Mapping[str, str]
  config: Config
  plan: Plan
  checkpoint: Path | None
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
    resolved, found = self.plan.resolved, []
    usual = self.plan.entry.num_envs.get(resolved.backend)
    if usual is not None and resolved.num_envs != usual:
      found.append(
        f"num_envs {resolved.num_envs}, the task's {resolved.backend} recipe has {usual}"
      )
    recipe = self.changed.task.recipes[resolved.backend]
    whole, asked = full_length(recipe, resolved.num_envs), self.flags.max_iterations
    if asked not in (None, whole):
      found.append(f"max_iterations {asked}, a whole run has {whole}")
    rows = self.config.events.items()
    added = [
      f"events.{name}: {row['call']} at {row['when']} (events in {self.config.name})"
      for name, row in rows
    ]
    return [*found, *self.changed.departures, *added]


def plan_run(flags: TrainFlags, argv: Sequence[str], config: Config) -> PlannedRun:
  """Check everything about a run that can be checked without building it.

  Args:
    flags: as parsed from argv.
    argv: the command line.
    config: the configuration file's content.

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
  plan = prepare(flags, sources, flags.num_envs, None)
  checkpoint = saved = None
  if flags.resume or flags.checkpoint is not None:
    checkpoint = checkpoints.find(plan.log_dir, plan.entry.robot, plan.task, flags.checkpoint)
  start_torch(plan.resolved.torch_threads)  # first of all that loads it
  from mjrl.learn.moments import check_can_fire

  if checkpoint is not None:
    saved = checkpoints.read(checkpoint)
  engine = plan.resolved.backend
  layers = (
    inherited(saved, engine),
    Layer(source=f"set in {config.name}", values=config.overrides),
    Layer(source="--set", values=parse_sets(flags.set)),
  )
  changed = change(tasks.build(plan.task), engine, layers, _restored(saved))
  task = with_run_events(changed.task, config.events, config.name)
  check_can_fire(task.events, flags.eval_every)
  return PlannedRun(
    flags=flags,
    sources=sources,
    config=config,
    plan=plan,
    checkpoint=checkpoint,
    changed=replace(changed, task=task),
  )


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
