"""A replay with the viewer that shows it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mjrl.envs.show import REPLAY, Show, open_show
from mjrl.measure.replay import Replay
from mjrl.view.choice import Choice
from mjrl.view.controls import Range


@contextmanager
def shown(
  replay: Replay, viewer: Choice, limits: Sequence[Range] | None, speed: float | None
) -> Iterator[tuple[Show | None, float]]:
  """A viewer, if one is wanted, and the speed; what went wrong is said at the end.

  Args:
    replay: to show.
    viewer: to look at it with.
    limits: of the commands that may be given by hand; None has nothing steered.
    speed: simulated over real time; None is 1 with a viewer, else 0, as fast as possible.
  """
  show = open_show(replay.env, viewer, REPLAY, limits)
  try:
    yield show, (1.0 if show else 0.0) if speed is None else speed
  finally:
    for note in replay.env.take_notes():
      print(f"note: {note}", flush=True)
    if show:
      show.close()
