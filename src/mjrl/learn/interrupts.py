"""SIGINT, SIGTERM, SIGHUP: the first asks a run to stop after its step, the second ends it."""

import os
import signal
from types import FrameType

# SIGHUP: a terminal that was closed, a connection that broke; Windows has none.
SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


class StopAsked:
  """True once a stop was asked for; a context manager that listens while it is open."""

  def __init__(self, after: str | None = "step") -> None:
    """Nothing asked yet; `after` is what is finished first, in words, or None to say nothing."""
    self.signal: signal.Signals | None = None
    self._after = after

  def __bool__(self) -> bool:
    """Whether to stop."""
    return self.signal is not None

  @property
  def exit_code(self) -> int:
    """128 + the signal's number, or 0 if none came."""
    return 128 + self.signal if self.signal else 0

  def __enter__(self) -> "StopAsked":
    """Listen."""
    self._before = {s: signal.signal(s, self._hear) for s in SIGNALS}
    return self

  def __exit__(self, *_: object) -> None:
    """Hand the signals back to whoever had them."""
    for number, handler in self._before.items():
      signal.signal(number, handler)

  def _hear(self, number: int, _: FrameType | None) -> None:
    self.signal = signal.Signals(number)
    for other in SIGNALS:
      # The system's own action ends the process even where Python would not get to a handler. A
      # closed terminal hangs up twice, by its shell and by itself: that is one wish, not two.
      hangup = other == getattr(signal, "SIGHUP", None)
      signal.signal(other, signal.SIG_IGN if hangup else signal.SIG_DFL)
    if self._after:
      name = self.signal.name
      say(f"\n{name}: stopping after this {self._after}; once more ends the run at once\n")


def say(text: str) -> None:
  """Print from a handler, past Python's buffer, which the interrupted code may be writing to."""
  try:
    os.write(1, text.encode())
  except OSError:  # the terminal is gone, and no later line may fail the run because of it
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
      os.dup2(nowhere, stream)
    os.close(nowhere)
