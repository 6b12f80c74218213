"""Which engine, on which device, with how many envs and threads, and why.

An explicit choice never falls back: what cannot be had is refused with what is missing. Nothing
here imports torch, mujoco or warp, so that a refusal takes milliseconds.
"""

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mjrl.names import nearest
from mjrl.sim.cpus import usable_cpus
from mjrl.sim.cuda import cuda_devices, cuda_graphs
from mjrl.sim.ranks import ALONE, Ranks

BACKENDS = ("auto", "native", "warp")

MAX_AUTO_THREADS = 8
MAX_TORCH_THREADS = 4


class BackendUnavailable(RuntimeError):
  """The engine or device that was asked for cannot be used here; says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
  """What a run uses.

  Attributes:
    backend: "native" or "warp".
    device: where tensors live: "cpu", "cuda:0", ...
    num_envs: environments simulated at once.
    threads: simulation threads; 0 on warp, which has none.
    torch_threads: threads for torch's own operations.
    nconmax: contacts that warp has room for, per env; None measures.
    njmax: constraint rows that warp has room for in each env; None measures.
    cuda_graphs: whether warp's step is one launch, "on" or "off: why"; "" on the CPU.
    reasons: for each of the fields above, "given" or "auto: why", for the banner.
    ranks: which process of a distributed run this is; the fields above are of this one process.
  """

  backend: str
  device: str
  num_envs: int
  threads: int
  torch_threads: int
  nconmax: int | None = None
  njmax: int | None = None
  cuda_graphs: str = ""
  reasons: Mapping[str, str]
  ranks: Ranks = ALONE

  @property
  def name(self) -> str:
    """The engine's name: native:cpu, warp:cuda or warp:cpu."""
    return f"{self.backend}:{self.device.split(':')[0]}"


def resolve(
  *,
  backend: str = "auto",
  device: str = "auto",
  num_envs: int | None,
  default_num_envs: Mapping[str, int],
  cpu_threads: int = 0,
  ranks: Ranks = ALONE,
  nconmax: int | None = None,
  njmax: int | None = None,
) -> Resolved:
  """Turn what was asked for into what is used.

  Args:
    backend: "auto", "native" or "warp".
    device: "auto", "cpu", "cuda" or "cuda:N".
    num_envs: environments, or None for the backend's default.
    default_num_envs: the default for each backend.
    cpu_threads: simulation threads on native; 0 chooses min(usable CPUs, 8, num_envs).
    ranks: which process of a distributed run this is; those of a node share its CPUs, and each has
      a GPU of its own.
    nconmax: contacts that warp is to have room for, per env; None measures.
    njmax: constraint rows that warp is to have room for in each env; None measures.

  Raises:
    ValueError: a value that no machine could satisfy.
    BackendUnavailable: a choice that this machine or this release cannot satisfy.
  """
  check_names(backend, device)
  if cpu_threads < 0:
    raise ValueError(f"cpu_threads is {cpu_threads}; it must be 0 (choose for me) or more")
  chosen, why_backend = _choose_backend(backend, device)
  where, why_device = _choose_device(chosen, device, ranks)
  for name, value in (("nconmax", nconmax), ("njmax", njmax)):
    if value is not None and chosen != "warp":
      raise ValueError(
        f"--{name} has no effect on {chosen}, whose memory grows with the contacts: leave it out"
      )
  envs, why_envs = _choose_num_envs(num_envs, chosen, default_num_envs)
  cpus = max(usable_cpus() // ranks.local_world_size, 1)
  threads, why_threads = _choose_threads(cpu_threads, chosen, cpus, envs, ranks)
  torch_threads, why_torch = _choose_torch_threads(cpus)
  return Resolved(
    backend=chosen,
    device=where,
    num_envs=envs,
    threads=threads,
    torch_threads=torch_threads,
    nconmax=nconmax,
    njmax=njmax,
    cuda_graphs=cuda_graphs(_cuda_index(where)) if where.startswith("cuda") else "",
    reasons={
      "backend": why_backend,
      "device": why_device,
      "num_envs": why_envs,
      "threads": why_threads,
      "torch_threads": why_torch,
    },
    ranks=ranks,
  )


def check_names(backend: str, device: str) -> None:
  """Refuse a backend or a device that exists nowhere.

  Raises:
    ValueError: with the valid names.
  """
  if backend not in BACKENDS:
    raise ValueError(f"there is no backend {backend!r}; {nearest(backend, BACKENDS)}")
  if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
    raise ValueError(
      f"there is no device {device!r}; {nearest(device, ('auto', 'cpu', 'cuda', 'cuda:N'))}"
    )


def resolve_other(engine: str, first: Resolved, cpu_threads: int) -> Resolved:
  """The engine to compare the first one with, with as many envs.

  Args:
    engine: "native", "warp", or either with its device: "warp:cpu", "warp:cuda:1".
    first: what was resolved.
    cpu_threads: simulation threads on native, as `resolve` takes it.

  Raises:
    ValueError: there is no such engine, or it is the first one.
    BackendUnavailable: it cannot be had here.
  """
  backend, _, device = engine.partition(":")
  device = device or "auto"
  if backend not in ("native", "warp"):
    choices = ("native", "warp", "warp:cpu", "warp:cuda:N")
    raise ValueError(
      f"--compare_backend: there is no engine {engine!r}; {nearest(engine, choices)}"
    )
  check_names(backend, device)
  if backend == "native" and device not in ("auto", "cpu"):
    raise BackendUnavailable("--compare_backend native runs on the CPU only: leave the device out")
  if backend == "warp" and (missing := _missing_for_warp(device)):
    cure = "" if missing == _missing_mujoco_warp() else "; compare with warp:cpu, which is slow"
    raise BackendUnavailable(f"--compare_backend {engine} cannot run here: {missing}{cure}")
  other = resolve(
    backend=backend,
    device=device,
    num_envs=first.num_envs,
    default_num_envs={},
    cpu_threads=cpu_threads,
  )
  if (other.backend, other.device) == (first.backend, first.device):
    raise ValueError(
      f"--compare_backend {engine} is {other.backend} on {other.device}, the engine that is "
      f"measured first: compare with {'warp' if other.backend == 'native' else 'native'}"
    )
  slow = "; WARNING: warp on the CPU is slow" if other.name == "warp:cpu" else ""
  return replace(other, reasons={**other.reasons, "device": f"given{slow}"})


def _choose_backend(backend: str, device: str) -> tuple[str, str]:
  if backend == "native":
    if device not in ("auto", "cpu"):
      raise BackendUnavailable(
        f"the native backend runs on the CPU only, and --device is {device}: "
        "leave --device out, or use --backend warp"
      )
    return "native", "given"
  if backend == "warp" or device.startswith("cuda"):
    _require_warp(device)
    return "warp", "given" if backend == "warp" else f"auto: device {device} was given"
  if device == "cpu":
    return "native", "auto: device cpu was given"
  missing = _missing_for_cuda(0)
  if missing:
    return "native", f"auto: {missing}"
  return "warp", f"auto: {cuda_devices()[1]} and mujoco_warp"


def _missing_for_cuda(index: int) -> str:
  """What warp:cuda lacks on this machine, in words; empty if nothing."""
  count, found = cuda_devices()
  if count == 0:
    return found
  if index >= count:
    return f"there is no device cuda:{index}, only {found}"
  return _missing_mujoco_warp()


def _missing_for_warp(device: str) -> str:
  """The same of warp on any device; "auto" is CUDA's first."""
  return _missing_mujoco_warp() if device == "cpu" else _missing_for_cuda(_cuda_index(device))


def _missing_mujoco_warp() -> str:
  found = importlib.util.find_spec("mujoco_warp") is not None
  return "" if found else "mujoco_warp is not installed (pip install mujoco-warp)"


def _require_warp(device: str) -> None:
  asked = "--backend warp" if device == "auto" else f"--backend warp --device {device}"
  missing = _missing_for_warp(device)
  instead = "use --backend native, or for debugging --backend warp --device cpu (slow)"
  if missing:
    raise BackendUnavailable(f"{asked} cannot run here: {missing}. What to do: {instead}")


def _cuda_index(device: str) -> int:
  return int(device.partition(":")[2] or 0) if device.startswith("cuda") else 0


def _choose_device(backend: str, device: str, ranks: Ranks) -> tuple[str, str]:
  if backend == "native":
    why = "given" if device == "cpu" else "auto: the native backend runs on the CPU"
    return "cpu", why
  if device == "cpu":
    return "cpu", "given; WARNING: warp on the CPU is for debugging, to train use --backend native"
  if not ranks.alone:
    return _device_of_rank(device, ranks)
  return f"cuda:{_cuda_index(device)}", "auto: first device" if device == "auto" else "given"


def _device_of_rank(device: str, ranks: Ranks) -> tuple[str, str]:
  if ":" in device:
    raise ValueError(
      f"--device {device} would put all {ranks.local_world_size} processes of this node on one "
      "GPU; each takes one of its own: leave --device out"
    )
  count, found = cuda_devices()
  if ranks.local_world_size > count:
    raise BackendUnavailable(
      f"{ranks.local_world_size} processes on this node need a GPU each, and there is only "
      f"{found}: start torchrun with --nproc_per_node {count}, or use --backend native"
    )
  return f"cuda:{ranks.local_rank}", "auto: one per process, this is the first's"


def _choose_num_envs(
  given: int | None, backend: str, default_num_envs: Mapping[str, int]
) -> tuple[int, str]:
  if given is not None:
    if given < 1:
      raise ValueError(f"num_envs is {given}; it must be 1 or more")
    return given, "given"
  if backend not in default_num_envs:
    raise ValueError(
      f"there is no default number of envs for the {backend} backend, only for: "
      f"{', '.join(default_num_envs) or 'none'}. Give --num_envs"
    )
  return default_num_envs[backend], f"auto: default on {backend}"


def _choose_threads(
  given: int, backend: str, cpus: int, num_envs: int, ranks: Ranks
) -> tuple[int, str]:
  usable = f"{cpus} usable CPU{'s' if cpus > 1 else ''}"
  if ranks.local_world_size > 1:
    usable += f" for each of {ranks.local_world_size} processes"
  if backend == "warp":
    return 0, "auto: warp has no simulation threads"
  envs = f"{num_envs} env{'s' if num_envs > 1 else ''}"
  if given == 0:
    why = f"auto: {usable}, {envs}, at most {MAX_AUTO_THREADS}"
    return min(cpus, MAX_AUTO_THREADS, num_envs), why
  if given > cpus:
    return given, f"given; WARNING: more than {usable}, expect it to be slower"
  if given > num_envs:
    return given, f"given; WARNING: more than {envs}, the rest stays idle"
  return given, "given"


def _choose_torch_threads(cpus: int) -> tuple[int, str]:
  """Simulation and torch take turns, so each may use the CPUs, but small matrices need few.

  On two cores one torch thread is as fast as two, and does not slow the simulation by spinning.
  """
  if cpus <= 4:
    return 1, "auto: one is fastest on up to 4 CPUs, and leaves them to the simulation"
  return min(cpus // 2, MAX_TORCH_THREADS), f"auto: half of {cpus} CPUs, at most 4"
