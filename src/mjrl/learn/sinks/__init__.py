"""Where the scalars of a run are written: everywhere under the same names, over the iteration."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from mjrl.learn.failures import Failures
from mjrl.learn.sinks.csv_file import CsvFile
from mjrl.learn.sinks.event_file import EventFile
from mjrl.learn.sinks.wandb_run import WandbRun


class Sink(Protocol):
  """Takes the scalars of one iteration after the other."""

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """Keep them."""
    ...

  def say(self, iteration: int, name: str, text: str) -> None:
    """Keep a text of an iteration, by a name as scalars have them."""
    ...

  def film(self, iteration: int, path: Path, gif: bytes) -> None:
    """Show a film, where films can be shown.

    Args:
      iteration: whose policy it is of, which may be some iterations back.
      path: of the .mp4.
      gif: an excerpt.
    """
    ...

  def close(self) -> None:
    """Write what is not yet written."""
    ...


class LocalFile:
  """A sink of the run's folder: an iteration that it cannot take is lost, and the next is tried."""

  def __init__(self, name: str, sink: Sink, failures: Failures) -> None:
    """Guard a sink that stays whole when it fails; `name` is what is said of it."""
    self._what, self._sink, self._failures = f"write {name}", sink, failures

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    with self._failures.survived(self._what):
      self._sink.write(iteration, scalars)

  def say(self, iteration: int, name: str, text: str) -> None:
    """See `Sink.say`."""
    with self._failures.survived(self._what):
      self._sink.say(iteration, name, text)

  def film(self, iteration: int, path: Path, gif: bytes) -> None:
    """See `Sink.film`."""
    with self._failures.survived(self._what):
      self._sink.film(iteration, path, gif)

  def close(self) -> None:
    """See `Sink.close`."""
    with self._failures.survived(self._what):
      self._sink.close()


class Droppable:
  """A service that is dropped for good when it fails, with a line: curves are not worth a run.

  What it raises, and whether it can be asked again, is its own affair; it may be in another process
  that is gone.
  """

  def __init__(self, name: str, open_sink: Callable[[], Sink], failures: Failures) -> None:
    """Open it; `name` is what is said of it."""
    self._name, self._failures = name, failures
    self._sink: Sink | None = None
    self._try(lambda: setattr(self, "_sink", open_sink()))

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    if self._sink is not None:
      self._try(lambda sink=self._sink: sink.write(iteration, scalars))

  def say(self, iteration: int, name: str, text: str) -> None:
    """See `Sink.say`."""
    if self._sink is not None:
      self._try(lambda sink=self._sink: sink.say(iteration, name, text))

  def film(self, iteration: int, path: Path, gif: bytes) -> None:
    """See `Sink.film`."""
    if self._sink is not None:
      self._try(lambda sink=self._sink: sink.film(iteration, path, gif))

  def close(self) -> None:
    """See `Sink.close`."""
    if self._sink is not None:
      self._try(self._sink.close)

  def _try(self, work: Callable[[], None]) -> None:
    try:
      work()
    except Exception as error:  # a network that is gone, whatever wandb raises
      self._sink = None
      why = " ".join(str(error).split()) or type(error).__name__
      line = f"{self._name}: not written from here on, the run goes on: {why}"
      self._failures.add(f"write to {self._name}", why, line)


def open_sinks(
  folder: Path, logger: str, config: Mapping[str, Any], failures: Failures
) -> list[Sink]:
  """The sinks of a run.

  Args:
    folder: of the run.
    logger: "wandb" to have that beside the files.
    config: what the run is, in plain values, for a logger that shows it beside the curves.
    failures: of the run, which count what a sink could not keep.
  """
  sinks: list[Sink] = [
    LocalFile("TensorBoard's event file", EventFile(folder), failures),
    LocalFile("scalars.csv", CsvFile(folder), failures),
  ]
  if logger == "wandb":
    sinks.append(Droppable("Weights & Biases", lambda: WandbRun(folder, config), failures))
  return sinks
