"""Recording the engine's procedures once, so that running one is a single launch.

A control step is hundreds of kernels.  Launched one by one from Python they cost more than they
compute; recorded, the device runs them on its own.  Warp records on the CPU too, and by the same
calls, so what the tests see there is what a GPU runs, but for the streams.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import warp as wp


class Graphs:
  """Runs procedures on a device: directly the first time, recorded from the second on.

  The first run loads the kernels, which must not happen within a recording.  A recording holds the
  addresses of its arrays: `forget` it when one is replaced.
  """

  def __init__(self, device: str) -> None:
    """Find out whether the device can record: `obstacle` says what is in the way, "" if nothing."""
    self._device = wp.get_device(device)
    self.obstacle = _obstacle(self._device)
    self._ran: set[str] = set()
    self._graphs: dict[str, wp.Graph | None] = {}

  def run(self, name: str, procedure: Callable[[], None]) -> None:
    """Run a procedure, which launches the same kernels on the same arrays every time."""
    graph = self._graphs.get(name)
    if graph is None and name in self._ran and not self.obstacle:
      graph = self._record(name, procedure)
    with self.scope():
      if graph is not None:
        wp.capture_launch(graph)
      else:
        procedure()
    self._ran.add(name)

  def forget(self) -> None:
    """Drop every recording: an array has been replaced."""
    self._graphs.clear()

  @contextmanager
  def scope(self) -> Iterator[None]:
    """Warp on this device, in line with torch: what either writes, the other sees."""
    if self._device.is_cuda:
      with wp.ScopedStream(wp.stream_from_torch(torch.cuda.current_stream(str(self._device)))):
        yield
    else:
      with wp.ScopedDevice(self._device):
        yield

  def _record(self, name: str, procedure: Callable[[], None]) -> wp.Graph | None:
    """Record a procedure, or None and a warning where that fails."""
    try:
      # Warp's own stream: torch's is usually the default one, on which CUDA does not record.
      with wp.ScopedDevice(self._device), wp.ScopedCapture(device=self._device) as capture:
        procedure()
    except RuntimeError as error:
      self.obstacle = f"recording failed: {error}"
      print(f"WARNING: no CUDA graphs, expect several times less speed: {self.obstacle}")
      return None
    graph = self._graphs[name] = capture.graph
    return graph


def _obstacle(device: wp.Device) -> str:
  if device.is_cpu:
    return ""
  if not wp.is_conditional_graph_supported():
    driver, toolkit = wp.get_cuda_driver_version(), wp.get_cuda_toolkit_version()
    return f"the driver is of CUDA {driver}, Warp's build of {toolkit}, and both must be 12.4"
  if not wp.is_mempool_enabled(device):
    return f"{device} has no memory pools, or WARP_ENABLE_MEMPOOLS_AT_INIT turns them off"
  return ""
