"""`doctor --size`: how many envs the machine is good for."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mjrl import tasks
from mjrl.cli.flags import DoctorFlags
from mjrl.cli.listing import aligned
from mjrl.cli.prepare import start_torch
from mjrl.envs.recipe import Recipe
from mjrl.learn.sizes import KNEE, Size, advised, keep, knee
from mjrl.sim.cpus import usable_cpus
from mjrl.sim.resolve import Resolved, resolve

SCHEMA = "mjrl/size/1"
_HEADER = ("envs", "env-steps/s", "iteration", "collecting", "learning", "memory", "a training")


def size(flags: DoctorFlags) -> int:
  """Measure, print the table and the command to use. Returns the exit code.

  Raises:
    ValueError: an unknown task, a task without a recipe for the engine, or no env fits.
    BackendUnavailable: see mjrl.sim.resolve.
  """
  assert flags.task is not None  # the caller has looked
  entry = tasks.entry(flags.task)
  resolved = resolve(
    backend=flags.backend, device=flags.device, num_envs=None, default_num_envs=entry.num_envs
  )
  start_torch(resolved.torch_threads)
  from mjrl.learn.sizing import counts, measure

  task = tasks.build(flags.task)
  recipe = task.recipes[resolved.backend]
  out = sys.stderr if flags.json else sys.stdout
  print(f"mjrl doctor: sizes of {task.name} on {resolved.name}, a few seconds each", file=out)
  sizes: list[Size] = []
  ended = ""
  for found in measure(task, resolved, usable_cpus(), counts(resolved, recipe.num_envs)):
    if isinstance(found, str):
      ended = found
      continue
    sizes.append(found)
    print(f"  {found.num_envs} envs: {found.env_steps_per_s:.0f} env-steps/s", file=out, flush=True)
  if not sizes:
    raise ValueError(f"nothing could be measured; {ended}")
  best = advised(sizes, recipe.num_envs)
  command = _command(flags, resolved, best)
  try:
    kept = (
      f"kept in {keep(task.name, resolved, sizes)}: train.py warns of what is far past the knee"
    )
  except OSError as error:
    kept = f"not kept, so that train.py cannot warn: {error}"
  if flags.json:
    print(json.dumps(_plain(task.name, resolved, sizes, ended, command), indent=2))
    return 0
  print(_table(sizes, recipe))
  print(
    f"knee: {knee(sizes)} envs, the least with {KNEE:.0%} of the most env-steps/s; beyond it, "
    f"iterations grow longer rather than fuller\nended: {ended}\nuse: {command}\n     "
    f"{_why(best, recipe, sizes)}\n{kept}"
  )
  return 0


def _table(sizes: Sequence[Size], recipe: Recipe) -> str:
  at, own = knee(sizes), recipe.num_envs
  rows = []
  for one in sizes:
    marks = ["knee"] * (one.num_envs == at) + ["the recipe's"] * (one.num_envs == own)
    rows.append(
      [
        str(one.num_envs),
        f"{one.env_steps_per_s:.0f}",
        f"{one.iteration_s:.2f} s",
        f"{one.collection_s:.2f} s",
        f"{one.learning_s:.2f} s",
        f"{one.taken_bytes / 2**20:.0f} MiB",
        _duration(one.iteration_s * recipe.max_iterations)
        + (f"  <- {', '.join(marks)}" * bool(marks)),
      ]
    )
  return aligned(_HEADER, rows) + (
    f"\na training: the recipe's {recipe.max_iterations} iterations at that speed, which is "
    "that of its start; memory: taken beside what was there before"
  )


def _why(best: int, recipe: Recipe, sizes: Sequence[Size]) -> str:
  one = next(size for size in sizes if size.num_envs == best)
  took = f"{recipe.max_iterations} iterations take about " + _duration(
    one.iteration_s * recipe.max_iterations
  )
  if best == recipe.num_envs:
    return f"the number that the recipe's others go with; {took}"
  return f"the most that was measured, see above why not the recipe's {recipe.num_envs}; {took}"


def _command(flags: DoctorFlags, resolved: Resolved, num_envs: int) -> str:
  words = ["python scripts/train.py", f"--task {flags.task}", f"--num_envs {num_envs}"]
  words += [f"--backend {flags.backend}"] if flags.backend != "auto" else []
  words += [f"--device {flags.device}"] if flags.device != "auto" else []
  return " ".join([*words, "--headless"])


def _duration(seconds: float) -> str:
  return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} h"


def _plain(
  task: str, resolved: Resolved, sizes: Sequence[Size], ended: str, command: str
) -> dict[str, Any]:
  return {
    "schema": SCHEMA,
    "task": task,
    "backend": resolved.name,
    "device": resolved.device,
    "sizes": [asdict(one) | {"iteration_s": one.iteration_s} for one in sizes],
    "knee": knee(sizes),
    "ended": ended,
    "command": command,
  }
