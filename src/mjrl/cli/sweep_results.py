"""What came of the runs of a sweep: a row each, as a table, as JSON and as CSV."""

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mjrl import yaml_text
from mjrl.cli.listing import aligned
from mjrl.learn.atomic import write_bytes, write_json

Row = Mapping[str, Any]

_SHOWN = ("eval/reward", "eval/success")  # the files have the others too


def outcome(runs: Path, config: Path) -> dict[str, Any]:
  """What the run of a configuration left; empty if it got nowhere.

  Args:
    runs: the folder that its folder is in.
    config: the file that it, and no other run, was given.
  """
  for path in sorted(runs.glob("*/run.yaml"), reverse=True):
    text = path.read_text(encoding="utf-8")
    if config.name not in text or config.parent.name not in text:
      continue  # parsing costs more than looking
    said = yaml_text.load(text)
    if str(config) not in shlex.split(said["record"]["command"]):
      continue
    row = {"seed": said["seed"], "folder": str(path.parent)}
    summary = path.parent / "summary.json"
    return row | (_figures(json.loads(summary.read_text())) if summary.is_file() else {})
  return {}


def write(folder: Path, rows: Sequence[Row]) -> None:
  """`results.json` and `results.csv`, whole or not at all."""
  write_json(folder / "results.json", list(rows))
  text = io.StringIO()
  writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)
  write_bytes(folder / "results.csv", text.getvalue().encode())


def table(rows: Sequence[Row]) -> str:
  """A line per run; of its evaluation, what fits on a screen."""
  columns = [c for c in _columns(rows) if not c.startswith("eval/") or c in _SHOWN]
  return aligned(columns, [[_cell(row.get(name)) for name in columns] for row in rows])


def _figures(summary: Row) -> dict[str, Any]:
  tracking = {name: term["reached"] for name, term in summary["tracking"].items()}
  return {
    "iterations": summary["iterations"],
    "reward": summary["reward_last"],
    **tracking,
    **summary["evaluation"],
  }


def _columns(rows: Sequence[Row]) -> list[str]:
  """Every key once, and how a run ended last."""
  last = ("exit_code", "folder")
  return [*dict.fromkeys(k for row in rows for k in row if k not in last), *last]


def _cell(value: Any) -> str:
  if value is None:
    return "-"
  return f"{value:.4g}" if isinstance(value, float) else str(value)
