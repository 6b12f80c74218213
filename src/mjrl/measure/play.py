"""Replaying a policy: to look at, or to measure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mjrl.envs.filmed import subject_of
from mjrl.envs.show import REPLAY, Show, open_show
from mjrl.envs.task import Task
from mjrl.measure import compare
from mjrl.measure.agents import AGENTS
from mjrl.measure.files import write_json
from mjrl.measure.measured import Measured
from mjrl.measure.measuring import folder, measure_replay, write
from mjrl.measure.replay import Replay, open_replay
from mjrl.measure.report import report
from mjrl.measure.series import Posture
from mjrl.measure.watch import watch
from mjrl.sim.resolve import Resolved
from mjrl.view.choice import Choice
from mjrl.view.controls import Range
from mjrl.view.film import Film
from mjrl.view.shot import Shot

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
  posture: Posture | None,
  obs_noise: bool,
  physics_hz: float | None,
  measure: bool,
  film: Shot | None,
  library: str,
  viewer: Choice,
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
    speed: simulated over real time, 0 as fast as possible; None is 1 with a viewer, else 0.
    command: held throughout, forward m/s, left m/s, yaw rad/s; None has them drawn as in training,
      or takes the standard series when measuring.
    posture: held throughout, see `mjrl.envs.posture.POSTURE`; None likewise, where a task asks for
      postures.
    obs_noise: whether observations are as noisy as in training.
    physics_hz: physics rate; None is that of training.
    measure: whether to measure and write `measure/`.
    film: of the replay, which then ends by itself; None films nothing.
    library: that draws it, see `mjrl.view.offscreen`.
    viewer: to look at it with; it may be steered, unless it is measured.

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
      posture=posture,
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
      limits = None if measure else replay.trained
      with _shown(replay, viewer, limits, speed) as (show, pace):
        if not measure:
          with _filmed(replay, film, library) as begun:
            return watch(replay, command, posture, steps, pace, show, begun)
        if measured:
          print(f"measuring the same on {replay.resolved.name}", flush=True)
        measured.append(measure_replay(replay, command, posture, steps, pace, show))
      _write(folder(first), measured)
  except KeyboardInterrupt:
    kept = f"{measured[0].circumstances.backend} alone" if measured else "nothing"
    print("\ninterrupted" + (f": {kept} was written" if measure else ""), flush=True)
    return INTERRUPTED
  return 0


@contextmanager
def _shown(
  replay: Replay, viewer: Choice, limits: Sequence[Range] | None, speed: float | None
) -> Iterator[tuple[Show | None, float]]:
  """A viewer, if one is wanted, and the speed; what went wrong is said at the end."""
  show = open_show(replay.env, viewer, REPLAY, limits)
  try:
    yield show, (1.0 if show else 0.0) if speed is None else speed
  finally:
    for note in replay.env.take_notes():
      print(f"note: {note}", flush=True)
    if show:
      show.close()


@contextmanager
def _filmed(replay: Replay, shot: Shot | None, library: str) -> Iterator[Film | None]:
  """A film, if one is wanted, of whatever is played; one that is cut short is whole, too."""
  if shot is None:
    yield None
    return
  film = Film(shot, subject_of(replay.env), library)
  try:
    yield film
  except Exception:
    film.abandon()
    raise
  except KeyboardInterrupt:
    _finish(film)
    raise
  _finish(film)


def _finish(film: Film) -> None:
  print(f"film: drawing what is left of {film.frames} frames", flush=True)
  print(f"wrote {film.close()}: {film.frames / film.shot.fps:.1f} s", flush=True)


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
