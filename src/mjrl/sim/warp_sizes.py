"""Room for contacts and constraints: what does not fit is lost, and more costs memory and time."""

from math import ceil
from typing import NamedTuple

import mujoco
import mujoco_warp as mjw
import torch
import warp as wp

from mjrl.sim.warp import WarpBackend

_ENVS, _STEPS, _SUBSTEPS = 32, 40, 5  # of the roll-out that is measured
_HOLD_STEPS = 5  # for which a random control is held
_MARGIN = 1.5  # room over the most that was measured
_GRAIN = 16  # sizes are multiples of it, so that kernels made for one are found in the cache
_DROP_M = 0.2


class Sizes(NamedTuple):
  """Contacts per env (a crowded one may use another's), and constraint rows in each env."""

  nconmax: int
  njmax: int


_ROOM = Sizes(128, 256)


def choose_sizes(
  model: mujoco.MjModel, device: str, nconmax: int | None, njmax: int | None
) -> tuple[Sizes, str]:
  """Sizes as given, or measured where None, and how they came about, in words.

  Args:
    model: of every env.
    device: to measure on.
    nconmax: contacts per env.
    njmax: constraint rows in each env.
  """
  if nconmax is not None and njmax is not None:
    return Sizes(nconmax, njmax), f"{nconmax} contacts and {njmax} constraint rows per env (given)"
  most = measure(model, device)
  sizes = Sizes(nconmax or _with_margin(most.nconmax), njmax or _with_margin(most.njmax))
  said = [
    f"{size} {what} per env ({'given' if given else f'a random roll-out needed {need}'})"
    for size, what, given, need in (
      (sizes.nconmax, "contacts", nconmax, most.nconmax),
      (sizes.njmax, "constraint rows", njmax, most.njmax),
    )
  ]
  return sizes, " and ".join(said)


def measure(model: mujoco.MjModel, device: str, room: Sizes = _ROOM) -> Sizes:
  """The most that an env needed in a short roll-out with random controls, from any orientation.

  Args:
    model: of every env.
    device: to measure on.
    room: that is tried first; what it cannot hold is tried again with twice as much.
  """
  while True:
    trial = WarpBackend(model, _ENVS, device, nconmax=room.nconmax, njmax=room.njmax)
    most = _roll_out(trial)
    lost = {cure for _, cure in trial.take_lost()}
    if not lost & {"--nconmax", "--njmax"}:
      return most
    more = (2 if flag in lost else 1 for flag in ("--nconmax", "--njmax"))
    room = Sizes(*(size * factor for size, factor in zip(room, more, strict=True)))


def bytes_per_env(model: mujoco.MjModel, nconmax: int | None, njmax: int | None) -> int:
  """What the engine keeps for each env; sizes of None are mujoco_warp's guesses."""
  with wp.ScopedDevice("cpu"):
    data = mjw.make_data(model, nworld=1, nconmax=nconmax, njmax=njmax)
  arrays = [v for part in (data, data.contact, data.efc) for v in vars(part).values()]
  # The solver's own arrays, made anew in each step, are less than as much again.
  return 2 * sum(array.capacity for array in arrays if isinstance(array, wp.array))


def _roll_out(trial: WarpBackend) -> Sizes:
  model, on = trial.model, torch.device(trial.device)
  rng = torch.Generator(on).manual_seed(0)
  everyone = torch.ones(_ENVS, dtype=torch.bool, device=on)
  start = model.key_qpos[0] if model.nkey else model.qpos0
  qpos = torch.tensor(start, dtype=torch.float32, device=on).repeat(_ENVS, 1)
  if model.njnt and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
    fallen = torch.arange(_ENVS, device=on) % 4 > 0  # the others start as they stand
    turned = torch.randn(_ENVS, 4, generator=rng, device=on)
    qpos[fallen, 2] += _DROP_M
    qpos[fallen, 3:7] = torch.nn.functional.normalize(turned, dim=1)[fallen]
  trial.reset(everyone, qpos, torch.zeros(_ENVS, model.nv, device=on))
  low, high = _control_range(model).to(on)
  most = Sizes(0, 0)
  for step in range(_STEPS):
    if step % _HOLD_STEPS == 0:
      trial.set_ctrl(low + (high - low) * torch.rand(_ENVS, model.nu, generator=rng, device=on))
    trial.step(_SUBSTEPS)
    contacts, rows = trial.used()
    most = Sizes(max(most.nconmax, contacts), max(most.njmax, rows))
  return most


def _control_range(model: mujoco.MjModel) -> torch.Tensor:
  """Lowest and highest controls, (2, nu): the limits, or +-1 about the keyframe without them."""
  limits = torch.tensor(model.actuator_ctrlrange, dtype=torch.float32).T
  limited = torch.tensor(model.actuator_ctrllimited, dtype=torch.bool)
  about = torch.tensor(model.key_ctrl[0] if model.nkey else [0.0] * model.nu, dtype=torch.float32)
  return torch.where(limited, limits, torch.stack((about - 1, about + 1)))


def _with_margin(most: int) -> int:
  return ceil(max(most * _MARGIN, 1) / _GRAIN) * _GRAIN
