"""Replaying a policy: to look at, or to measure."""

from collections.abc import Sequence
from pathlib import Path

from mjrl.envs.task import Task
from mjrl.measure import compare
from mjrl.measure.agents import AGENTS
from mjrl.measure.files import write_json
from mjrl.measure.measured import Measured
from mjrl.measure.measuring import folder, measure_replay, write
from mjrl.measure.replay import open_replay
from mjrl.measure.report import report
from mjrl.measure.shown import shown
from mjrl.measure.watch import watch
from mjrl.sim.resolve import Resolved

INTERRUPTED = 130


def play(
  *,
  task: Task,
  resolved: Resolved,
  compared: Resolved | None,
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
    compared: another engine that is measured next, and compared; None measures on one alone.
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
  # All are opened before the first is measured: what one of them refuses is refused at once.
  replays = [
    open_replay(
      task,
      engine,
      seed=seed,
      agent=agent,
      checkpoint=checkpoint,
      command=command,
      obs_noise=obs_noise,
      physics_hz=physics_hz,
      measure=measure,
    )
    for engine in (resolved, compared)
    if engine
  ]
  first = replays[0]
  print("\n".join(["how the replay differs from training", *_list(first.differences)]))
  print("\n".join(["what stays as in training", *_list(first.as_in_training)]), flush=True)
  measured: list[Measured] = []
  try:
    for replay in replays:
      with shown(replay, headless, speed) as (window, pace):
        if not measure:
          return watch(replay, command, steps, pace, window)
        if measured:
          print(f"measuring the same on {replay.resolved.name}", flush=True)
        measured.append(measure_replay(replay, command, steps, pace, window))
      _write(folder(first), measured)
  except KeyboardInterrupt:
    kept = f"{measured[0].circumstances.backend} alone" if measured else "nothing"
    print("\ninterrupted" + (f": {kept} was written" if measure else ""), flush=True)
    return INTERRUPTED
  return 0


def _write(into: Path, measured: Sequence[Measured]) -> None:
  """Print and write what the last measurement adds."""
  if len(measured) == 1:
    print(report(measured[0]))
    paths = write(into, measured[0])
  else:
    first, other = measured
    print(compare.table(first, other))
    engine = other.circumstances.backend.replace(":", "_")
    paths = into / f"measure_{engine}.json", into / "compare.json"
    write_json(paths[0], other)
    compare.write_compare(paths[1], first, other)
  print("\n".join(f"wrote {path}" for path in paths), flush=True)


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
