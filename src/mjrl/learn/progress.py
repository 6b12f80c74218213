"""What a training run shows: a block per iteration, and a bar for the whole run on a terminal."""

import sys
from collections.abc import Mapping
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_WIDTH, _LABEL = 80, 44


class Display:
  """Prints blocks; keeps a bar below them where stdout is a terminal."""

  def __init__(self, first: int, last: int) -> None:
    """A run of iterations first..last."""
    self._last = last
    self._console = Console(soft_wrap=True, highlight=False)
    self._bar = Progress(
      TextColumn("iteration"),
      MofNCompleteColumn(),
      BarColumn(),
      TimeRemainingColumn(),
      console=self._console,
      disable=not sys.stdout.isatty(),
    )
    self._bar.start()
    self._task = self._bar.add_task("run", total=last - first + 1)

  def block(self, iteration: int, facts: Mapping[str, float | str]) -> None:
    """One iteration: labels to the right, values in line."""
    title = f"Learning iteration {iteration}/{self._last}"
    lines = ["#" * _WIDTH, title.center(_WIDTH).rstrip(), ""]
    lines += [f"{label + ':':>{_LABEL}} {_show(value)}" for label, value in facts.items()]
    self._console.print("\n".join(lines), markup=False)
    self._bar.advance(self._task)

  def close(self) -> None:
    """Leave the terminal as it was."""
    self._bar.stop()


def clock(seconds: float) -> str:
  """Hours, minutes and seconds."""
  return str(timedelta(seconds=int(seconds)))


def _show(value: float | str) -> str:
  if isinstance(value, str):
    return value
  if float(value).is_integer():
    return f"{int(value)}"
  return f"{value:.4f}" if abs(value) >= 1e-3 else f"{value:.2e}"
