"""The verify command: a proof on the user's machine that runs repeat, and resume, to the bit."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from mjrl import tasks
from mjrl.cli.flags import VerifyFlags, check, parse
from mjrl.cli.prepare import start_torch, without_traceback
from mjrl.learn.interrupts import StopAsked
from mjrl.sim.resolve import resolve
from mjrl.sim.versions import PACKAGES, versions_of

if TYPE_CHECKING:
  from mjrl.learn.verify import Check


def main(argv: Sequence[str] | None = None) -> int:
  """Parse, train, compare. Returns the exit code."""
  argv = sys.argv[1:] if argv is None else argv
  flags = parse(VerifyFlags, "python -m mjrl verify", argv)
  with StopAsked() as stop:
    return without_traceback(lambda: _run(flags, stop))


def _run(flags: VerifyFlags, stop: StopAsked) -> int:
  check(flags, {})
  tasks.entry(flags.task)  # refuses an unknown name before torch is loaded
  resolved = resolve(backend="native", num_envs=1, default_num_envs={})
  start_torch(resolved.torch_threads)
  from mjrl.learn.verify import NUM_ENVS, sizes, verify

  resolved = resolve(backend="native", num_envs=NUM_ENVS, default_num_envs={})
  resolved = replace(resolved, threads=max(resolved.threads, 2))  # also on one CPU
  task = tasks.build(flags.task)
  print(f"mjrl verify: {flags.task} on {resolved.name}, {sizes()}, seed {flags.seed}", flush=True)
  found = []
  for one in verify(task=task, resolved=resolved, seed=flags.seed, stop=stop):
    print(_said(one), flush=True)
    found.append(one)
  if stop:
    return stop.exit_code
  equal = all(one.equal for one in found)
  print("equal to the bit" if equal else "NOT equal: runs do not repeat on this machine")
  if flags.json is not None:
    from mjrl.learn.atomic import write_json

    content = {
      "task": flags.task,
      "backend": resolved.name,
      "seed": flags.seed,
      "versions": versions_of(PACKAGES),
      "equal": equal,
      "checks": [asdict(one) | {"equal": one.equal} for one in found],
    }
    write_json(flags.json, content)
  return 0 if equal else 1


def _said(one: "Check") -> str:
  """A comparison as the console shows it."""
  counts = ", ".join(f"{part} {count}" for part, count in one.same.items())
  lines = [f"{one.name}: {'equal' if one.equal else 'NOT EQUAL'}"]
  lines += [f"  equal tensors and numbers: {counts or 'none'}"]
  for path, difference in one.different.items():
    size = "no number" if difference is None else f"{difference:.3g}"
    lines.append(f"  NOT EQUAL: {path}, largest difference {size}")
  return "\n".join(lines)
