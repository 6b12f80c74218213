"""The report of a run for the console."""

from collections.abc import Mapping, Sequence

from mjrl.measure import report
from mjrl.measure.runs.facts import facts
from mjrl.measure.runs.record import RunRecord

_LABEL = 12


def text(run: RunRecord) -> str:
  """The labelled lines, then what the robot did in the measured replay."""
  lines = block(facts(run))
  if run.measured is not None:
    lines += ["", report.report(run.measured)]
  return "\n".join(lines)


def block(facts: Mapping[str, Sequence[str]]) -> list[str]:
  """Labels to the left, their lines below one another."""
  return [
    f"{label if k == 0 else '':{_LABEL}} {line}"
    for label, lines in facts.items()
    for k, line in enumerate(lines)
  ]
