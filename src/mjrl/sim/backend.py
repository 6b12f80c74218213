"""What every engine offers: N copies of one MuJoCo model, stepped together."""

from typing import Protocol

import mujoco
from torch import Tensor


class Backend(Protocol):
  """N copies of one MuJoCo model.  Write before step(), read after it.

  After `step` and `reset` every field read is at the new state, except the acceleration-level ones
  (actuator forces, contact forces, accelerometers), which are those of the last substep.  Masks are
  (N,) bool on the backend's device.
  """

  num_envs: int
  device: str
  model: mujoco.MjModel
  looks_are_free: bool
  """Whether reading a number back costs nothing; where it does, nothing in a step may do so."""

  def read(self, field: str) -> Tensor:
    """An mjData field, (N, ...) float32: the same tensor every call, refreshed by step and reset.

    The tensor is the engine's copy: writing to it changes nothing in the simulation.

    Raises:
      ValueError: the field is not one that the engine offers, with the nearest names.
    """
    ...

  def default(self, field: str) -> Tensor:
    """An mjModel field as compiled, float32, the value that randomisation starts from."""
    ...

  def set_ctrl(self, ctrl: Tensor) -> None:
    """Controls of the next step, (N, nu)."""
    ...

  def set_state(
    self, mask: Tensor, *, qpos: Tensor | None = None, qvel: Tensor | None = None
  ) -> None:
    """Positions (N, nq) and velocities (N, nv) of the masked envs, taken up by the next step."""
    ...

  def set_model(self, mask: Tensor, field: str, value: Tensor) -> None:
    """An mjModel field of the masked envs, (N, ...); constants that depend on it follow."""
    ...

  def get_model(self, field: str) -> Tensor:
    """An mjModel field as the engine now uses it, (N, ...) float32."""
    ...

  def step(self, num_substeps: int) -> None:
    """Advance every env by one control step."""
    ...

  def reset(self, mask: Tensor, qpos: Tensor, qvel: Tensor) -> None:
    """Clear the masked envs, place them at (N, nq), (N, nv), and compute every field there."""
    ...

  def any(self, mask: Tensor) -> bool:
    """Whether work on the mask is worth starting: exact where looks are free, else True."""
    ...

  def take_diverged(self) -> Tensor:
    """(N,) bool: envs in which the engine met a bad number since the last call."""
    ...

  def take_lost(self) -> dict[tuple[str, str], int]:
    """Env-steps since the last call that had no room for all contacts or constraints.

    The keys are what was lost, and what cures it, in words.
    """
    ...

  def save(self) -> dict[str, Tensor]:
    """The state of the world: what `load` needs to go on to the bit."""
    ...

  def load(self, saved: dict[str, Tensor]) -> None:
    """Take up a state from `save`, of the same model and env count."""
    ...
