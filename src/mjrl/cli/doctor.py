"""The doctor command: this machine and installation, and how many envs they are good for."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from mjrl import tasks
from mjrl.cli.checkup import FAIL, NOTE, Row, auto, checkup
from mjrl.cli.flags import DoctorFlags, parse
from mjrl.cli.prepare import without_traceback
from mjrl.cli.size import size
from mjrl.sim.resolve import Resolved

SCHEMA = "mjrl/doctor/1"
_WIDTH = 16  # of the names


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, look, print. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(DoctorFlags, "python -m mjrl doctor", argv)
  return without_traceback(lambda: _run(flags))


def _run(flags: DoctorFlags) -> int:
  _check(flags)
  if flags.size:
    return size(flags)
  resolved = auto()
  if not flags.json:
    print("mjrl doctor", flush=True)
  rows = []
  for found in checkup():  # some take seconds: each is shown when it is there
    rows += found
    if found and not flags.json:
      print("\n".join(lines(found)), flush=True)
  if flags.json:
    print(json.dumps(_plain(rows, resolved), indent=2, ensure_ascii=False))
  else:
    print("\n".join([*_taken(resolved), *_verdict(rows)]))
  return 1 if any(row.status == FAIL for row in rows) else 0


def _check(flags: DoctorFlags) -> None:
  """Refuse flags that would do nothing.

  Raises:
    ValueError: names the flag.
  """
  given: Mapping[str, bool] = {
    "task": flags.task is not None,
    "backend": flags.backend != "auto",
    "device": flags.device != "auto",
  }
  for name, is_given in given.items():
    if is_given and not flags.size:
      raise ValueError(f"--{name} has no effect without --size")
  if flags.size and flags.task is None:
    raise ValueError(f"--size needs --task NAME; valid names: {', '.join(tasks.TASKS)}")


def lines(rows: Iterable[Row]) -> list[str]:
  """The findings, aligned, with what cures them below."""
  said = []
  for section, of_section in groupby(rows, lambda row: row.section):
    said.append(f"  {section}")
    for row in of_section:
      said.append(f"    {row.status:<4}  {row.name.ljust(_WIDTH)}  {row.found}")
      if row.cure:
        said.append(f"    {'':<4}  {'':<{_WIDTH}}  -> {row.cure}")
  return said


def _taken(resolved: Resolved) -> list[str]:
  """What `auto` is here, and why."""
  threads = [("torch threads", resolved.torch_threads, "torch_threads")]
  if resolved.threads:
    threads.append(("simulation threads", resolved.threads, "threads"))
  return [
    f"--backend auto takes {resolved.name}: {_without(resolved.reasons['backend'])}",
    *(f"{name}: {number} ({_without(resolved.reasons[key])})" for name, number, key in threads),
  ]


def _without(reason: str) -> str:
  return reason.removeprefix("auto: ")


def _verdict(rows: Sequence[Row]) -> list[str]:
  broken, notes = ([r.name for r in rows if r.status == status] for status in (FAIL, NOTE))
  if broken:
    return [
      f"{len(broken)} that mjrl needs: {', '.join(broken)}: broken or missing, see FAIL above"
    ]
  return [f"all that mjrl needs is there and works; {len(notes)} optional or worth knowing: note"]


def _plain(rows: Sequence[Row], resolved: Resolved) -> dict[str, Any]:
  return {
    "schema": SCHEMA,
    "ok": not any(row.status == FAIL for row in rows),
    "auto": {
      "backend": resolved.name,
      "device": resolved.device,
      "threads": resolved.threads,
      "torch_threads": resolved.torch_threads,
      "reasons": dict(resolved.reasons),
    },
    "rows": [asdict(row) for row in rows],
  }
