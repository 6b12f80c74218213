"""How many CPUs this process may use: affinity and container quota, not what the machine has."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def usable_cpus(*, root: Path = Path("/")) -> int:
  """CPUs that the process may keep busy.  >= 1.

  The smaller of the scheduler's affinity mask and the cgroup quota (v1 or v2), rounded down:
  a thread beyond the quota only makes all of them wait.

  root  where /proc and /sys are looked for.
  """
  allowed, quota = cpu_limits(root)
  return max(1, allowed if quota is None else min(allowed, int(quota)))


def cpu_limits(root: Path = Path("/")) -> tuple[int, float | None]:
  """CPUs of the affinity mask, and of the cgroup quota; None where there is no quota."""
  return _affinity_cpus(), _cgroup_quota_cpus(root)


def _affinity_cpus() -> int:
  if hasattr(os, "sched_getaffinity"):  # not on macOS or Windows
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def cgroup_folders(controller: str, root: Path = Path("/")) -> Iterator[tuple[int, Path]]:
  """The cgroups that bind this process, innermost first: version (1 or 2) and folder of each.

  Args:
    controller: "cpu" or "memory".
    root: where /proc and /sys are looked for.
  """
  try:
    lines = (root / "proc/self/cgroup").read_text().splitlines()
  except OSError:
    return
  for line in lines:
    _, controllers, path = line.split(":", 2)
    if controllers == "":
      version, mount = 2, root / "sys/fs/cgroup"
    elif controller in controllers.split(","):
      version, mount = 1, _v1_mount(root, controllers, controller)
    else:
      continue
    # A parent's limit binds its children. Inside a container the path may be the host's; the
    # container's own limits then stand at the mount itself, which is the last parent.
    group = PurePosixPath(path.lstrip("/"))
    for folder in dict.fromkeys([group, *group.parents]):
      yield version, mount / folder


def _cgroup_quota_cpus(root: Path) -> float | None:
  """The tightest CPU quota of this process's cgroups, in CPUs; None if there is none."""
  read = {1: _quota_v1, 2: _quota_v2}
  quotas = [read[version](folder) for version, folder in cgroup_folders("cpu", root)]
  return min((quota for quota in quotas if quota is not None), default=None)


def _v1_mount(root: Path, controllers: str, controller: str) -> Path:
  together = root / "sys/fs/cgroup" / controllers
  return together if together.is_dir() else root / "sys/fs/cgroup" / controller


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
