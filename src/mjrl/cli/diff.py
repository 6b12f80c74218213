"""The diff command: what differs between two runs, in configuration and outcome."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mjrl.cli.flags import DiffFlags, parse
from mjrl.cli.listing import aligned
from mjrl.cli.prepare import without_traceback
from mjrl.cli.settings import apply_settings, read_settings

SETTINGS = {"log_dir": "MJRL_LOG_DIR"}


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, read both runs, print. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(DiffFlags, "python -m mjrl diff", argv)
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: DiffFlags, argv: Sequence[str]) -> int:
  settings = read_settings(Path.cwd(), os.environ)
  flags, _ = apply_settings(flags, argv, SETTINGS, settings, {})
  from mjrl.measure.runs.diff import configuration, outcomes, replays
  from mjrl.measure.runs.find import find_run
  from mjrl.measure.runs.record import RunRecord

  log_dir = flags.log_dir.expanduser()
  one, other = (RunRecord(find_run(log_dir, name)) for name in (flags.one, flags.other))
  if one.folder == other.folder:
    raise ValueError(f"both are {one.folder}; name two runs")
  print(f"A  {one.folder}\nB  {other.folder}\n\nconfiguration, A -> B")
  print("\n".join(f"  {line}" for line in configuration(one, other) or ["no difference"]))
  print(f"\n{aligned(('outcome', 'A', 'B'), outcomes(one, other))}")
  measured = replays(one, other)
  if measured:
    print(f"\n{aligned(('measured replay', 'A', 'B'), measured)}")
  else:
    print("\nneither has a measured replay")
  return 0
