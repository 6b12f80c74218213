"""From what was resolved to an engine that holds the model."""

import mujoco

from mjrl.sim.backend import Backend
from mjrl.sim.resolve import Resolved


def open_backend(resolved: Resolved, model: mujoco.MjModel) -> Backend:
  """The engine that was resolved, with its envs at the model's default state."""
  from mjrl.sim.native import NativeBackend

  return NativeBackend(model, resolved.num_envs, resolved.threads)
