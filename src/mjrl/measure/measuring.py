"""Replaying to measure: hold a series of commands, record, work out figures, and write them."""

import sys
from pathlib import Path

import torch
from torch import Tensor

from mjrl.envs.env import Env
from mjrl.envs.policy import advance, begin
from mjrl.envs.postures import posture_of
from mjrl.envs.scenes import physics_of
from mjrl.envs.show import Show
from mjrl.measure.figures import segment_figures
from mjrl.measure.files import write_csv, write_json
from mjrl.measure.gait_figures import clock
from mjrl.measure.measured import Circumstances, Measured, MeasuredSegment
from mjrl.measure.pace import Pace, StatusLine
from mjrl.measure.record import Recorder, Recording, columns
from mjrl.measure.replay import Replay
from mjrl.measure.series import Posture, Segment, segment, standard_series
from mjrl.sim.versions import PACKAGES, WARP_PACKAGES, versions_of

SETTLE_S = 1.0
SEGMENT_S = 20.0


def measure_replay(
  replay: Replay,
  command: tuple[float, float, float] | None,
  posture: Posture | None,
  steps: int | None,
  speed: float,
  show: Show | None,
) -> Measured:
  """Measure the command and the posture, or the standard series.

  Of the two, what is not given is standing, and level.

  Raises:
    ValueError: the segments are too short for anything to count.
  """
  env = replay.env
  steps = checked_steps(steps, SEGMENT_S, env.dt_s)
  series = _series(env, command, posture)
  about = circumstances(replay)
  status = StatusLine(pace := Pace(speed, env.dt_s), env.dt_s)
  segments = []
  try:
    for held in series:
      commands = torch.tensor([held.command]).repeat(env.num_envs, 1)
      recording = record(
        replay, commands, held.name, steps, pace, status, show, posture=held.posture
      )
      segments.append(measured_segment(replay, about, held, recording))
  finally:
    status.end()
  model = env.backend.model
  return Measured(
    circumstances=about,
    joints=env.robot.joints,
    feet=env.robot.feet,
    joint_range_rad={j: tuple(model.joint(j).range.tolist()) for j in env.robot.joints},
    columns=columns(env.robot.joints, env.robot.feet, **_parts(env)),
    segments=tuple(segments),
  )


def _series(
  env: Env, command: tuple[float, float, float] | None, posture: Posture | None
) -> tuple[Segment, ...]:
  """What is held, one after the other."""
  body = posture_of(env.asked)
  home_height_m = env.robot.home_height_m
  if command is None and posture is None:
    return standard_series(env.commands.spec, body.spec if body else None, home_height_m)
  level = (0.0, 0.0, 0.0, home_height_m) if body else None
  return (segment(command or (0.0, 0.0, 0.0), posture or level, home_height_m),)


def _parts(env: Env) -> dict[str, bool]:
  """Which parts of a recording the task has."""
  return {"clocked": env.task.gait is not None, "postured": posture_of(env.asked) is not None}


def checked_steps(steps: int | None, default_s: float, dt_s: float) -> int:
  """Control steps of a command: those that were asked for, or default_s of them.

  Raises:
    ValueError: too few for anything to count.
  """
  steps = round(default_s / dt_s) if steps is None else steps
  least = round(SETTLE_S / dt_s) + 2
  if steps < least:
    raise ValueError(
      f"--steps is {steps}, {steps * dt_s:g} s: the first {SETTLE_S:g} s of a command do not "
      f"count, so that measuring takes at least {least}"
    )
  return steps


def record(
  replay: Replay,
  commands: Tensor,
  note: str,
  steps: int,
  pace: Pace,
  status: StatusLine,
  show: Show | None,
  *,
  posture: Posture | None = None,
) -> Recording:
  """Start every env anew, hold a command in each for so many control steps, and record.

  Args:
    replay: what is driven.
    commands: of each env, (N, 3).
    note: for the status line.
    steps: control steps.
    pace: of the replay.
    status: line to keep up to date.
    show: to look at it with.
    posture: of every env's body, where the task asks for postures.
  """
  env = replay.env
  env.commands.fix(commands.to(env.device))
  if (body := posture_of(env.asked)) and posture is not None:
    body.fix(torch.tensor(posture).repeat(env.num_envs, 1))
  observations = begin(env, replay.policy)
  recorder = Recorder(steps, env.dt_s, **_parts(env))
  asked = commands.mean(0).tolist()
  for _ in range(steps):
    step = advance(env, replay.policy, observations)
    observations = step.observations
    recorder.add(step)
    if show:
      show.step((("command", f"{note}; measuring, so that nothing can be steered"),))
    status.step(step.state.velocity.mean(0).tolist(), asked, note)
    pace.wait()
  return recorder.recording()


def measured_segment(
  replay: Replay, about: Circumstances, held: Segment, recording: Recording
) -> MeasuredSegment:
  """The figures of what was recorded; the rest of the recording is let go."""
  task, robot = replay.env.task, replay.env.robot
  figures = segment_figures(
    recording,
    held,
    joints=robot.joints,
    feet=robot.feet,
    clock=clock(task.gait, robot.feet) if task.gait else None,
    effort_limit_n_m=about.effort_limit_n_m,
    mass_kg=about.mass_kg,
    settle_s=about.settle_s,
  )
  return MeasuredSegment(
    segment=held,
    figures=figures,
    env0=recording.env0,
    velocity_mean=recording.velocity.mean(1),
    velocity_std=recording.velocity.std(1),
    posture_mean=None if recording.posture is None else recording.posture.mean(1),
    posture_std=None if recording.posture is None else recording.posture.std(1),
  )


def circumstances(replay: Replay) -> Circumstances:
  """What was replayed, on what."""
  env = replay.env
  return Circumstances(
    task=env.task.name,
    robot=env.robot.name,
    agent=replay.agent,
    checkpoint=str(replay.checkpoint) if replay.checkpoint else None,
    iteration=replay.iteration,
    backend=replay.resolved.name,
    device=env.device,
    num_envs=env.num_envs,
    seed=replay.seed,
    physics_hz=round(1 / env.task.physics_dt_s, 6),
    control_hz=round(1 / env.task.control_dt_s, 6),
    observation_noise=replay.obs_noise,
    settle_s=SETTLE_S,
    mass_kg=float(env.backend.model.body(env.robot.base_body).subtreemass[0]),
    scene={"name": env.task.scene, "physics": physics_of(env.task.scene, env.robot.name)},
    effort_limit_n_m=env.robot.effort_limit_n_m,
    differences_from_training=replay.differences,
    as_in_training=replay.as_in_training,
    versions={"python": sys.version.split()[0]} | versions_of(PACKAGES + WARP_PACKAGES),
  )


def folder(replay: Replay) -> Path:
  """`measure/` beside the checkpoint; in the current folder for an untrained agent."""
  return (replay.checkpoint.parent if replay.checkpoint else Path.cwd()) / "measure"


def write(into: Path, measured: Measured) -> tuple[Path, ...]:
  """The three files, each whole or not at all."""
  from mjrl.measure.plots import write_png  # loads matplotlib, which replaying does without

  paths = tuple(into / f"measure.{kind}" for kind in ("csv", "json", "png"))
  for path, write_one in zip(paths, (write_csv, write_json, write_png), strict=True):
    write_one(path, measured)
  return paths
