"""The scalars of a run as they were recorded: by name, over the iteration."""

import csv
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import Path

from mjrl.learn.sinks.csv_file import NAME


class Curves:
  """What was logged so far.  Numbers that are not finite are left out.

  first, iteration  of the first and of the last row; -1 where there is none
  """

  def __init__(self) -> None:
    """Nothing was logged."""
    self.first = self.iteration = -1
    self._points: dict[str, tuple[list[int], list[float]]] = {}

  def add(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """Take a row; iterations only grow."""
    if self.first < 0:
      self.first = iteration
    self.iteration = iteration
    for name, value in scalars.items():
      if math.isfinite(value):
        iterations, values = self._points.setdefault(name, ([], []))
        iterations.append(iteration)
        values.append(float(value))

  @property
  def names(self) -> list[str]:
    """Of all scalars, in the order in which they first appeared."""
    return list(self._points)

  @property
  def rows(self) -> int:
    """Iterations from the first to the last."""
    return self.iteration - self.first + 1 if self.first >= 0 else 0

  def points(self, name: str) -> tuple[list[int], list[float]]:
    """Iterations and values of a scalar; empty where it was never logged."""
    return self._points.get(name, ([], []))

  def between(self, name: str, start: int, stop: int) -> list[float]:
    """Values of the iterations start <= i < stop."""
    iterations, values = self.points(name)
    return values[bisect_left(iterations, start) : bisect_left(iterations, stop)]

  def recent(self, name: str, iterations: int) -> list[float]:
    """Values of the last so many iterations."""
    return self.between(name, self.iteration - iterations + 1, self.iteration + 1)

  def last(self, name: str) -> float | None:
    """The newest value; None where there is none."""
    _, values = self.points(name)
    return values[-1] if values else None


def read(folder: Path) -> Curves:
  """The curves of a run's folder; empty ones where it has no `scalars.csv`, or one without rows."""
  curves = Curves()
  path = folder / NAME
  if path.is_file():
    with path.open(encoding="utf-8", newline="") as file:
      _fill(curves, csv.reader(file))
  return curves


def _fill(curves: Curves, rows: Iterable[list[str]]) -> None:
  """Take the rows of a table; one that was cut short, as by a copy, is left out."""
  rows = iter(rows)
  header = next(rows, [])
  for cells in rows:
    if len(cells) != len(header):
      continue
    values = dict(zip(header, cells, strict=True))
    try:
      iteration = int(values.pop("iteration"))
      curves.add(iteration, {name: float(cell) for name, cell in values.items() if cell})
    except (KeyError, ValueError):
      continue
