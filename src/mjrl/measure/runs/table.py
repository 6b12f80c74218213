"""Runs as a table: a line each, with what came of them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from mjrl.measure.measured import Measured
from mjrl.measure.report import NOT_MEASURED, asked, percent
from mjrl.measure.runs.facts import number, outcome
from mjrl.measure.runs.find import began, runs_in
from mjrl.measure.runs.record import RunRecord

HEADER = ("run", "task", "state", "iterations", "reward", "tracking", "level", "findings", "replay")


def chosen(
  log_dir: Path, *, task: str | None, since: datetime | None, state: str | None
) -> Iterator[RunRecord]:
  """The runs of a folder that are wanted, the newest first.

  Args:
    log_dir: root of all runs.
    task: name of theirs; None for any.
    since: when they began, at the earliest.
    state: one of `mjrl.measure.runs.record.STATES`.
  """
  for folder in runs_in(log_dir):
    run = RunRecord(folder)
    if (
      (since is None or began(folder)[0] >= since)
      and (task is None or run.task == task)
      and (state is None or run.state == state)
    ):
      yield run


def row(run: RunRecord) -> tuple[str, ...]:
  """What `HEADER` names."""
  found = outcome(run)
  shares = [
    percent(None if reached is None or not weight else reached / weight)
    for reached, weight in found.tracking.values()
  ]
  return (
    run.folder.name,
    run.task,
    run.state,
    number(found.iterations, 9),
    number(found.reward_last),
    ", ".join(shares) or NOT_MEASURED,
    number(found.level),
    NOT_MEASURED if run.findings is None else _findings(run),
    NOT_MEASURED if run.measured is None else replay(run.measured),
  )


def replay(measured: Measured) -> str:
  """A measured replay in a few words: the least and the greatest of what was commanded, falls."""
  ratios = [
    axis.ratio for part in measured.segments for axis, _ in asked(part) if axis.ratio is not None
  ]
  falls = sum(part.figures.falls for part in measured.segments)
  reached = f"{percent(min(ratios))}..{percent(max(ratios))}" if ratios else NOT_MEASURED
  return f"{reached}, {falls} falls"


def _findings(run: RunRecord) -> str:
  """Those that still hold at the end."""
  names: Sequence[str] = [f["rule"] for f in run.findings or [] if f["at_the_end"]]
  return ", ".join(names) or "none"
