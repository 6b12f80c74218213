"""How many envs a machine is good for: what was measured, where more stop paying, and what is kept.

Imports no torch: a training looks here before it builds anything.
"""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mjrl.learn.atomic import write_json
from mjrl.sim.cpus import usable_cpus
from mjrl.sim.cuda import cuda_device
from mjrl.sim.resolve import Resolved

SCHEMA = "mjrl/size/1"
KNEE = 0.8  # share of the most env-steps/s from which on more envs no longer pay
FAR = 4  # times the knee, or the recipe's number if that is more, at which a training warns


@dataclass(frozen=True, kw_only=True)
class Size:
  """A number of envs, and what an iteration of it takes.

  env_steps_per_s  learning included
  taken_bytes      of the device's memory, engine and learning
  """

  num_envs: int
  env_steps_per_s: float
  collection_s: float
  learning_s: float
  taken_bytes: int

  @property
  def iteration_s(self) -> float:
    """Collection and learning."""
    return self.collection_s + self.learning_s


def knee(sizes: Sequence[Size]) -> int:
  """The least number of envs with `KNEE` of the most env-steps/s that were measured."""
  most = max(size.env_steps_per_s for size in sizes)
  return min(s.num_envs for s in sizes if s.env_steps_per_s >= KNEE * most)


def advised(sizes: Sequence[Size], recipe_envs: int) -> int:
  """Envs to train with: those that the recipe is made for, where they fit.

  They are what its other numbers were chosen with; with fewer, rollouts are longer, so that nothing
  is won.  Where they do not fit, it is the most that were measured.
  """
  return min(recipe_envs, max(size.num_envs for size in sizes))


def keep(task: str, resolved: Resolved, sizes: Sequence[Size]) -> Path:
  """Keep what was measured, for trainings on this machine to look at.  Returns the file.

  Raises:
    OSError: it cannot be written.
  """
  path = _path()
  entry = {"knee": knee(sizes), "sizes": [asdict(size) for size in sizes]}
  write_json(path, {"schema": SCHEMA, "machines": _machines() | {_key(task, resolved): entry}})
  return path


def past_the_knee(task: str, resolved: Resolved, recipe_envs: int) -> str:
  """What to warn of before a training with so many envs; "" if nothing is known against it.

  Without a measurement, the recipe's number stands for the knee on native, whose envs share a few
  cores; on warp nothing is known then.
  """
  envs, entry = resolved.num_envs, _machines().get(_key(task, resolved))
  if entry:
    at = max(entry["knee"], recipe_envs)
    if envs < FAR * at:
      return ""
    last = max(entry["sizes"], key=lambda size: size["num_envs"])
    seconds = (last["collection_s"] + last["learning_s"]) * max(envs / last["num_envs"], 1)
    about = f", about {seconds:.0f} s each" if envs >= last["num_envs"] else ""
    return (
      f"--num_envs {envs} is far past what pays on this machine: env-steps/s hardly grow beyond "
      f"{entry['knee']} envs (doctor --size measured it), and iterations grow longer{about}"
    )
  if resolved.backend == "native" and envs >= FAR * recipe_envs:
    return (
      f"--num_envs {envs} is {envs / recipe_envs:.3g} times what the recipe for native is made "
      f"for, and iterations are as much longer; python -m mjrl doctor --size --task {task} "
      "measures what pays on this machine"
    )
  return ""


def _machines() -> dict[str, Any]:
  try:
    kept = json.loads(_path().read_text(encoding="utf-8"))
    return kept["machines"] if kept["schema"] == SCHEMA else {}
  except (OSError, ValueError, KeyError, TypeError):  # none yet, or one that somebody edited
    return {}


def _key(task: str, resolved: Resolved) -> str:
  """Task, engine, and the machine by its name and what is used of it."""
  if resolved.device.startswith("cuda"):
    what = cuda_device(int(resolved.device.partition(":")[2] or 0)).name
  else:
    what = f"{usable_cpus()} CPUs"
  return f"{task} on {resolved.name}, {platform.node()}, {what}"


def _path() -> Path:
  folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
  return Path(folder) / "mjrl" / "size.json"
