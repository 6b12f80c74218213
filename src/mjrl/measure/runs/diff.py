"""What differs between two runs: in what they were asked, and in what came of them."""

from collections.abc import Mapping
from typing import Any

from mjrl.envs.describe import differences
from mjrl.learn.progress import clock
from mjrl.measure import report
from mjrl.measure.report import NOT_MEASURED, percent
from mjrl.measure.runs.facts import number, outcome
from mjrl.measure.runs.record import RunRecord

# What is another in every run, and says nothing.
_OF_THE_RUN = ("command",)


def configuration(one: RunRecord, other: RunRecord) -> list[str]:
  """Where settings, task, recipe and versions differ: "path: one -> other"."""
  lines = []
  for run in (one, other):
    if run.config is None:
      lines.append(f"{run.folder} has no run.yaml that can be read")
  if lines:
    return lines
  return differences(_settings(one), _settings(other))


def outcomes(one: RunRecord, other: RunRecord) -> list[tuple[str, str, str]]:
  """What came of each: label and two cells, of everything that at least one has."""
  tables = [_outcome(run) for run in (one, other)]
  labels = dict.fromkeys(label for table in tables for label in table)
  rows = [(label, *(table.get(label, NOT_MEASURED) for table in tables)) for label in labels]
  return [row for row in rows if row[1:] != (NOT_MEASURED, NOT_MEASURED)]  # type: ignore[misc]


def replays(one: RunRecord, other: RunRecord) -> list[tuple[str, str, str]]:
  """What the robot did in the measured replays, of the commands of either: label and two cells."""
  tables = [_replay(run) for run in (one, other)]
  labels = dict.fromkeys(label for table in tables for label in table)
  return [(label, *(table.get(label, NOT_MEASURED) for table in tables)) for label in labels]  # type: ignore[misc]


def _settings(run: RunRecord) -> Mapping[str, Any]:
  assert run.config is not None
  record = {key: value for key, value in run.of_record.items() if key not in _OF_THE_RUN}
  return {key: value for key, value in run.config.items() if key not in ("record", "set")} | record


def _outcome(run: RunRecord) -> dict[str, str]:
  found = outcome(run)
  table = {
    "state": run.state,
    "iterations": number(found.iterations, 9),
    "wall time": NOT_MEASURED if found.wall_s is None else clock(found.wall_s),
    "reward, first": number(found.reward_first),
    "reward, last": number(found.reward_last),
  }
  for name, (reached, weight) in found.tracking.items():
    share = None if reached is None or not weight else reached / weight
    table[f"{name} of its weight"] = percent(share)
  table |= {"ladder level": number(found.level), "action std": number(found.action_std, 3)}
  if run.findings is not None:
    table["findings"] = ", ".join(f["rule"] for f in run.findings) or "none"
  if evaluation := (run.summary or {}).get("evaluation"):
    table |= {name: number(value) for name, value in evaluation.items()}
  return table


def _replay(run: RunRecord) -> dict[str, str]:
  if run.measured is None:
    return {}
  header, *rows = report.rows(run.measured)
  return {
    f"{command}: {label}": cell
    for k, command in enumerate(header[1:], 1)
    for label, cell in ((row[0], row[k]) for row in rows)
    if cell != NOT_MEASURED
  }
