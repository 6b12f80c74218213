"""From what was resolved to an engine that holds the model."""

import mujoco

from mjrl.sim.backend import Backend
from mjrl.sim.resolve import Resolved


def open_backend(resolved: Resolved, model: mujoco.MjModel) -> Backend:
  """The engine that was resolved, with its envs at the model's default state."""
  if resolved.backend == "native":
    from mjrl.sim.native import NativeBackend

    return NativeBackend(model, resolved.num_envs, resolved.threads)
  print(
    "warp: loading kernels; what is not in Warp's cache yet is compiled, which takes minutes once",
    flush=True,
  )
  from mjrl.sim.warp import WarpBackend
  from mjrl.sim.warp_sizes import choose_sizes

  sizes, why = choose_sizes(model, resolved.device, resolved.nconmax, resolved.njmax)
  print(f"warp: room for {why}", flush=True)
  backend = WarpBackend(
    model, resolved.num_envs, resolved.device, nconmax=sizes.nconmax, njmax=sizes.njmax
  )
  if backend.graphs != "on":
    print(f"warp: CUDA graphs {backend.graphs}", flush=True)
  return backend
