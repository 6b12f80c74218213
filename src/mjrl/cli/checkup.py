"""What the doctor looks at, a row each: what was found, whether it does, and what cures it."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import psutil

from mjrl.cli.settings import read_settings
from mjrl.sim.cpus import cpu_limits, usable_cpus
from mjrl.sim.cuda import cuda_device, cuda_devices, cuda_graphs
from mjrl.sim.memory import available_bytes
from mjrl.sim.packages import Package, checkout, packages
from mjrl.sim.resolve import Resolved, resolve
from mjrl.sim.versions import versions_in_doubt
from mjrl.view.display import probe_window, window_obstacle
from mjrl.view.renderers import obstacles

OK, NOTE, FAIL = "ok", "note", "FAIL"
_LEAST_FREE_BYTES = 1 << 30  # of disk and memory; less ends runs early
_GIB = 1 << 30
_WIDEST = 90  # of what a library says
_MANY_ENVS = 4096  # more than any machine has threads for


@dataclass(frozen=True, kw_only=True)
class Row:
  """A finding.

  status  "ok"; "note" where something optional is not there, or is worth knowing; "FAIL" where
          mjrl cannot do without
  cure    what to do, usually a command; "" if nothing
  """

  section: str
  name: str
  status: str
  found: str
  cure: str = ""


def checkup() -> Iterator[list[Row]]:
  """Look at one thing after the other, the slower ones last."""
  for look in (_machine, _gpu, _settings, _packages, _drawing, _engine):
    yield list(look())


def auto() -> Resolved:
  """What `--backend auto` takes on this machine, with its reasons."""
  return resolve(num_envs=_MANY_ENVS, default_num_envs={})


def _machine() -> Iterator[Row]:
  def row(name: str, found: str, cure: str = "", *, status: str = OK) -> Row:
    return Row(section="machine", name=name, status=status, found=found, cure=cure)

  yield row("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
  inside = (3, 11) <= sys.version_info[:2] < (3, 14)
  yield row(
    "python",
    f"{platform.python_version()}, {sys.executable}",
    "" if inside else "mjrl is made for Python 3.11 to 3.13: make PYTHON=python3.12 install",
    status=OK if inside else FAIL,
  )
  allowed, quota = cpu_limits()
  limits = f"{os.cpu_count()} in the machine, {allowed} by affinity"
  limits += f", {quota:g} by the container's quota" if quota is not None else ", no quota"
  yield row("CPUs", f"{usable_cpus()} usable ({limits})")
  free, total = available_bytes(), psutil.virtual_memory().total
  yield row(
    "memory",
    f"{free / _GIB:.1f} GiB free for this process, of {total / _GIB:.1f} in the machine",
    "" if free > _LEAST_FREE_BYTES else "close other programs, or give the container more",
    status=OK if free > _LEAST_FREE_BYTES else NOTE,
  )
  here = Path.cwd()
  disk, writable = shutil.disk_usage(here).free, os.access(here, os.W_OK)
  cure = "" if writable else "runs are written to ./logs: go elsewhere, or give --log_dir"
  if writable and disk < _LEAST_FREE_BYTES:
    cure = "make room, or give --log_dir"
  yield row(
    "this folder",
    f"{disk / _GIB:.1f} GiB free, {'writable' if writable else 'not writable'}",
    cure,
    status=NOTE if cure else OK,
  )


def _gpu() -> Iterator[Row]:
  count, found = cuda_devices()
  if not count:
    yield Row(section="GPU", name="CUDA", status=NOTE, found=f"{found}: trainings use the CPU")
    return
  for index in range(count):
    one, graphs = cuda_device(index), cuda_graphs(index)
    yield Row(
      section="GPU",
      name=f"cuda:{index}",
      status=OK if graphs == "on" else NOTE,
      found=f"{one.name}, {one.memory_bytes / _GIB:.0f} GiB, driver for CUDA {one.driver}; "
      f"CUDA graphs {graphs}",
    )
  try:
    import torch

    built, works = torch.version.cuda, torch.cuda.is_available()
  except Exception as error:  # the package's own row says more
    built, works = None, f"{error}"
  yield Row(
    section="GPU",
    name="torch's CUDA",
    status=OK if works is True else FAIL,
    found=f"built for CUDA {built}" if built else "a build without CUDA, and auto takes the GPU",
    cure=""
    if works is True
    else "install the CUDA build of torch that your driver has, see pytorch.org/get-started; or "
    "train with --backend native",
  )


def _settings() -> Iterator[Row]:
  try:
    settings = read_settings(Path.cwd(), os.environ)
  except ValueError as error:
    cure = "correct it, or remove it: every command stops at it"
    yield Row(section="settings", name="MJRL_*", status=FAIL, found=str(error), cure=cure)
    return
  for setting in settings.values():
    key, _, where = setting.source.partition(" in ")
    yield Row(section="settings", name=key, status=OK, found=f"{setting.value} (in {where})")


def _packages() -> Iterator[Row]:
  for one in packages():
    yield _package(one)
  if doubt := versions_in_doubt():
    said = doubt.removeprefix("WARNING: ")
    yield Row(section="packages", name="warp's parts", status=NOTE, found=said)


def _package(one: Package) -> Row:
  section = f"extra {one.extra}" if one.extra else "packages"
  install = f"pip install -c constraints.txt -e '.[{one.extra}]'" if one.extra else _INSTALL
  if checkout() is None:
    install = f"pip install 'mjrl[{one.extra}]'" if one.extra else "pip install --upgrade mjrl"
  status, found, cure = OK, one.installed or "", ""
  if one.problem:
    status, found, cure = NOTE if one.extra else FAIL, one.problem, install
  elif one.tested and not _same(one.installed or "", one.tested):
    status, found, cure = NOTE, f"{found}; tested is {one.tested}", install
  return Row(section=section, name=one.name, status=status, found=found, cure=cure)


_INSTALL = "pip install -c constraints.txt -e ."


def _same(installed: str, tested: str) -> bool:
  """Whether it is that release, whatever it was built for ("2.13.0+cpu")."""
  return installed.partition("+")[0] == tested.partition("+")[0]


def _drawing() -> Iterator[Row]:
  def row(name: str, obstacle: str, what: str) -> Row:
    found = shorten(obstacle, _WIDEST) or what
    return Row(section="pictures", name=name, status=NOTE if obstacle else OK, found=found)

  obstacle = window_obstacle(sys.platform, os.environ)
  if not obstacle and sys.platform != "darwin":
    obstacle = probe_window()
  yield row("window", obstacle, "opens")
  chosen = os.environ.get("MUJOCO_GL", "")
  yield row("MUJOCO_GL", "", chosen or "not set, MuJoCo chooses")
  for name, why in obstacles().items():
    yield row(f"MUJOCO_GL={name}", why, "draws without a window")


def _engine() -> Iterator[Row]:
  """Whether the engine that every machine has does step."""
  found = _tried(_step)
  yield Row(
    section="engine",
    name="native:cpu",
    status=FAIL if found else OK,
    found=found or "two robots stepped",
    cure=_INSTALL if found else "",
  )


def _step() -> None:
  from mjrl import tasks
  from mjrl.envs.scene import compile_scene
  from mjrl.sim.native import NativeBackend

  task = tasks.build(next(iter(tasks.TASKS)))
  NativeBackend(compile_scene(task), 2, 2).step(task.substeps)


def _tried(work: Callable[[], None]) -> str:
  """Why some work fails; "" if it does not."""
  try:
    work()
  except Exception as error:  # whatever it is, it is what the user came for
    return f"{type(error).__name__}: {error}"
  return ""
