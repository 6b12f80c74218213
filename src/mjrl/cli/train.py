"""The train command."""

import os
import shlex
import sys
from collections.abc import Sequence

from mjrl import tasks, yaml_text
from mjrl.cli.banner import banner
from mjrl.cli.changes import said
from mjrl.cli.config import read_config
from mjrl.cli.flags import TrainFlags, parse
from mjrl.cli.listing import scene_table, task_table
from mjrl.cli.planned import PlannedRun, plan_run
from mjrl.cli.prepare import said_once, said_scene, without_traceback
from mjrl.cli.recorded import since
from mjrl.cli.sweep import sweep
from mjrl.envs.describe import describe
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.run_config import run_config
from mjrl.sim.ranks import Ranks


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, print the banner, train. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(TrainFlags, "train.py", argv)
  if flags.list:
    print(f"{task_table(tasks.TASKS)}\n\n{scene_table()}")
    return 0
  return without_traceback(lambda: _as_rank(Ranks.from_environment(os.environ), flags, argv))


def _as_rank(ranks: Ranks, flags: TrainFlags, argv: Sequence[str]) -> int:
  """Run as one of the processes of a run, of which the first speaks for all."""
  after = ("step" if ranks.alone else "iteration") if ranks.first else None
  with said_once(ranks), StopAsked(after) as stop:
    return _run(ranks, flags, argv, stop)


def _run(ranks: Ranks, flags: TrainFlags, argv: Sequence[str], stop: StopAsked) -> int:
  config = read_config(flags.config, TrainFlags)
  if config.sweep:
    if not ranks.alone:
      raise ValueError(
        f"{config.name} is a sweep, of runs one after the other; start it without torchrun, or "
        "give each run a configuration of its own"
      )
    dry_run = flags.dry_run or config.flags.get("dry_run", False)
    return sweep(
      config, argv, dry_run=dry_run, plan=lambda one: plan_run(flags, argv, one), stop=stop
    )
  run = plan_run(flags, argv, config, ranks)
  print(_banner(run), flush=True)
  for line in since(config.record, run.changed.task, run.shared.resolved):
    print(f"{config.name} was of another run, which this one may not repeat: {line}")
  if run.flags.dry_run:
    print(_resolved(run))
    print("dry run: nothing was built")
    return 0
  from mjrl.learn.distributed import joined
  from mjrl.learn.train import train

  together = joined(ranks, run.shared.resolved.device)(train)
  return together(
    task=run.changed.task,
    resolved=run.shared.resolved,
    seed=run.shared.seed,
    max_iterations=run.flags.max_iterations,
    checkpoint=run.checkpoint,
    init_from=run.init_from,
    log_dir=run.shared.log_dir,
    command=shlex.join(["python", sys.argv[0], *argv]),
    options=run.options,
    overrides=run.changed.overrides,
    run_events=config.events,
    departures=run.departures,
    stop=stop,
  )


def _banner(run: PlannedRun) -> str:
  checkpoint = f"resuming from {run.checkpoint}" if run.checkpoint else "none: from scratch"
  if run.init_from:
    checkpoint = f"networks alone, of {run.init_from}"
  if run.changed.inherited:
    checkpoint += f"; set by the checkpoint's run: {said(run.changed.inherited)}"
  shared = run.shared
  return banner(
    title="mjrl train",
    task=shared.task,
    robot=shared.entry.robot,
    resolved=shared.resolved,
    sources=run.sources,
    seed=shared.seed,
    log_dir=shared.log_dir / shared.entry.robot / shared.task,
    checkpoint=checkpoint,
    scene=said_scene(run.changed.task.scene, shared.entry.robot),
    viewer=shared.viewer_said,
    departures="; ".join(run.departures) or "none: as the task says",
  )


def _resolved(run: PlannedRun) -> str:
  """The whole configuration: the settings as `--config` takes them, the recipe, the departures."""
  resolved = run.shared.resolved
  recipe = run.changed.task.recipes[resolved.backend]
  settings = run_config(
    task=run.shared.task,
    resolved=resolved,
    seed=run.shared.seed,
    iterations=run.flags.max_iterations or recipe.max_iterations,
    recurrent=recipe.memory is not None,
    checkpoint=run.checkpoint,
    init_from=run.init_from,
    options=run.options,
    overrides=run.changed.overrides,
    run_events=run.config.events,
  )
  title = f"recipe for {resolved.backend}; its num_envs and max_iterations are those above"
  return "\n".join(
    [
      "settings, as --config takes them",
      *_indented(settings),
      title,
      *_indented(describe(recipe)),
      "departures from the task",
      *(f"  - {line}" for line in run.departures or ["none"]),
    ]
  )


def _indented(value: object) -> list[str]:
  return [f"  {line}" for line in yaml_text.dump(value, inline=True).splitlines()]
