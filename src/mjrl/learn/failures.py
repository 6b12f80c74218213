"""What a run could not do with its files: said once, counted, and never the end of the run."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHECKPOINT, WORLD = "write the checkpoint", "write the world beside the checkpoint"
BEST, PRUNE = "write the best checkpoint", "remove an old checkpoint"
CONSOLE = "write to the console"  # which may be a file on a full disk
SUMMARY, PROFILE = "write the summary", "write the profile"
_AT_THE_END = {SUMMARY, PROFILE}
_NEEDED = {CHECKPOINT, SUMMARY, PROFILE}  # a run that ends without one of these has failed


class Failures:
  """Failures of a full disk, a quota, a folder that is gone.

  counts  "what: reason" to how often it happened
  open    what failed when it was last tried
  """

  def __init__(self) -> None:
    """None so far."""
    self.counts: Counter[str] = Counter()
    self.open: set[str] = set()

  @contextmanager
  def survived(self, what: str) -> Iterator[None]:
    """Go on after an OSError within; `what` is what was tried, in words."""
    try:
      yield
    except OSError as error:
      goes_on = "" if what in _AT_THE_END else "; the run goes on"
      self.add(what, error.strerror or str(error), f"could not {what}: {error}{goes_on}")
    else:
      self.open.discard(what)

  def add(self, what: str, reason: str, line: str) -> None:
    """Count a failure; the first of its kind is said.

    Args:
      what: was tried.
      reason: why it failed; with `what`, its kind.
      line: that says it.
    """
    self.open.add(what)
    kind = f"{what}: {reason}"
    self.counts[kind] += 1
    if self.counts[kind] == 1:
      with suppress(OSError):
        print(line, flush=True)

  @property
  def exit_code(self) -> int:
    """1 if the run ends without its last checkpoint, its summary or its profile's file, or 0."""
    return int(bool(self.open & _NEEDED))
