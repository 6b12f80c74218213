"""Replaying to look at, and to drive by hand."""

import torch

from mjrl.envs.policy import advance, begin
from mjrl.envs.show import Show
from mjrl.measure.pace import Pace, StatusLine
from mjrl.measure.replay import Replay
from mjrl.measure.steering import Steering


def watch(
  replay: Replay,
  command: tuple[float, float, float] | None,
  steps: int | None,
  speed: float,
  show: Show | None,
) -> int:
  """Replay without measuring; what the viewer's user asks for is done between control steps."""
  env = replay.env
  if command is not None:
    env.commands.fix(torch.tensor(command, device=env.device).repeat(env.num_envs, 1))
  observations = begin(env, replay.policy)
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
