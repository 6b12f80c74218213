"""Replaying a policy: to look at, or to measure."""

from collections.abc import Sequence
from pathlib import Path

from mjrl.envs.task import Task
from mjrl.measure.agents import AGENTS
from mjrl.measure.measuring import measure_replay
from mjrl.measure.replay import open_replay
from mjrl.measure.watch import watch
from mjrl.sim.resolve import Resolved
from mjrl.view.window import open_window

INTERRUPTED = 130


def play(
  *,
  task: Task,
  resolved: Resolved,
  seed: int,
  agent: str,
  checkpoint: Path | None,
  steps: int | None,
  speed: float | None,
  command: tuple[float, float, float] | None,
  obs_noise: bool,
  physics_hz: float | None,
  measure: bool,
  headless: bool,
) -> int:
  """Replay a policy until it has run its steps, its window is closed, or Ctrl-C.

  Args:
    task: as it is trained.
    resolved: engine, device, number of envs.
    seed: of everything that stays random.
    agent: "trained", "zero" or "random".
    checkpoint: file of the trained agent's policy.
    steps: control steps; when measuring, of each command. None goes on, or measures 20 s of each.
    speed: simulated over real time, 0 as fast as possible; None is 1 with a window, else 0.
    command: held throughout, forward m/s, left m/s, yaw rad/s; None has them drawn as in training,
      or takes the standard series when measuring.
    obs_noise: whether observations are as noisy as in training.
    physics_hz: physics rate; None is that of training.
    measure: whether to measure and write `measure/`.
    headless: whether to do without a window.

  Returns:
    The exit code: 0, or 130 after Ctrl-C.

  Raises:
    ValueError: an argument or a checkpoint that cannot be used.
  """
  _check(agent, checkpoint, steps, speed)
  replay = open_replay(
    task,
    resolved,
    seed=seed,
    agent=agent,
    checkpoint=checkpoint,
    command=command,
    obs_noise=obs_noise,
    physics_hz=physics_hz,
    measure=measure,
  )
  print("\n".join(["how the replay differs from training", *_list(replay.differences)]))
  print("\n".join(["what stays as in training", *_list(replay.as_in_training)]), flush=True)
  window = None if headless else open_window(replay.env)
  if speed is None:
    speed = 1.0 if window else 0.0
  try:
    if measure:
      return measure_replay(replay, command, steps, speed, window)
    return watch(replay, command, steps, speed, window)
  except KeyboardInterrupt:
    print("\ninterrupted" + (": nothing was written" if measure else ""), flush=True)
    return INTERRUPTED
  finally:
    for note in replay.env.take_notes():
      print(f"note: {note}", flush=True)
    if window:
      window.close()


def _check(agent: str, checkpoint: Path | None, steps: int | None, speed: float | None) -> None:
  if agent not in AGENTS:
    raise ValueError(f"there is no agent {agent!r}; valid names: {', '.join(AGENTS)}")
  if (agent == "trained") != (checkpoint is not None):
    raise ValueError(
      f"agent {agent!r} with checkpoint {checkpoint}: a trained agent needs a checkpoint, the "
      "others take none"
    )
  if steps is not None and steps < 1:
    raise ValueError(f"--steps is {steps}; it must be 1 or more")
  if speed is not None and speed < 0:
    raise ValueError(f"--speed is {speed:g}; it must be 0 (as fast as possible) or more")


def _list(sentences: Sequence[str]) -> list[str]:
  return [f"  - {sentence}" for sentence in sentences]
