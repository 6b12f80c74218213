"""A replay with the window that shows it."""

from collections.abc import Iterator
from contextlib import contextmanager

from mjrl.measure.replay import Replay
from mjrl.view.window import Window, open_window


@contextmanager
def shown(
  replay: Replay, headless: bool, speed: float | None
) -> Iterator[tuple[Window | None, float]]:
  """A window, if one is wanted, and the speed; what went wrong is said at the end."""
  window = None if headless else open_window(replay.env)
  try:
    yield window, (1.0 if window else 0.0) if speed is None else speed
  finally:
    for note in replay.env.take_notes():
      print(f"note: {note}", flush=True)
    if window:
      window.close()
