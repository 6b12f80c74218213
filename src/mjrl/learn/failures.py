"""What a run could not do with its files: said once, counted, and never the end of the run."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHECKPOINT, WORLD = "write the checkpoint", "write the world beside the checkpoint"
BEST, PRUNE, SUMMARY = "write the best checkpoint", "remove an old checkpoint", "write the summary"
CONSOLE = "write to the console"  # which may be a file on a full disk


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
    """Go on after an OSError within; `what` is one of this module's constants."""
    try:
      yield
    except OSError as error:
      self.open.add(what)
      kind = f"{what}: {error.strerror or error}"
      self.counts[kind] += 1
      if self.counts[kind] == 1:
        with suppress(OSError):
          print(f"could not {what}: {error}; the run goes on")
    else:
      self.open.discard(what)

  @property
  def exit_code(self) -> int:
    """1 if the run ends without its last checkpoint or its summary, or 0."""
    return int(bool(self.open & {CHECKPOINT, SUMMARY}))
