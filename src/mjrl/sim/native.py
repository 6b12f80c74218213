"""native:cpu: MuJoCo's own batched stepping over a capped thread pool."""

import warnings

import mujoco
import numpy as np
import numpy.typing as npt
import torch
from mujoco import batch as mjbatch
from torch import Tensor

from mjrl.names import nearest

# Warnings of the engine that mean a bad number, and that it has thrown the state away.
_BAD_NUMBER = [
  int(mujoco.mjtWarning.mjWARN_BADQPOS),
  int(mujoco.mjtWarning.mjWARN_BADQVEL),
  int(mujoco.mjtWarning.mjWARN_BADQACC),
  int(mujoco.mjtWarning.mjWARN_BADCTRL),
]
# Warnings that mean too little memory, and what was lost then.
_FULL = {
  int(mujoco.mjtWarning.mjWARN_CONTACTFULL): "contacts",
  int(mujoco.mjtWarning.mjWARN_CNSTRFULL): "constraints",
}
_COUNT = 1  # of the two numbers that the engine keeps of a warning, after where it last was
_NEW_STATE = int(mujoco.mjtStage.mjSTAGE_VEL)


class NativeBackend:
  """`Backend` on `mujoco.batch.Batch`, one MjData per env.

  The batch is persistent, so that each step goes on from the position and velocity stages that the
  last one computed at its new state: fields are current at no extra cost.  Results do not depend
  on the number of threads.
  """

  device = "cpu"
  looks_are_free = True

  def __init__(self, model: mujoco.MjModel, num_envs: int, threads: int) -> None:
    """Allocate num_envs simulations of the model on threads threads (at least one of each)."""
    if num_envs < 1 or threads < 1:
      raise ValueError(f"num_envs {num_envs} and threads {threads} must both be at least 1")
    self.model = model
    self.num_envs = num_envs
    self.threads = threads
    self._batch = mjbatch.Batch(model, nsim=num_envs, nthread=threads, persistent=True)
    self._batch.forward()
    self._copies: dict[str, tuple[Tensor, Tensor]] = {}  # field -> (engine's float64, our float32)
    self._ctrl = torch.from_numpy(self._batch.bind("ctrl"))
    self._qpos = torch.from_numpy(self._batch.bind("qpos"))
    self._qvel = torch.from_numpy(self._batch.bind("qvel"))
    self._seen_warnings = self._bad_numbers()
    self._seen_full = self._full()
    self._lost = np.zeros(len(_FULL), np.int64)
    self._warnings = torch.from_numpy(self._batch.warning)
    self._warnings_total = int(self._warnings.sum())
    self._nobody = torch.zeros(num_envs, dtype=torch.bool)
    self._raised, self._any_raised = np.zeros(num_envs, bool), False

  def read(self, field: str) -> Tensor:
    """See `Backend.read`."""
    if field not in self._copies:
      if field not in mjbatch.DATA_FIELDS:
        names = nearest(field, sorted(mjbatch.DATA_FIELDS))
        raise ValueError(f"{field!r} is not an mjData field that can be read; {names}")
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of the read-only array: it is only read
        source = torch.from_numpy(self._batch.bind(field))
      self._copies[field] = (source, torch.zeros(source.shape, dtype=torch.float32))
      # A new output is zero until a call; this one fills it and computes nothing.
      self._batch.forward(stage=int(mujoco.mjtStage.mjSTAGE_NONE))
      self._copy()
    return self._copies[field][1]

  def default(self, field: str) -> Tensor:
    """See `Backend.default`."""
    return torch.from_numpy(np.array(getattr(self.model, field), np.float32))

  def set_ctrl(self, ctrl: Tensor) -> None:
    """See `Backend.set_ctrl`."""
    self._ctrl.copy_(ctrl)

  def set_state(
    self, mask: Tensor, *, qpos: Tensor | None = None, qvel: Tensor | None = None
  ) -> None:
    """See `Backend.set_state`."""
    if qpos is not None:
      self._qpos.copy_(torch.where(mask[:, None], qpos, self._qpos))
    if qvel is not None:
      self._qvel.copy_(torch.where(mask[:, None], qvel, self._qvel))

  def set_model(self, mask: Tensor, field: str, value: Tensor) -> None:
    """See `Backend.set_model`."""
    rows = mask.numpy()
    target = self._batch.expand(field)
    target[rows] = value.numpy()[rows]
    if field in mujoco.MjModel._setconst_inputs:
      self._batch.set_const(rows)

  def get_model(self, field: str) -> Tensor:
    """See `Backend.get_model`."""
    per_env = self._batch.expanded(field)
    if per_env is None:
      shared = self.default(field)
      return shared.expand(self.num_envs, *shared.shape).clone()
    return torch.from_numpy(per_env.astype(np.float32))

  def step(self, num_substeps: int) -> None:
    """See `Backend.step`."""
    try:
      self._batch.step(nstep=num_substeps, stage=_NEW_STATE)
    except mjbatch.SimulationError as error:
      # The named envs kept the state they had; the others are done.  They count as diverged.
      self._raised[error.ids] = True
      self._any_raised = True
    self._copy()

  def reset(self, mask: Tensor, qpos: Tensor, qvel: Tensor) -> None:
    """See `Backend.reset`."""
    rows = mask.numpy()
    self._batch.reset(rows, stage=int(mujoco.mjtStage.mjSTAGE_NONE))
    self._seen_warnings[rows] = 0  # the engine counts anew
    self._seen_full[rows] = 0
    self._warnings_total = int(self._warnings.sum())
    self.set_state(mask, qpos=qpos, qvel=qvel)
    self._batch.forward(rows)
    self._copy()

  def any(self, mask: Tensor) -> bool:
    """See `Backend.any`: exact here, since looking costs nothing."""
    return bool(mask.numpy().any())  # numpy looks in a fifth of torch's time

  def take_diverged(self) -> Tensor:
    """See `Backend.take_diverged`."""
    total = int(self._warnings.sum())
    if total == self._warnings_total and not self._any_raised:  # a cheap look: hardly ever
      return self._nobody
    now = self._bad_numbers()
    bad = self._raised | (now > self._seen_warnings).any(axis=1)
    self._seen_warnings, self._warnings_total = now, total
    self._raised, self._any_raised = np.zeros(self.num_envs, bool), False
    full = self._full()
    self._lost += (full > self._seen_full).sum(0)
    self._seen_full = full
    return torch.from_numpy(bad)

  def take_lost(self) -> dict[tuple[str, str], int]:
    """See `Backend.take_lost`: what `take_diverged` came across."""
    counts, self._lost = self._lost, np.zeros_like(self._lost)
    cure = 'more memory in the MJCF, <size memory="...M"/>'
    return {(what, cure): int(n) for what, n in zip(_FULL.values(), counts, strict=True) if n}

  def save(self) -> dict[str, Tensor]:
    """See `Backend.save`."""
    fields = {
      name: torch.from_numpy(np.array(self._batch.expanded(name))) for name in self._expanded()
    }
    return {"state": torch.from_numpy(self._batch.state.copy())} | fields

  def load(self, saved: dict[str, Tensor]) -> None:
    """See `Backend.load`."""
    everything = np.ones(self.num_envs, bool)
    for name, value in saved.items():
      if name != "state":
        self._batch.expand(name)[:] = value.numpy()
    if len(saved) > 1:
      self._batch.set_const(everything)
    self._batch.state[:] = saved["state"].numpy()
    self._batch.forward(stage=_NEW_STATE)
    self._copy()

  def _bad_numbers(self) -> npt.NDArray[np.int64]:
    """How often each env met each kind of bad number, (N, kinds)."""
    return self._batch.warning[:, _BAD_NUMBER, _COUNT].copy()

  def _full(self) -> npt.NDArray[np.int64]:
    """How often each env had too little memory, (N, kinds)."""
    return self._batch.warning[:, list(_FULL), _COUNT].copy()

  def _expanded(self) -> list[str]:
    return [f for f in sorted(mjbatch.MODEL_FIELDS) if self._batch.expanded(f) is not None]

  def _copy(self) -> None:
    for source, copy in self._copies.values():
      copy.copy_(source)
