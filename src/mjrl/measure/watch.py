"""Replaying to look at, and to drive by hand."""

import torch

from mjrl.envs.filmed import Filming
from mjrl.envs.policy import advance, begin
from mjrl.envs.postures import posture_of
from mjrl.envs.show import Show
from mjrl.measure.pace import Pace, StatusLine
from mjrl.measure.replay import Replay
from mjrl.measure.series import Posture
from mjrl.measure.steering import Steering
from mjrl.view.film import Film
from mjrl.view.shot import SECONDS


def watch(
  replay: Replay,
  command: tuple[float, float, float] | None,
  posture: Posture | None,
  steps: int | None,
  speed: float,
  show: Show | None,
  film: Film | None,
) -> int:
  """Replay without measuring; for `SECONDS` if it is filmed and has no steps.

  What the viewer's user asks for is done between control steps.
  """
  env = replay.env
  if command is not None:
    env.commands.fix(torch.tensor(command, device=env.device).repeat(env.num_envs, 1))
  if (body := posture_of(env.asked)) and posture is not None:
    body.fix(torch.tensor(posture).repeat(env.num_envs, 1))
  observations = begin(env, replay.policy)
  filming = Filming(env, film, _title(replay)) if film else None
  if film and steps is None:
    steps = round(SECONDS / env.dt_s)
  pace = Pace(speed, env.dt_s)
  status = StatusLine(pace, env.dt_s)
  steering = Steering(env, show.panel, pace, replay.pushes, command) if show else None
  failed = done = 0
  if steps is None and show is None:
    print("replaying until Ctrl-C; --steps N ends by itself, --measure writes numbers", flush=True)
  try:
    while (steps is None or done < steps) and not (show and show.closed):
      if show and steering:
        steering.obey()
        if steering.restart:
          observations = begin(env, replay.policy)
        if steering.waits() and not show.failed:
          show.draw(steering.lines)
          continue
      step = advance(env, replay.policy, observations)
      observations = step.observations
      done += 1
      failed += int(step.terminated.sum())
      if show and steering:
        show.step(steering.lines)
      if filming:
        filming.step(step.terminated | step.timed_out)
      achieved, asked = step.state.velocity.mean(0), step.state.command.mean(0)
      status.step(achieved.tolist(), asked.tolist(), f"{failed} failed" if failed else "")
      pace.wait()
  finally:
    status.end()
    if steering:
      steering.close()
    print(
      f"{done} control steps, {done * env.dt_s:.1f} s, of {env.num_envs} env(s): "
      f"{failed} episode(s) failed, {pace.real_time_factor:.1f}x real time"
    )
  return 0


def _title(replay: Replay) -> str:
  name = replay.env.task.name
  return f"{name} {replay.checkpoint.stem}" if replay.checkpoint else f"{name} {replay.agent}"
