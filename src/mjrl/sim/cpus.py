"""How many CPUs this process may use: affinity and container quota, not what the machine has."""

import os
from pathlib import Path, PurePosixPath


def usable_cpus(*, root: Path = Path("/")) -> int:
  """CPUs that the process may keep busy.  >= 1.

  The smaller of the scheduler's affinity mask and the cgroup quota (v1 or v2), rounded down:
  a thread beyond the quota only makes all of them wait.

  root  where /proc and /sys are looked for.
  """
  quota = _cgroup_quota_cpus(root)
  allowed = _affinity_cpus()
  return max(1, allowed if quota is None else min(allowed, int(quota)))


def _affinity_cpus() -> int:
  if hasattr(os, "sched_getaffinity"):  # not on macOS or Windows
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def _cgroup_quota_cpus(root: Path) -> float | None:
  """The tightest CPU quota of this process's cgroups, in CPUs; None if there is none."""
  try:
    lines = (root / "proc/self/cgroup").read_text().splitlines()
  except OSError:
    return None
  quotas: list[float] = []
  for line in lines:
    _, controllers, path = line.split(":", 2)
    if controllers == "":
      mount, read = root / "sys/fs/cgroup", _quota_v2
    elif "cpu" in controllers.split(","):
      mount, read = _v1_mount(root, controllers), _quota_v1
    else:
      continue
    # A parent's quota binds its children. Inside a container the path may be the host's; the
    # container's own limits then stand at the mount itself, which is the last parent.
    group = PurePosixPath(path.lstrip("/"))
    for folder in dict.fromkeys([group, *group.parents]):
      quota = read(mount / folder)
      if quota is not None:
        quotas.append(quota)
  return min(quotas, default=None)


def _v1_mount(root: Path, controllers: str) -> Path:
  together = root / "sys/fs/cgroup" / controllers
  return together if together.is_dir() else root / "sys/fs/cgroup/cpu"


def _quota_v2(folder: Path) -> float | None:
  try:
    quota, period = (folder / "cpu.max").read_text().split()
  except (OSError, ValueError):
    return None
  return None if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float | None:
  try:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    period = int((folder / "cpu.cfs_period_us").read_text())
  except (OSError, ValueError):
    return None
  return quota / period if quota > 0 and period > 0 else None
