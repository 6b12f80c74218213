"""Replaying to look at."""

import torch

from mjrl.envs.policy import advance, begin
from mjrl.envs.posture import posture_of
from mjrl.measure.pace import Pace, StatusLine
from mjrl.measure.replay import Replay
from mjrl.measure.series import Posture
from mjrl.view.window import Window


def watch(
  replay: Replay,
  command: tuple[float, float, float] | None,
  posture: Posture | None,
  steps: int | None,
  speed: float,
  window: Window | None,
) -> int:
  """Replay without measuring."""
  env = replay.env
  if command is not None:
    env.commands.fix(torch.tensor(command, device=env.device).repeat(env.num_envs, 1))
  if (body := posture_of(env.asked)) and posture is not None:
    body.fix(torch.tensor(posture).repeat(env.num_envs, 1))
  observations = begin(env, replay.policy)
  pace = Pace(speed, env.dt_s)
  status = StatusLine(pace, env.dt_s)
  failed = done = 0
  if steps is None and window is None:
    print("replaying until Ctrl-C; --steps N ends by itself, --measure writes numbers", flush=True)
  try:
    while (steps is None or done < steps) and not (window and window.closed):
      step = advance(env, replay.policy, observations)
      observations = step.observations
      done += 1
      failed += int(step.terminated.sum())
      if window:
        window.draw(env)
      achieved, asked = step.state.velocity.mean(0), step.state.command.mean(0)
      status.step(achieved.tolist(), asked.tolist(), f"{failed} failed" if failed else "")
      pace.wait()
  finally:
    status.end()
    print(
      f"{done} control steps, {done * env.dt_s:.1f} s, of {env.num_envs} env(s): "
      f"{failed} episode(s) failed, {pace.real_time_factor:.1f}x real time"
    )
  return 0
