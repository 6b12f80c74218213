"""The play command."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mjrl import tasks
from mjrl.cli.banner import banner
from mjrl.cli.changes import Changed, Layer, change, checkpoint_layer, parse_sets, said
from mjrl.cli.config import Config, read_config
from mjrl.cli.evaluation import check_evaluation, plan_evaluation, run_planned
from mjrl.cli.flags import PlayFlags, check, parse
from mjrl.cli.listing import task_table
from mjrl.cli.prepare import plan_shared, start_torch, without_traceback
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.learn import checkpoints
from mjrl.sim.resolve import resolve_other

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
MEASURED_NUM_ENVS, EVALUATED_NUM_ENVS = 64, 200


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, print the banner, replay. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(PlayFlags, "play.py", argv)
  if flags.list:
    print(task_table(tasks.TASKS))
    return 0
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: PlayFlags, argv: Sequence[str]) -> int:
  config = read_config(flags.config, PlayFlags)
  settings = read_settings(Path.cwd(), os.environ)
  flags, sources = apply_settings(flags, argv, SETTINGS, settings, config.settings())
  check(flags, sources)
  evaluates = flags.evaluate or flags.compare is not None
  check_evaluation(flags, sources)
  num_envs = MEASURED_NUM_ENVS if flags.measure else NUM_ENVS
  num_envs = EVALUATED_NUM_ENVS if evaluates else num_envs
  shared = plan_shared(flags, sources, flags.num_envs, {"native": num_envs, "warp": num_envs})
  other = flags.compare_backend
  compared = resolve_other(other, shared.resolved, flags.cpu_threads) if other else None
  checkpoint, rival = _find_checkpoints(flags, shared.log_dir, shared.entry.robot, shared.task)
  start_torch(shared.resolved.torch_threads)
  changed = _changed(flags, config, shared.task, checkpoint)
  evaluation = None
  if evaluates:
    against = _changed(flags, config, shared.task, rival).task if rival else None
    evaluation = plan_evaluation(flags, shared.resolved, changed.task, against)
    shared = replace(shared, resolved=evaluation.resolved)
  loaded = str(checkpoint) if checkpoint else f"none: the agent is {flags.agent}"
  if changed.inherited:
    loaded += f"; set by the checkpoint's run: {said(changed.inherited)}"
  if rival:
    loaded = f"A {loaded}; B {rival}"
  print(
    banner(
      title="mjrl play",
      task=shared.task,
      robot=shared.entry.robot,
      resolved=shared.resolved,
      sources=sources,
      seed=shared.seed,
      log_dir=shared.log_dir / shared.entry.robot / shared.task,
      checkpoint=loaded,
      window=shared.window,
      departures="; ".join([*_departures(flags), *changed.departures]) or "none asked for",
      compared=compared,
    ),
    flush=True,
  )
  if flags.dry_run:
    print("dry run: nothing was built")
    return 0
  if evaluation:
    return run_planned(evaluation, flags, shared, (checkpoint, rival) if rival else (checkpoint,))
  from mjrl.measure.play import play

  return play(
    task=changed.task,
    resolved=shared.resolved,
    compared=compared,
    seed=shared.seed,
    agent=flags.agent,
    checkpoint=checkpoint,
    steps=flags.steps,
    speed=flags.speed,
    command=flags.command,
    obs_noise=flags.obs_noise,
    physics_hz=flags.physics_hz,
    measure=flags.measure,
    headless=shared.headless,
  )


def _changed(flags: PlayFlags, config: Config, name: str, checkpoint: Path | None) -> Changed:
  """The task that the policy was trained in, with what the replay sets on top."""
  from mjrl.measure.replayed import check_policy, unused

  task = tasks.build(name)
  bare = replace(task, recipes={})  # the policy's own is in its checkpoint
  saved = checkpoints.read(checkpoint) if checkpoint else None
  layers = (
    checkpoint_layer(saved, engine=""),
    Layer(source=f"set in {config.name}", values=config.overrides),
    Layer(source="--set", values=parse_sets(flags.set)),
  )
  given = {"obs_noise": flags.obs_noise, "physics_hz": flags.physics_hz}
  given |= {"held": flags.command is not None, "pushes": flags.evaluate or bool(flags.compare)}
  changed = change(bare, "", layers, lambda path, _: unused(task, path, **given))
  if checkpoint and saved:
    check_policy(checkpoint, saved, changed.task)
  return changed


def _find_checkpoints(
  flags: PlayFlags, log_dir: Path, robot: str, task: str
) -> tuple[Path | None, Path | None]:
  """The checkpoint that is replayed, and the one that it is compared with, if there are any."""
  if flags.compare is not None:
    a, b = (checkpoints.find(log_dir, robot, task, given) for given in flags.compare)
    if a == b:
      raise ValueError(f"--compare: both are {a}, and a policy does not differ from itself")
    return a, b
  if flags.agent == "trained":
    return checkpoints.find(log_dir, robot, task, flags.checkpoint), None
  if flags.checkpoint is not None:
    raise ValueError(
      f"--checkpoint has no effect with --agent {flags.agent}: leave one of the two out"
    )
  return None, None


def _departures(flags: PlayFlags) -> list[str]:
  """The ways in which the replay differs from training that the flags ask for."""
  found = []
  if flags.agent != "trained":
    found.append(f"{flags.agent} actions")
  if flags.command is not None:
    found.append("command {:g} m/s forward, {:g} m/s left, {:g} rad/s".format(*flags.command))
  if not flags.obs_noise:
    found.append("no observation noise")
  if flags.evaluate or flags.compare is not None:
    found.append("conditions of an evaluation")
  if flags.physics_hz is not None:
    found.append(f"physics at {flags.physics_hz:g} Hz")
  return found
