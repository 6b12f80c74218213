"""What the CUDA driver offers, asked without loading anything that needs CUDA."""

import ctypes
import os
import sys
from dataclasses import dataclass

_ERRORS = {100: "no device", 803: "driver and library versions differ", 999: "unknown"}
_MEMORY_POOLS = 115  # CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
_GRAPHS_DRIVER = 12_040  # CUDA 12.4, as the driver counts: the first with loops in graphs
_POOLS_SETTING = "WARP_ENABLE_MEMPOOLS_AT_INIT"


def cuda_devices() -> tuple[int, str]:
  """How many CUDA devices the driver offers, and in words what was found."""
  if sys.platform == "darwin":
    return 0, "macOS has no CUDA"
  try:
    driver = _driver()
  except OSError:
    return 0, f"no CUDA driver ({_library()} is not installed)"
  code = driver.cuInit(0)
  if code != 0:
    meaning = _ERRORS.get(code, "see the CUDA driver's error codes")
    return 0, f"the CUDA driver does not start (error {code}: {meaning})"
  count = ctypes.c_int(0)
  driver.cuDeviceGetCount(ctypes.byref(count))
  if count.value == 0:
    return 0, "the CUDA driver sees no device (is CUDA_VISIBLE_DEVICES empty?)"
  return count.value, f"{count.value} CUDA device{'s' if count.value > 1 else ''}"


@dataclass(frozen=True, kw_only=True)
class CudaDevice:
  """A device as the driver tells of it; driver is the CUDA version that it is made for."""

  name: str
  memory_bytes: int
  driver: str


def cuda_device(index: int) -> CudaDevice:
  """What device cuda:index, one of `cuda_devices`, is."""
  driver = _driver()
  device, version = ctypes.c_int(0), ctypes.c_int(0)
  name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t(0)
  driver.cuDeviceGet(ctypes.byref(device), index)
  driver.cuDeviceGetName(name, len(name), device)
  driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
  driver.cuDriverGetVersion(ctypes.byref(version))
  return CudaDevice(
    name=name.value.decode(errors="replace"),
    memory_bytes=memory.value,
    driver=_version(version.value),
  )


def cuda_graphs(index: int) -> str:
  """Whether a control step on device cuda:index can be one launch: "on", or "off: why".

  index must be one of `cuda_devices`.
  """
  driver = _driver()
  number = ctypes.c_int(0)
  driver.cuDriverGetVersion(ctypes.byref(number))
  version = number.value
  device = ctypes.c_int(0)
  driver.cuDeviceGet(ctypes.byref(device), index)
  pools = ctypes.c_int(0)
  driver.cuDeviceGetAttribute(ctypes.byref(pools), _MEMORY_POOLS, device)
  return graphs_in_words(version, bool(pools.value), os.environ.get(_POOLS_SETTING, "1"))


def graphs_in_words(driver: int, pools: bool, setting: str) -> str:
  """The answer of `cuda_graphs`.

  Args:
    driver: its version, 1000 * major + 10 * minor.
    pools: whether the device has memory pools.
    setting: of Warp, whether to use them.
  """
  slow = "; WARNING: expect several times less speed"
  if driver < _GRAPHS_DRIVER:
    return f"off: the driver is of CUDA {_version(driver)}, and 12.4 is needed{slow}"
  if not pools:
    return f"off: the device has no memory pools{slow}"
  if setting.lower() in ("0", "false", "no"):
    return f"off: {_POOLS_SETTING} is {setting}{slow}"
  return "on"


def _version(number: int) -> str:
  """A CUDA version as people write it, of 1000 * major + 10 * minor."""
  return f"{number // 1000}.{number % 1000 // 10}"


def _library() -> str:
  return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def _driver() -> ctypes.CDLL:
  return ctypes.CDLL(_library())
