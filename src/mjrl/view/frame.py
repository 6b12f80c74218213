"""What a viewer is told: once what there is, then one moment after the other."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

MAX_DRAWN = 16
SPACING_HEIGHTS = 10.0  # between neighbours, in heights of the robot


@dataclass(frozen=True, kw_only=True)
class Subject:
  """What is looked at: N envs of one model, of which `drawn` are drawn at once.

  rewards  names of the reward rows, those that are evaluated
  """

  model: mujoco.MjModel
  base_body: str
  home_height_m: float
  joints: tuple[str, ...]
  feet: tuple[str, ...]
  rewards: tuple[str, ...]
  num_envs: int

  @property
  def drawn(self) -> int:
    """How many envs a frame holds."""
    return min(self.num_envs, MAX_DRAWN)


@dataclass(frozen=True, kw_only=True)
class Frame:
  """A moment of K envs, the first of which is followed; all but `qpos` is of that one.

  envs          (K,) which they are;  qpos (K, nq)
  time_s        simulated
  command       (3,) m/s forward, m/s left, rad/s counter-clockwise;  velocity (3,) the same
  foot_contact  (F,) 0 or 1;  torque_n_m (J,);  rewards (R,) weight times value, per second
  lines         what there is to say, in pairs of a label and a text
  """

  envs: tuple[int, ...]
  qpos: Array
  time_s: float
  command: Array
  velocity: Array
  foot_contact: Array
  torque_n_m: Array
  rewards: Array
  lines: tuple[tuple[str, str], ...] = ()


def places(subject: Subject) -> NDArray[np.float64]:
  """Where to draw the envs of a frame, (K, 3) m: on a grid around the first, which stays.

  Every env has the same ground under its robot. Where that is a plane, the next one's may lie
  beside it; rooms and hills lie where they are, and the robots stand in one another.
  """
  offsets = np.zeros((subject.drawn, 3))
  if _is_flat(subject.model):
    side = int(np.ceil(np.sqrt(subject.drawn)))
    cells = [(x, y) for x in range(side) for y in range(side)]
    offsets[:, :2] = cells[: subject.drawn]
    offsets *= SPACING_HEIGHTS * subject.home_height_m
  return offsets


def _is_flat(model: mujoco.MjModel) -> bool:
  fixed = model.body_weldid[model.geom_bodyid] == 0
  return bool((model.geom_type[fixed] == mujoco.mjtGeom.mjGEOM_PLANE).all())
