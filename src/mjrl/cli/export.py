"""The export command."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mjrl import tasks
from mjrl.cli.changes import change, checkpoint_layer, said
from mjrl.cli.flags import ExportFlags, parse
from mjrl.cli.listing import task_table
from mjrl.cli.prepare import start_torch, task_entry, without_traceback
from mjrl.cli.settings import apply_settings, given_flags, read_settings
from mjrl.learn import checkpoints

SETTINGS = {"task": "MJRL_TASK", "log_dir": "MJRL_LOG_DIR"}


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, export or check. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(ExportFlags, "export.py", argv)
  if flags.list:
    print(task_table(tasks.TASKS))
    return 0
  return without_traceback(lambda: _run(flags, argv))


def _run(flags: ExportFlags, argv: Sequence[str]) -> int:
  flags, sources = apply_settings(flags, argv, SETTINGS, read_settings(Path.cwd(), os.environ), {})
  if flags.check is not None:
    return _check(flags, argv)
  if flags.recorded is not None:
    raise ValueError("--recorded needs --check: name the export that it was recorded from")
  task, entry = task_entry(flags.task, flags.model, sources)
  log_dir = flags.log_dir.expanduser().absolute()
  checkpoint = checkpoints.find(log_dir, entry.robot, task, flags.checkpoint)
  print(
    f"mjrl export\n  task        {task}, robot {entry.robot}\n  checkpoint  {checkpoint}",
    flush=True,
  )
  if flags.dry_run:
    print("dry run: nothing was built")
    return 0
  start_torch(1)
  from mjrl.export.export import export

  bare = replace(tasks.build(task), recipes={})  # the policy's own is in its checkpoint
  changed = change(bare, "", (checkpoint_layer(checkpoints.read(checkpoint), engine=""),))
  if changed.inherited:
    print(f"  set by the checkpoint's run: {said(changed.inherited)}", flush=True)
  return export(
    task=changed.task,
    checkpoint=checkpoint,
    out=flags.out,
    format=flags.format,
    allow_unmeasurable=flags.allow_unmeasurable,
  )


def _check(flags: ExportFlags, argv: Sequence[str]) -> int:
  """Check an export; every flag that is about making one would have no effect."""
  allowed = ("check", "recorded")
  for name in sorted(given_flags(argv)):
    if name not in allowed:
      raise ValueError(f"--{name} has no effect with --check: leave one of the two out")
  assert flags.check is not None  # the caller has looked
  from mjrl.export.verify import verify

  return verify(flags.check, flags.recorded)
