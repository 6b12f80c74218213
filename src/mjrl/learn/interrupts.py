"""SIGINT, SIGTERM, SIGHUP: the first asks a run to stop after its step, the second ends it."""

import signal
from types import FrameType

from mjrl.learn.distributed import gathered

# SIGHUP: a terminal that was closed, a connection that broke; Windows has none.
_SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


class StopAsked:
  """True once a stop was asked for; a context manager that listens while it is open."""

  def __init__(self, after: str = "step") -> None:
    """Nothing asked yet; `after` is what is finished first, in words."""
    self.signal: signal.Signals | None = None
    self._after = after

  def __bool__(self) -> bool:
    """Whether to stop."""
    return self.signal is not None

  def agreed(self) -> bool:
    """Whether any process of the run was asked; each asks at the same place."""
    number = max(gathered(int(self.signal or 0)))
    if number:
      self.signal = signal.Signals(number)
    return number > 0

  @property
  def exit_code(self) -> int:
    """128 + the signal's number, or 0 if none came."""
    return 128 + self.signal if self.signal else 0

  def __enter__(self) -> "StopAsked":
    """Listen."""
    self._before = {s: signal.signal(s, self._hear) for s in _SIGNALS}
    return self

  def __exit__(self, *_: object) -> None:
    """Hand the signals back to whoever had them."""
    for number, handler in self._before.items():
      signal.signal(number, handler)

  def _hear(self, number: int, _: FrameType | None) -> None:
    if self.signal is not None:
      signal.signal(number, signal.SIG_DFL)
      signal.raise_signal(number)
    self.signal = signal.Signals(number)
    print(
      f"\n{self.signal.name}: stopping after this {self._after}; once more ends the run at once",
      flush=True,
    )
