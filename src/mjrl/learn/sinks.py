"""Where the scalars of a run are written."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from torch.utils.tensorboard import SummaryWriter


class Sink(Protocol):
  """Takes the scalars of one iteration after the other."""

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """Keep them."""
    ...

  def close(self) -> None:
    """Write what is not yet written."""
    ...


class EventFile:
  """TensorBoard's event file."""

  def __init__(self, folder: Path) -> None:
    """Open one in a run's folder."""
    self._writer: SummaryWriter | None = SummaryWriter(str(folder), flush_secs=10)

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    if self._writer is None:
      return
    try:
      for name, value in scalars.items():
        self._writer.add_scalar(name, value, iteration)
    except OSError:
      self._writer = None  # the thread that writes has died of it, and the file ends here
      raise

  def close(self) -> None:
    """See `Sink.close`."""
    if self._writer is not None:
      self._writer.close()


def open_sinks(folder: Path, logger: str) -> list[Sink]:
  """The sinks of a run; `logger` is one of `mjrl.learn.options.LOGGERS`."""
  del logger
  return [EventFile(folder)]
