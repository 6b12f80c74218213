"""The report command: what can be relied on of a run, on the console and as one page."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mjrl.cli.flags import ReportFlags, parse
from mjrl.cli.prepare import without_traceback
from mjrl.cli.settings import apply_settings, read_settings

SETTINGS = {"log_dir": "MJRL_LOG_DIR"}


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, read the run, report. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(ReportFlags, "python -m mjrl report", argv)
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: ReportFlags, argv: Sequence[str]) -> int:
  settings = read_settings(Path.cwd(), os.environ)
  flags, _ = apply_settings(flags, argv, SETTINGS, settings, {})
  from mjrl.measure.runs.find import find_run
  from mjrl.measure.runs.record import RunRecord
  from mjrl.measure.runs.text import text

  run = RunRecord(find_run(flags.log_dir.expanduser(), flags.run))
  print(text(run), flush=True)
  if flags.page:
    from mjrl.measure.runs.page import write_page  # loads matplotlib, as the text needs not

    print(f"\nwrote {write_page(run)}")
  return 0
