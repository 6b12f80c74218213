"""The play command."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mjrl import tasks
from mjrl.cli.banner import banner
from mjrl.cli.changes import Changed, Layer, change, checkpoint_layer, parse_sets, said, scene_layer
from mjrl.cli.config import Config, read_config
from mjrl.cli.flags import PlayFlags, check, parse
from mjrl.cli.listing import scene_table, task_table
from mjrl.cli.prepare import plan_shared, said_scene, start_torch, without_traceback
from mjrl.cli.settings import apply_settings, read_settings
from mjrl.cli.terrain import terrain_layers
from mjrl.envs.task import Task
from mjrl.learn import checkpoints
from mjrl.sim.resolve import resolve_other
from mjrl.view.offscreen import find_library
from mjrl.view.shot import SECONDS, Shot, shot

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
    print(f"{task_table(tasks.TASKS)}\n\n{scene_table()}")
    return 0
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: PlayFlags, argv: Sequence[str]) -> int:
  config = read_config(flags.config, PlayFlags)
  settings = read_settings(Path.cwd(), os.environ)
  flags, sources = apply_settings(flags, argv, SETTINGS, settings, config.settings())
  check(flags, sources)
  num_envs = MEASURED_NUM_ENVS if flags.measure else NUM_ENVS
  shared = plan_shared(flags, sources, flags.num_envs, {"native": num_envs, "warp": num_envs})
  other = flags.compare_backend
  compared = resolve_other(other, shared.resolved, flags.cpu_threads) if other else None
  checkpoint = _find_checkpoint(flags, shared.log_dir, shared.entry.robot, shared.task)
  start_torch(shared.resolved.torch_threads)
  changed = _changed(flags, sources, config, shared.task, checkpoint)
  film = _film(flags, changed.task)
  library, drawn_by = find_library(sys.platform, os.environ) if film else ("", "")
  loaded = str(checkpoint) if checkpoint else f"none: the agent is {flags.agent}"
  if changed.inherited:
    loaded += f"; set by the checkpoint's run: {said(changed.inherited)}"
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
      viewer=shared.viewer_said,
      scene=said_scene(changed.task.scene, shared.entry.robot),
      video=_said(film, flags.steps, f"{library}, {drawn_by}") if film else "",
      departures="; ".join([*_departures(flags), *changed.departures]) or "none asked for",
      compared=compared,
    ),
    flush=True,
  )
  if flags.dry_run:
    print("dry run: nothing was built")
    return 0
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
    posture=flags.posture,
    obs_noise=flags.obs_noise,
    physics_hz=flags.physics_hz,
    measure=flags.measure,
    film=film,
    library=library,
    viewer=shared.viewer,
  )


def _changed(
  flags: PlayFlags,
  sources: Mapping[str, str],
  config: Config,
  name: str,
  checkpoint: Path | None,
) -> Changed:
  """The task that the policy was trained in, with what the replay sets on top."""
  from mjrl.measure.replayed import check_policy, check_posture, unused

  task = tasks.build(name)
  bare = replace(task, recipes={})  # the policy's own is in its checkpoint
  saved = checkpoints.read(checkpoint) if checkpoint else None
  sets = parse_sets(flags.set)
  layers = (
    checkpoint_layer(saved, engine=""),
    scene_layer(flags.scene, sources),
    Layer(source=f"set in {config.name}", values=config.overrides),
    Layer(source="--set", values=sets),
    *terrain_layers(flags, sources, sets, task),
  )
  given = {"obs_noise": flags.obs_noise, "physics_hz": flags.physics_hz}
  held = flags.command is not None
  changed = change(bare, "", layers, lambda path, _: unused(task, path, held=held, **given))
  if flags.posture is not None:
    command = (0.0, 0.0, 0.0) if flags.measure and not held else flags.command
    check_posture(changed.task, flags.posture, command)
  if checkpoint and saved:
    check_policy(checkpoint, saved, changed.task)
  return changed


def _film(flags: PlayFlags, task: Task) -> Shot | None:
  """The film that was asked for.

  Raises:
    ValueError: it cannot be.
  """
  if flags.video is None:
    return None
  if flags.measure:
    raise ValueError(
      "--video and --measure do not go together: a measurement starts 64 robots anew for each "
      "command; film one with --command"
    )
  hz = 1 / task.control_dt_s
  return shot(flags.video, flags.video_size, flags.video_fps, flags.video_camera, hz)


def _said(film: Shot, steps: int | None, drawn_by: str) -> str:
  length = f"{steps} control steps" if steps else f"{SECONDS:g} s (--steps)"
  return (
    f"{film.path}, {length} at {film.fps:g} frames/s, {film.width}x{film.height} px, seen from "
    f"{film.camera}; drawn by {drawn_by}"
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
  if flags.posture is not None:
    found.append(
      "posture {:g} rad of twist, {:g} of pitch, {:g} of roll, {:g} m".format(*flags.posture)
    )
  if not flags.obs_noise:
    found.append("no observation noise")
  if flags.physics_hz is not None:
    found.append(f"physics at {flags.physics_hz:g} Hz")
  return found
