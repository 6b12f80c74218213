"""Whether a request fits in memory, asked before anything large is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from mjrl.sim.cpus import cgroup_folders
from mjrl.sim.resolve import Resolved

if TYPE_CHECKING:
  import mujoco

# MuJoCo reserves an arena per env but touches only what contacts and constraints need, and the
# batch adds rows of its own: 200 KiB together for a robot of 22 joints that walks, rounded up.
_ARENA_TOUCHED = 256 * 1024
_KEPT_FREE = 0.1  # share of the memory that is left to everything else
# Files of a cgroup: its limit, and what it has taken of it.
_CGROUP_FILES = {
  1: ("memory.limit_in_bytes", "memory.usage_in_bytes"),
  2: ("memory.max", "memory.current"),
}


def engine_bytes_per_env(model: mujoco.MjModel) -> int:
  """What native:cpu keeps for each env: one MjData, and the part of its arena that is used."""
  from mujoco import MjData  # here, so that what is free can be asked where no engine loads

  return MjData(model).nbuffer + _ARENA_TOUCHED


def check_room(
  resolved: Resolved, model: mujoco.MjModel, *, beside: int = 0, more_envs: int = 0
) -> None:
  """Refuse a number of envs that will not fit where they are to live.

  Args:
    resolved: engine, device and env count, of each of its processes.
    model: of every env.
    beside: bytes that are needed for each env beside the engine, on the same device.
    more_envs: of the engine alone, such as an evaluation's.

  Raises:
    ValueError: see `check_memory`.
  """
  free, where, sharing = None, "", resolved.ranks.local_world_size
  if resolved.backend == "native":
    engine = engine_bytes_per_env(model)
  else:
    from mjrl.sim.warp_sizes import bytes_per_env

    engine = bytes_per_env(model, resolved.nconmax, resolved.njmax)
    if resolved.device.startswith("cuda"):
      import torch

      free, where = torch.cuda.mem_get_info(resolved.device)[0], f" on {resolved.device}"
      sharing = 1  # each process has a device of its own
  check_memory(
    resolved.num_envs,
    engine + beside,
    free,
    fixed_bytes=engine * more_envs,
    sharing=sharing,
    where=where,
  )


def check_memory(
  num_envs: int,
  bytes_per_env: int,
  available: int | None = None,
  *,
  fixed_bytes: int = 0,
  sharing: int = 1,
  where: str = "",
) -> None:
  """Refuse a number of envs that will not fit.

  Args:
    num_envs: asked for.
    bytes_per_env: needed for each.
    available: bytes that are free; None asks the machine, and the container if there is one.
    fixed_bytes: needed beside them.
    sharing: processes that each take as much.
    where: they are free, in words.

  Raises:
    ValueError: with what is needed, what there is, and the largest number that fits.
  """
  available = available_bytes() if available is None else available
  budget = int(available * (1 - _KEPT_FREE)) // sharing
  needed = num_envs * bytes_per_env + fixed_bytes
  if needed > budget:
    most = max(budget - fixed_bytes, 0) // bytes_per_env
    fits = f"at most {most} envs fit" if most else "not even one env fits"
    raise ValueError(
      f"--num_envs {num_envs} needs about {_gib(needed)}"
      f"{f' in each of {sharing} processes' if sharing > 1 else ''}, and "
      f"{_gib(available)} are free{where}; {fits}"
    )


def available_bytes(root: Path = Path("/")) -> int:
  """Memory that this process may still take: of the machine's, and of its container's."""
  free = psutil.virtual_memory().available
  for version, folder in cgroup_folders("memory", root):
    try:
      limit, taken = (int((folder / name).read_text()) for name in _CGROUP_FILES[version])
    except (OSError, ValueError):  # no such file, or "max"
      continue
    free = min(free, limit - taken)
  return max(free, 0)


def _gib(size: int) -> str:
  return f"{size / 2**30:.1f} GiB"
