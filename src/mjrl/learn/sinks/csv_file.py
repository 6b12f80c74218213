"""`scalars.csv`: the scalars of a run, for everything that reads a table."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from mjrl.learn.atomic import append_bytes, write_bytes

NAME = "scalars.csv"


class CsvFile:
  """A row per iteration and a column per scalar, in the order in which they first appeared.

  Numbers stand at full precision; a scalar that an iteration has not is an empty cell.  Whenever
  the run is killed, the file holds every row that was written, and nothing but whole rows; a row
  that cannot be written leaves it as it was.
  """

  def __init__(self, folder: Path) -> None:
    """Of a run's folder, in which the first row begins the file."""
    self._path = folder / NAME
    self._columns = ["iteration"]
    self._header = b""  # as it stands in the file

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    new = [name for name in scalars if name not in self._columns]
    columns = self._columns + new
    row = _line([str(iteration), *(_cell(scalars, name) for name in columns[1:])])
    if self._header and not new:
      append_bytes(self._path, row)
      return
    # The new row goes into the file that takes the old one's place: between a rewritten file and a
    # row appended to it, a kill would lose the row.
    rows = self._path.read_bytes()[len(self._header) :] if self._header else b""
    rows = rows.replace(b"\n", b"," * len(new) + b"\n")
    header = _line(columns)
    write_bytes(self._path, header + rows + row)
    self._columns, self._header = columns, header

  def say(self, iteration: int, name: str, text: str) -> None:
    """See `Sink.say`.  A table of numbers has no place for a text."""

  def film(self, iteration: int, path: Path, gif: bytes) -> None:
    """See `Sink.film`: a table shows none."""

  def close(self) -> None:
    """See `Sink.close`."""


def _cell(scalars: Mapping[str, float], name: str) -> str:
  return repr(float(scalars[name])) if name in scalars else ""


def _line(cells: Sequence[str]) -> bytes:
  text = io.StringIO()
  csv.writer(text, lineterminator="\n").writerow(cells)
  return text.getvalue().encode()
