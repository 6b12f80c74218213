"""warp:cuda: all envs in one batched model on a GPU, stepped by mujoco_warp.

The same code runs on the CPU, for tests and debugging.
"""

import dataclasses
from collections.abc import Mapping

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp
from torch import Tensor

from mjrl.names import nearest
from mjrl.sim import warp_kernels as kernels
from mjrl.sim.warp_graphs import Graphs

wp.config.log_level = wp.LOG_WARNING  # else a line for each of a hundred modules

_LARGEST = 1e10  # as in MuJoCo, a number further from 0 is a bad one
_INTEGRATORS = ("EULER", "IMPLICIT", "IMPLICITFAST")
# What mj_step needs to go on, MuJoCo's mjSTATE_INTEGRATION.
_STATE = (
  "time",
  "qpos",
  "qvel",
  "act",
  "history",
  "plastic",
  "qacc_warmstart",
  "ctrl",
  "qfrc_applied",
  "xfrc_applied",
  "eq_active",
  "mocap_pos",
  "mocap_quat",
  "userdata",
)
# Constants that mujoco_warp.set_const computes; sizes of geoms alone change the last three.
_DERIVED = (
  "body_subtreemass",
  "body_invweight0",
  "dof_invweight0",
  "actuator_acc0",
  "tendon_length0",
  "tendon_invweight0",
  "eq_data",
  "cam_pos0",
  "cam_poscom0",
  "cam_mat0",
  "light_pos0",
  "light_poscom0",
  "light_dir0",
)
_DERIVED_OF_SIZE = ("geom_size", "geom_aabb", "geom_rbound")
_OVER = mjw.OverflowType
# Buffers that can overflow: what is lost then, and the cure.
_LOST = {
  _OVER.NEFC: ("constraints", "--njmax"),
  _OVER.NJMAX_NNZ: ("constraints", "--njmax"),
  _OVER.BROADPHASE: ("contacts", "--nconmax"),
  _OVER.NARROWPHASE: ("contacts", "--nconmax"),
  _OVER.CCD: ("contacts", "--nconmax"),
  _OVER.HFIELD: ("contacts", "a height field of lower resolution"),
  _OVER.CONTACT_MATCH: ("contacts of a sensor", "numeric contact_sensor_maxmatch in the MJCF"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Field:
  """An mjData field: the engine's array, and the copy that is handed out.

  engine, copy  (N, width), the engine's memory and ours;  tensor  the copy, (N, ...)
  """

  engine: wp.array
  copy: wp.array
  tensor: Tensor


class WarpBackend:
  """`Backend` on mujoco_warp.

  A control step runs the second half of each physics step before the first half of the next one,
  so that fields are current at its end and no forward pass is paid twice.  Nothing is read back
  from the device, unless a method says so.
  """

  looks_are_free = False

  def __init__(
    self, model: mujoco.MjModel, num_envs: int, device: str, *, nconmax: int, njmax: int
  ) -> None:
    """Put the model and num_envs envs on the device.

    Args:
      model: of every env.
      num_envs: N.
      device: "cuda:0", ..., or "cpu".
      nconmax: contacts that there is room for, per env on average.
      njmax: constraint rows that there is room for in each env.

    Raises:
      ValueError: the model asks for what this engine does not do as native:cpu does.
    """
    _check(model, num_envs)
    self.model, self.num_envs, self.device = model, num_envs, device
    self.nconmax, self.njmax = nconmax, njmax
    self._graphs = Graphs(device)
    with self._graphs.scope():
      self._m = mjw.put_model(model)
      self._m.opt.warn_overflow = 0  # printing from kernels stops the device; they are counted
      self._m.opt.graph_conditional = not self._graphs.obstacle
      self._d = mjw.make_data(model, nworld=num_envs, nconmax=nconmax, njmax=njmax)
    self._ctrl, self._qpos, self._qvel = (self._rows(name) for name in ("ctrl", "qpos", "qvel"))
    on = torch.device(device)
    self._mask = torch.zeros(num_envs, dtype=torch.bool, device=on)
    self._start_qpos, self._start_qvel = self._qpos.clone(), self._qvel.clone()
    self._bad = torch.zeros(num_envs, dtype=torch.bool, device=on)
    self._lost = torch.zeros(max(_OVER).bit_length(), dtype=torch.int32, device=on)
    # The same memory, as Warp's kernels take it.
    self._w = {
      name: wp.from_torch(getattr(self, f"_{name}"))
      for name in ("ctrl", "qpos", "qvel", "mask", "start_qpos", "start_qvel", "bad", "lost")
    }
    self._fields: dict[str, _Field] = {}
    self._defaults: dict[str, Tensor] = {}
    self._per_env: dict[str, Tensor] = {}  # model fields, (N, ...) in mujoco's shape
    # A delayed sensor needs its readings of all substeps.
    self._sensors_remember = bool((model.sensor_history[:, 0] > 0).any())
    self.reset(~self._mask, self._qpos.clone(), self._qvel.clone())

  @property
  def graphs(self) -> str:
    """Whether a step is one launch, and if not, why, in words."""
    return f"off: {self._graphs.obstacle}" if self._graphs.obstacle else "on"

  def read(self, field: str) -> Tensor:
    """See `Backend.read`."""
    if field not in self._fields:
      self._offer(field)
    return self._fields[field].tensor

  def default(self, field: str) -> Tensor:
    """See `Backend.default`."""
    if field not in self._defaults:  # sent to the device once: each sending would hold it up
      values = torch.tensor(getattr(self.model, field), dtype=torch.float32)
      self._defaults[field] = values.to(self.device)
    return self._defaults[field].clone()

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
    self._stale = True

  def set_model(self, mask: Tensor, field: str, value: Tensor) -> None:
    """See `Backend.set_model`."""
    target = self._expand(field)
    rows = mask.view(-1, *[1] * (target.dim() - 1))
    target.copy_(torch.where(rows, value.view(target.shape), target))
    if field in mujoco.MjModel._setconst_inputs:
      self._set_const(mask, field)
    self._stale = True

  def get_model(self, field: str) -> Tensor:
    """See `Backend.get_model`."""
    if field in self._per_env:
      return self._per_env[field].clone()
    shared = self.default(field)
    return shared.expand(self.num_envs, *shared.shape).clone()

  def step(self, num_substeps: int) -> None:
    """See `Backend.step`."""
    if self._stale:
      self._graphs.run("first half", self._first_half)
      self._stale = False
    self._graphs.run(f"{num_substeps} substeps", lambda: self._advance(num_substeps))

  def reset(self, mask: Tensor, qpos: Tensor, qvel: Tensor) -> None:
    """See `Backend.reset`."""
    self._mask.copy_(mask)
    self._start_qpos.copy_(qpos)
    self._start_qvel.copy_(qvel)
    self._graphs.run("reset", self._restart)
    self._stale = False

  def any(self, mask: Tensor) -> bool:
    """See `Backend.any`: True without looking."""
    return True

  def take_diverged(self) -> Tensor:
    """See `Backend.take_diverged`."""
    bad = self._bad.clone()
    self._bad.zero_()
    return bad

  def take_lost(self) -> dict[tuple[str, str], int]:
    """See `Backend.take_lost`.  Reads from the device."""
    counts = self._lost.tolist()
    self._lost.zero_()
    lost: dict[tuple[str, str], int] = {}
    for kind, what in _LOST.items():
      if count := counts[kind.bit_length() - 1]:
        lost[what] = lost.get(what, 0) + count
    return lost

  def used(self) -> tuple[int, int]:
    """Contacts and constraint rows, now, of the env that has most.  Reads from the device.

    The broad phase needs room for candidates too; of them, the mean over the envs is counted.
    """
    d = self._d
    envs = d.contact.worldid.numpy()[: d.nacon.numpy()[0]]
    contacts = int(np.bincount(envs, minlength=1).max())
    candidates = int(d.ncollision.numpy()[0])
    return max(contacts, -(-candidates // self.num_envs)), int(d.nefc.numpy().max())

  def save(self) -> dict[str, Tensor]:
    """See `Backend.save`."""
    state = {f"state.{name}": self._whole(name).clone() for name in _STATE}
    return state | {f"model.{name}": value.clone() for name, value in self._per_env.items()}

  def load(self, saved: Mapping[str, Tensor]) -> None:
    """See `Backend.load`."""
    for name, value in saved.items():
      kind, _, field = name.partition(".")
      (self._whole(field) if kind == "state" else self._expand(field)).copy_(value)
    self._graphs.run("first half", self._first_half)
    self._stale = False
    for field in self._fields.values():
      wp.to_torch(field.copy).copy_(wp.to_torch(field.engine))

  # Procedures: what follows launches kernels and does nothing else, so that it can be recorded.

  def _advance(self, num_substeps: int) -> None:
    m, d = self._m, self._d
    for k in range(num_substeps):
      self._switch_sensors(self._sensors_remember or k == num_substeps - 1)
      d.sensordata.zero_()  # not after step2: it computes some sensors, and adds to others
      mjw.step2(m, d)
      self._first_half()
    for values in ("qpos", "qvel", "ctrl"):
      shape = self._w[values].shape
      wp.launch(kernels.find_bad, shape, [self._w[values], _LARGEST], [self._w["bad"]])
    wp.launch(kernels.count_bits, self.num_envs, [d.overflow], [self._w["lost"]])
    for field in self._fields.values():
      wp.copy(field.copy, field.engine)

  def _first_half(self) -> None:
    """Position and velocity stages.  As mujoco_warp.step1, which would wipe all sensors."""
    m, d = self._m, self._d
    mjw.fwd_position(m, d)
    mjw.sensor_pos(m, d)
    mjw.fwd_velocity(m, d)
    mjw.sensor_vel(m, d)

  def _restart(self) -> None:
    m, d, mask = self._m, self._d, self._w["mask"]
    mjw.reset_data(m, d, mask)
    for name in ("qpos", "qvel"):
      start, target = self._w[f"start_{name}"], self._w[name]
      wp.launch(kernels.copy_where, target.shape, [mask, start], [target])
    # As mujoco_warp.forward, but from the parts that a step is made of: the other envs are to go
    # on as if nothing had happened, to the bit.
    d.sensordata.zero_()
    self._first_half()
    mjw.fwd_actuation(m, d)
    mjw.fwd_acceleration(m, d)
    mjw.solve(m, d)
    mjw.sensor_acc(m, d)
    for field in self._fields.values():
      wp.launch(kernels.copy_where, field.copy.shape, [mask, field.engine], [field.copy])

  def _switch_sensors(self, on: bool) -> None:
    """Sensors are computed where somebody looks: at the end of a control step."""
    disable = int(mjw.DisableBit.SENSOR)
    flags = self.model.opt.disableflags
    self._m.opt.disableflags = flags if on else flags | disable

  # Arrays.

  def _whole(self, name: str) -> Tensor:
    """A field of the engine's data, as a tensor that shares its memory."""
    return wp.to_torch(getattr(self._d, name))

  def _rows(self, name: str) -> Tensor:
    """The same, (N, width)."""
    return self._whole(name).view(self.num_envs, -1)

  def _offer(self, field: str) -> None:
    known = _fields_of(mjw.Data, "nworld")
    if field not in known:
      raise ValueError(
        f"{field!r} is not an mjData field that can be read; {nearest(field, known)}"
      )
    engine = self._rows(field)
    copy = engine.clone()
    shape = np.shape(getattr(mujoco.MjData(self.model), field))
    self._fields[field] = _Field(
      engine=wp.from_torch(engine),
      copy=wp.from_torch(copy),
      tensor=copy.view(self.num_envs, *shape),
    )
    self._graphs.forget()

  def _expand(self, field: str) -> Tensor:
    """A model field of its own for each env, (N, ...) in mujoco's shape."""
    if field not in self._per_env:
      known = _fields_of(mjw.Model, "*")
      if field not in known:
        raise ValueError(f"{field!r} is not a model field of each env; {nearest(field, known)}")
      shared = getattr(self._m, field)
      values = self._model(field)
      values = values.expand(self.num_envs, *values.shape[1:]).contiguous()
      setattr(self._m, field, wp.from_torch(values, dtype=shared.dtype))
      self._per_env[field] = values.view(self.num_envs, *getattr(self.model, field).shape)
      self._graphs.forget()
    return self._per_env[field]

  def _set_const(self, mask: Tensor, field: str) -> None:
    """Recompute the masked envs' constants after a change of a field."""
    names = [n for n in _DERIVED + _DERIVED_OF_SIZE if getattr(self._m, n).size]
    derived = [n for n in names if n not in _DERIVED_OF_SIZE or field == "geom_size"]
    for name in derived:
      self._expand(name)
    before = {name: self._model(name).clone() for name in names}
    self._graphs.run("set_const", lambda: mjw.set_const(self._m, self._d, restore=False))
    for name, old in before.items():
      new = self._model(name)
      # What depends on another field than the one that has changed is left as it was compiled.
      rows = mask if name in derived else torch.zeros_like(mask[:1])
      new.copy_(torch.where(rows.view(-1, *[1] * (new.dim() - 1)), new, old))

  def _model(self, name: str) -> Tensor:
    """A field of the engine's model, as a tensor that shares its memory."""
    return wp.to_torch(getattr(self._m, name))


def _fields_of(struct: type, first: str) -> list[str]:
  """Fields of real numbers whose arrays have `first` as their first dimension."""
  found = []
  for field in dataclasses.fields(struct):
    shape, dtype = getattr(field.type, "shape", ()), getattr(field.type, "dtype", None)
    scalar = getattr(dtype, "_wp_scalar_type_", dtype)
    if shape and shape[0] == first and scalar in (float, wp.float32):
      found.append(field.name)
  return sorted(found)


def _check(model: mujoco.MjModel, num_envs: int) -> None:
  if num_envs < 1:
    raise ValueError(f"num_envs is {num_envs}; it must be at least 1")
  names = [int(getattr(mujoco.mjtIntegrator, f"mjINT_{name}")) for name in _INTEGRATORS]
  if model.opt.integrator not in names:
    raise ValueError(
      f"the warp backend steps in halves, which integrator {model.opt.integrator} does not allow; "
      f"use one of {', '.join(_INTEGRATORS).lower()}, or --backend native"
    )
  if model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_SLEEP):
    raise ValueError(
      "the warp backend steps in halves, which sleeping islands do not allow; switch the flag "
      "sleep off in the MJCF, or use --backend native"
    )
