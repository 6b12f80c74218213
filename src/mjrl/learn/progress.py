"""What a training run shows: a block per iteration, and a bar for the whole run on a terminal."""

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_WIDTH, _LABEL = 80, 44

# Scalars under the names that rsl_rl's users look for, in the order in which they are shown; the
# rest follows under its own.
_SHOWN = {
  "Perf/env_steps": "Total steps",
  "Perf/total_fps": "Steps per second",
  "Perf/collection_time": "Collection time, s",
  "Perf/learning_time": "Learning time, s",
  "Perf/cpu_time": "CPU time, s",
  "Perf/memory_mib": "Memory, MiB",
  "Perf/gpu_memory_mib": "GPU memory, MiB",
  "Loss/value": "Mean value loss",
  "Loss/surrogate": "Mean surrogate loss",
  "Loss/entropy": "Mean entropy loss",
  "Loss/symmetry": "Mean symmetry loss",
  "Loss/kl": "Mean KL divergence",
  "Loss/explained_variance": "Variance the critic foresaw",
  "Loss/learning_rate": "Learning rate",
  "Loss/skipped_updates": "Updates skipped, not finite",
  "Train/mean_reward": "Mean reward",
  "Train/mean_episode_length": "Mean episode length",
  "Policy/mean_std": "Mean action std",
}
_SHOWN_IF_ANY = ("Loss/skipped_updates",)
_IN_FILES_ALONE = "Feet/"  # two numbers a foot: for curves, and for findings


class Display:
  """Prints blocks; keeps a bar below them where stdout is a terminal."""

  def __init__(self, first: int, last: int) -> None:
    """A run of iterations first..last."""
    self._first, self._last, self._began = first, last, time.perf_counter()
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

  def block(
    self,
    iteration: int,
    scalars: Mapping[str, float],
    notes: Sequence[str],
    findings: Sequence[str] = (),
  ) -> None:
    """One iteration: labels to the right, values in line; findings below, in lines of their own."""
    elapsed_s = time.perf_counter() - self._began
    left_s = elapsed_s / (iteration + 1 - self._first) * (self._last - iteration)
    scalars = {
      name: value
      for name, value in scalars.items()
      if (value or name not in _SHOWN_IF_ANY) and not name.startswith(_IN_FILES_ALONE)
    }
    facts = {label: scalars[name] for name, label in _SHOWN.items() if name in scalars}
    facts |= {name: value for name, value in scalars.items() if name not in _SHOWN}
    said = {label: _show(value) for label, value in facts.items()}
    said |= {f"Note {k}": note for k, note in enumerate(notes, 1)}
    said |= {"Time elapsed": clock(elapsed_s), "ETA": clock(left_s)}
    title = f"Learning iteration {iteration}/{self._last}"
    lines = ["#" * _WIDTH, title.center(_WIDTH).rstrip(), ""]
    lines += [f"{label + ':':>{_LABEL}} {text}" for label, text in said.items()]
    lines += [f"FOUND {finding}" for finding in findings]
    self._console.print("\n".join(lines), markup=False)
    self._bar.advance(self._task)

  def close(self) -> None:
    """Leave the terminal as it was."""
    self._bar.stop()


def clock(seconds: float) -> str:
  """Hours, minutes and seconds."""
  return str(timedelta(seconds=int(seconds)))


def _show(value: float) -> str:
  if float(value).is_integer():
    return f"{int(value)}"
  return f"{value:.4f}" if abs(value) >= 1e-3 else f"{value:.2e}"
