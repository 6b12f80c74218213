"""The play command."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mjrl import tasks
from mjrl.cli.banner import banner
from mjrl.cli.flags import PlayFlags, check, parse
from mjrl.cli.listing import task_table
from mjrl.cli.prepare import prepare, start_torch, without_traceback
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.learn import checkpoints

SETTINGS = {
  "task": "MJRL_TASK",
  "num_envs": "MJRL_PLAY_NUM_ENVS",
  "backend": "MJRL_BACKEND",
  "device": "MJRL_DEVICE",
  "cpu_threads": "MJRL_CPU_THREADS",
  "log_dir": "MJRL_LOG_DIR",
  "seed": "MJRL_SEED",
}

NUM_ENVS = 1
MEASURED_NUM_ENVS = 64


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, print the banner, replay. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(PlayFlags, "play.py", argv)
  if flags.list:
    print(task_table(tasks.TASKS))
    return 0
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: PlayFlags, argv: Sequence[str]) -> int:
  settings = read_settings(Path.cwd(), os.environ)
  flags, sources = apply_settings(flags, argv, SETTINGS, settings)
  check(flags, sources)
  num_envs = MEASURED_NUM_ENVS if flags.measure else NUM_ENVS
  plan = prepare(flags, sources, flags.num_envs, {"native": num_envs, "warp": num_envs})
  checkpoint = _find_checkpoint(flags, plan.log_dir, plan.entry.robot, plan.task)
  print(
    banner(
      title="mjrl play",
      task=plan.task,
      robot=plan.entry.robot,
      resolved=plan.resolved,
      sources=sources,
      seed=plan.seed,
      log_dir=plan.log_dir / plan.entry.robot / plan.task,
      checkpoint=str(checkpoint) if checkpoint else f"none: the agent is {flags.agent}",
      window=plan.window,
      departures="; ".join(_departures(flags)) or "none asked for",
    ),
    flush=True,
  )
  if flags.dry_run:
    print("dry run: nothing was built")
    return 0
  start_torch(plan.resolved.torch_threads)
  from mjrl.measure.play import play

  return play(
    task=tasks.build(plan.task),
    resolved=plan.resolved,
    seed=plan.seed,
    agent=flags.agent,
    checkpoint=checkpoint,
    steps=flags.steps,
    speed=flags.speed,
    command=flags.command,
    obs_noise=flags.obs_noise,
    physics_hz=flags.physics_hz,
    measure=flags.measure,
    headless=plan.headless,
  )


def _find_checkpoint(flags: PlayFlags, log_dir: Path, robot: str, task: str) -> Path | None:
  if flags.agent == "trained":
    return checkpoints.find(log_dir, robot, task, flags.checkpoint)
  if flags.checkpoint is not None:
    raise ValueError(
      f"--checkpoint has no effect with --agent {flags.agent}: leave one of the two out"
    )
  return None


def _departures(flags: PlayFlags) -> list[str]:
  """The ways in which the replay differs from training that the flags ask for."""
  found = []
  if flags.agent != "trained":
    found.append(f"{flags.agent} actions")
  if flags.command is not None:
    found.append("command {:g} m/s forward, {:g} m/s left, {:g} rad/s".format(*flags.command))
  if not flags.obs_noise:
    found.append("no observation noise")
  if flags.physics_hz is not None:
    found.append(f"physics at {flags.physics_hz:g} Hz")
  return found
