"""The train command."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mjrl import tasks
from mjrl.cli.banner import banner
from mjrl.cli.flags import TrainFlags, check, parse
from mjrl.cli.listing import task_table
from mjrl.cli.prepare import Plan, prepare, start_torch, without_traceback
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.envs.recipe import RECURRENT
from mjrl.learn import checkpoints
from mjrl.learn.options import Options

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


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, print the banner, train. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(TrainFlags, "train.py", argv)
  if flags.list:
    print(task_table(tasks.TASKS))
    return 0
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: TrainFlags, argv: Sequence[str]) -> int:
  settings = read_settings(Path.cwd(), os.environ)
  flags, sources = apply_settings(flags, argv, SETTINGS, settings)
  check(flags, sources)
  plan = prepare(flags, sources, flags.num_envs, None)
  checkpoint = None
  if flags.resume or flags.checkpoint is not None:
    checkpoint = checkpoints.find(plan.log_dir, plan.entry.robot, plan.task, flags.checkpoint)
  print(
    banner(
      title="mjrl train",
      task=plan.task,
      robot=plan.entry.robot,
      resolved=plan.resolved,
      sources=sources,
      seed=plan.seed,
      log_dir=plan.log_dir / plan.entry.robot / plan.task,
      checkpoint=f"resuming from {checkpoint}" if checkpoint else "none: from scratch",
      window=plan.window,
      departures="; ".join(_departures(flags, plan)) or "none: as the task says",
    ),
    flush=True,
  )
  if flags.dry_run:
    print("dry run: nothing was built")
    return 0
  start_torch(plan.resolved.torch_threads)
  from mjrl.learn.train import train

  task = tasks.build(plan.task)
  if flags.recurrent:
    task = _with_memory(task, plan.resolved.backend)
  return train(
    task=task,
    resolved=plan.resolved,
    seed=plan.seed,
    max_iterations=flags.max_iterations,
    checkpoint=checkpoint,
    log_dir=plan.log_dir,
    command=shlex.join(["python", sys.argv[0], *argv]),
    options=Options(
      eval_every=flags.eval_every,
      num_eval_episodes=flags.num_eval_episodes,
      best_metric=flags.best_metric,
      keep_last=flags.keep_last,
      logger=flags.logger,
      tensorboard_port=flags.tb_port if flags.tensorboard else None,
      headless=plan.headless,
      profile=flags.profile,
      profile_output=flags.profile_output,
    ),
  )


def _departures(flags: TrainFlags, plan: Plan) -> list[str]:
  """Every way in which the run differs from what the task says."""
  found = []
  usual = plan.entry.num_envs.get(plan.resolved.backend)
  if usual is not None and plan.resolved.num_envs != usual:
    found.append(
      f"num_envs {plan.resolved.num_envs}, the task's {plan.resolved.backend} recipe has {usual}"
      + (": rollouts are longer instead" if plan.resolved.num_envs < usual else "")
    )
  if flags.recurrent:
    found.append(
      f"recurrent: {RECURRENT.kind} of {RECURRENT.layers} x {RECURRENT.hidden} in policy and critic"
    )
  if flags.max_iterations is not None:
    found.append(f"max_iterations {flags.max_iterations}")
  return found


def _with_memory(task: "Task", backend: str) -> "Task":
  """The task with a recipe whose networks remember."""
  try:
    recipe = replace(task.recipes[backend], memory=RECURRENT)
  except ValueError as error:
    raise ValueError(f"--recurrent with {task.name}'s {backend} recipe: {error}") from None
  return replace(task, recipes={**task.recipes, backend: recipe})
