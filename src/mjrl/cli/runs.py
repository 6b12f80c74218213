"""The runs command: a table of runs, the newest first."""

import os
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from mjrl import tasks
from mjrl.cli.flags import RunsFlags, check, parse
from mjrl.cli.listing import aligned
from mjrl.cli.prepare import without_traceback
from mjrl.cli.settings import apply_settings, read_settings

SETTINGS = {"log_dir": "MJRL_LOG_DIR"}

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, read the runs, print. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(RunsFlags, "python -m mjrl runs", argv)
  return without_traceback(lambda: _run(flags, argv))


def moment(text: str, now: datetime) -> datetime:
  """When `--since` is: a date, a date and a time, or a time before now.

  Raises:
    ValueError: it is none.
  """
  span = re.fullmatch(r"(\d+)([mhdw])", text)
  if span:
    return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
  try:
    return datetime.fromisoformat(text)
  except ValueError:
    raise ValueError(
      f"--since is {text!r}; it must be a date such as 2026-01-31 or 2026-01-31T12:00, or a time "
      "before now such as 90m, 12h, 3d or 2w"
    ) from None


def _run(flags: RunsFlags, argv: Sequence[str]) -> int:
  settings = read_settings(Path.cwd(), os.environ)
  flags, sources = apply_settings(flags, argv, SETTINGS, settings, {})
  check(flags, sources)
  if flags.task is not None:
    tasks.entry(flags.task)  # refuses an unknown name
  since = None if flags.since is None else moment(flags.since, datetime.now())
  from mjrl.measure.runs.table import HEADER, chosen, row

  log_dir = flags.log_dir.expanduser().absolute()
  runs = chosen(log_dir, task=flags.task, since=since, state=flags.state)
  rows = [row(run) for run in islice(runs, flags.limit)]
  if not rows:
    print(f"no such run in {log_dir}")
    return 0
  print(aligned(HEADER, rows))
  if next(runs, None) is not None:
    print(f"there are more; --limit {2 * flags.limit} shows some of them")
  return 0
