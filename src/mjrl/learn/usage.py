"""What the process takes of the machine: what shows a leak, and a machine that others use."""

import time

import psutil
import torch

_MIB = 2**20


class Usage:
  """CPU time and memory of this process, all its threads, and memory of its GPU."""

  def __init__(self, device: str) -> None:
    """Start counting; `device` is torch's name of the one that the envs live on."""
    self._device = device
    self._process = psutil.Process()
    self._cpu_s = time.process_time()

  def since(self) -> dict[str, float]:
    """By their names in the log: CPU time since the last call, and the memory held now."""
    before_s, self._cpu_s = self._cpu_s, time.process_time()
    found = {
      "Perf/cpu_time": self._cpu_s - before_s,
      "Perf/memory_mib": self._process.memory_info().rss / _MIB,
    }
    if self._device.startswith("cuda"):
      free, total = torch.cuda.mem_get_info(self._device)  # whoever took it, warp or torch
      found["Perf/gpu_memory_mib"] = (total - free) / _MIB
    return found
