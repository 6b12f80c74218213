"""What is kept of a replayed segment: a few numbers of every env, and all of env 0."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mjrl.envs.env import Step
from mjrl.envs.posture import POSTURE
from mjrl.envs.state import State
from mjrl.measure.statistics import Array


@dataclass(frozen=True, kw_only=True)
class Recording:
  """T control steps of N envs with J joints and F feet, from a fresh start.

  Row t is the state at the end of control step t.

    velocity        (T, N, 3) of the base, in its frame: forward m/s, left m/s, yaw rad/s
    position_m      (T, N, 2) of the base, in the world
    height_m        (T, N) of the base;  tilt_rad (T, N) between the base's z and the vertical
    torque_n_m      (T, N, J) of the last physics substep
    power_w         (T, N) sum over joints of max(0, torque * velocity)
    foot_contact    (T, N, F) bool
    foot_height_m   (T, N, F) of the lowest point
    foot_speed_m_s  (T, N, F) horizontal
    clock_steps     (T, N) int64 control steps on the gait clock
    posture         (T, N, 4) of the body, see `State.body_posture`; None if none is asked for
    ended           (T, N) bool: the episode failed in this step, so the next row is another's
    diverged        (T, N) bool: it failed because the simulation met a bad number
    env0            (T, C) float32, see `columns`
  """

  dt_s: float
  velocity: Array
  position_m: Array
  height_m: Array
  tilt_rad: Array
  torque_n_m: Array
  power_w: Array
  foot_contact: Array
  foot_height_m: Array
  foot_speed_m_s: Array
  clock_steps: Array
  ended: Array
  diverged: Array
  env0: Array
  posture: Array | None = None


class Recorder:
  """Fills arrays of a known number of control steps, on the device of the states."""

  def __init__(self, steps: int, dt_s: float, *, clocked: bool, postured: bool) -> None:
    """Room for that many control steps of dt_s.

    Args:
      steps: to record.
      dt_s: of a control step.
      clocked: whether the task has a gait clock.
      postured: whether it asks for postures.
    """
    self._steps, self._dt_s, self._clocked, self._postured = steps, dt_s, clocked, postured
    self._kept: dict[str, Tensor] = {}
    self._next = 0

  def add(self, step: Step) -> None:
    """Keep the state at the end of a control step, and which episodes failed in it."""
    ended = step.terminated
    values = _measured(step.state) | {
      "ended": ended,
      "diverged": step.failed.get("diverged", torch.zeros_like(ended)),
      "env0": _env0(step.state, ended, self._clocked, self._postured),
    }
    if self._postured:
      values["posture"] = step.state.body_posture
    if not self._kept:
      self._kept = {
        name: torch.zeros(self._steps, *value.shape, dtype=value.dtype, device=value.device)
        for name, value in values.items()
      }
    for name, value in values.items():
      self._kept[name][self._next] = value
    self._next += 1

  def recording(self) -> Recording:
    """What was kept.

    Raises:
      ValueError: fewer steps were added than there is room for.
    """
    if self._next != self._steps:
      raise ValueError(f"{self._next} of {self._steps} control steps were recorded: add the rest")
    arrays = {name: value.cpu().numpy() for name, value in self._kept.items()}
    return Recording(dt_s=self._dt_s, **arrays)


def columns(
  joints: Sequence[str], feet: Sequence[str], *, clocked: bool, postured: bool
) -> tuple[str, ...]:
  """Names of the numbers kept of env 0, in order.

  posture/<number> is what is asked of the body, and base/<angle> what it does; there only if the
  task asks for postures.

  clock/<foot> is 1 where the gait clock wants the foot down; there only if the task has a gait.
  failed is 1 where the episode failed in this step; the next row is the start of another.
  """
  return (
    "command/forward_m_s",
    "command/left_m_s",
    "command/yaw_rad_s",
    *(f"posture/{number}" for number in POSTURE if postured),
    *(f"pos/{joint}" for joint in joints),
    *(f"vel/{joint}" for joint in joints),
    *(f"tau/{joint}" for joint in joints),
    *(f"force/{foot}" for foot in feet),
    *(f"contact/{foot}" for foot in feet),
    *(f"height/{foot}" for foot in feet),
    *(f"clock/{foot}" for foot in feet if clocked),
    "base/forward_m_s",
    "base/left_m_s",
    "base/up_m_s",
    "base/yaw_rad_s",
    "base/height_m",
    "base/tilt_rad",
    *(f"base/{angle}" for angle in POSTURE[:3] if postured),
    "failed",
  )


def _measured(state: State) -> dict[str, Tensor]:
  power_w = (state.joint_torque_n_m * state.joint_vel_rad_s).clamp(min=0).sum(1)
  return {
    "velocity": state.velocity,
    "position_m": state.base_pos_w[:, :2],
    "height_m": state.height_m,
    "tilt_rad": _tilt_rad(state),
    "torque_n_m": state.joint_torque_n_m,
    "power_w": power_w,
    "foot_contact": state.foot_contact,
    "foot_height_m": state.foot_height_m,
    "foot_speed_m_s": state.foot_speed_m_s,
    "clock_steps": state.clock_steps,
  }


def _env0(state: State, terminated: Tensor, clocked: bool, postured: bool) -> Tensor:
  parts = [
    state.command[0],
    *([state.posture[0]] if postured else []),
    state.joint_pos_rad[0],
    state.joint_vel_rad_s[0],
    state.joint_torque_n_m[0],
    state.foot_load_n[0],
    state.foot_contact_float[0],
    state.foot_height_m[0],
    *([state.should_contact[0]] if clocked else []),
    state.lin_vel_b[0],
    state.ang_vel_b[0, 2:],
    state.height_m[:1],
    _tilt_rad(state)[:1],
    *([state.body_posture[0, :3]] if postured else []),
    terminated[:1].float(),
  ]
  return torch.cat(parts)


def _tilt_rad(state: State) -> Tensor:
  # The arc cosine of z alone is off by up to 0.3 mrad near level in float32.
  return torch.atan2(state.tilt_sin_square.sqrt(), state.up_b[:, 2])
