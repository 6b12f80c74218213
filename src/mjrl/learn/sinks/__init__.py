"""Where the scalars of a run are written: everywhere under the same names, over the iteration."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from mjrl.learn.sinks.csv_file import CsvFile
from mjrl.learn.sinks.event_file import EventFile
from mjrl.learn.sinks.wandb_run import WandbRun


class Sink(Protocol):
  """Takes the scalars of one iteration after the other."""

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """Keep them."""
    ...

  def close(self) -> None:
    """Write what is not yet written."""
    ...


class Droppable:
  """A sink that is dropped when it fails, with a line that says so: curves are not worth a run."""

  def __init__(self, what: str, open_sink: Callable[[], Sink]) -> None:
    """Open it; `what` is its name in the line."""
    self._what = what
    self._sink: Sink | None = None
    self._try(lambda: setattr(self, "_sink", open_sink()))

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    if self._sink is not None:
      self._try(lambda sink=self._sink: sink.write(iteration, scalars))

  def close(self) -> None:
    """See `Sink.close`."""
    if self._sink is not None:
      self._try(self._sink.close)

  def _try(self, work: Callable[[], None]) -> None:
    try:
      work()
    except Exception as error:  # a full disk, a network that is gone, whatever wandb raises
      self._sink = None
      why = " ".join(str(error).split()) or type(error).__name__
      print(f"{self._what}: not written from here on, the run goes on: {why}", flush=True)


def open_sinks(folder: Path, logger: str, config: Mapping[str, Any]) -> list[Sink]:
  """The sinks of a run.

  Args:
    folder: of the run.
    logger: one of `mjrl.learn.options.LOGGERS`.
    config: what the run is, in plain values, for a logger that shows it beside the curves.
  """
  sinks: list[Sink] = [
    Droppable("TensorBoard's event file", lambda: EventFile(folder)),
    Droppable("scalars.csv", lambda: CsvFile(folder)),
  ]
  if logger == "wandb":
    sinks.append(Droppable("Weights & Biases", lambda: WandbRun(folder, config)))
  return sinks
