"""One run in several processes: what they tell one another, and what is said when one is gone.

rsl_rl reduces gradients, KL divergence and normalisers on the device. All that is here goes between
the CPUs, also where the device is a GPU: it is little, and a process that died is noticed at once.
A run of one process takes none of it.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from signal import Signals
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from mjrl.envs.describe import differences
from mjrl.learn.interrupts import StopAsked
from mjrl.sim.ranks import Ranks

T = TypeVar("T")

# How long a process waits for the others. The first one alone evaluates and writes, and a large
# evaluation takes long; a process that dies breaks its connections, and is noticed without this.
_PATIENCE = timedelta(hours=2)


@contextmanager
def joined(ranks: Ranks, device: str) -> Iterator[None]:
  """The group of a run's processes, for as long as the context is open.

  Args:
    ranks: this process's; alone, there is no group.
    device: where its tensors live, one of its own on a GPU.

  Raises:
    ConnectionError: another process is gone.
  """
  if ranks.alone:
    yield
    return
  on_gpu = device.startswith("cuda")
  with others_reachable():
    if on_gpu:
      torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=_PATIENCE)
    yield
    # Together to the end: torchrun ends the others as soon as one has left with a code that is
    # not 0, and the first may still be writing. After an error nobody waits.
    sys.stdout.flush()
    gathered(None)
    dist.destroy_process_group()


@contextmanager
def others_reachable() -> Iterator[None]:
  """Say in a sentence that another process is gone, in place of the network's own error.

  Raises:
    ConnectionError: in place of it.
  """
  try:
    yield
  except RuntimeError as error:
    if not isinstance(error, dist.DistError) and "gloo" not in str(error):
      raise
    # "[/some/file.cc:123] Connection closed by peer [127.0.0.1]:456. ..."
    reason = re.sub(r"^\[[^]]*\]\s*", "", str(error)).splitlines()[0].split(". ")[0]
    who = f"rank {dist.get_rank()}: " if dist.is_initialized() else ""
    raise ConnectionError(
      f"{who}another process of this run has died or cannot be reached ({reason}), and a "
      "distributed run ends with any of its processes; go on with --resume"
    ) from error


def gathered(value: T) -> list[T]:
  """What each process gives, by rank, in all of them; every process must call it."""
  if not _together():
    return [value]
  values: list[Any] = [None] * dist.get_world_size()
  dist.all_gather_object(values, value)
  return values


def from_first(value: T) -> T:
  """What the first process gives, in all of them."""
  return gathered(value)[0]


def summed(values: Tensor) -> Tensor:
  """Sum over the processes, element by element: the same to the bit in all of them."""
  if not _together():
    return values
  parts = gathered(values.tolist())
  return torch.tensor(parts, dtype=values.dtype, device=values.device).sum(0)


def averaged(scalars: Mapping[str, float]) -> dict[str, float]:
  """Plain mean over the processes, which all have the same names."""
  if not _together():
    return dict(scalars)
  parts = gathered(dict(scalars))
  return {name: sum(part[name] for part in parts) / len(parts) for name in scalars}


def stop_agreed(stop: StopAsked) -> bool:
  """Whether any process was asked to stop; each asks at the same place, and all take it up."""
  if not _together():
    return bool(stop)
  number = max(gathered(int(stop.signal or 0)))
  if number:
    stop.signal = Signals(number)
  return number > 0  # and not bool(stop): one that has come meanwhile is not yet the others'


def check_alike(**setup: Any) -> None:
  """Refuse processes that were started differently: they would wait for one another, or worse.

  Args:
    setup: plain values that must be the same in every process.

  Raises:
    ValueError: with what differs; in every process.
  """
  first, *others = gathered(setup)
  for rank, other in enumerate(others, 1):
    lines = differences(first, other)
    if lines:
      raise ValueError(
        f"rank {rank} was started differently from rank 0: {'; '.join(lines)}. Give every process "
        "the same flags and settings (.env files, MJRL_* variables), and the same version of mjrl"
      )


def _together() -> bool:
  return dist.is_available() and dist.is_initialized()
