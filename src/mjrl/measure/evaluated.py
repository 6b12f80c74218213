"""What an evaluation found, per env, and the figures that it is told in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mjrl.envs.state import STANDING_COMMAND
from mjrl.measure.conditions import Condition
from mjrl.measure.figures import cost_of_transport, falls, over_feet, slip_speed
from mjrl.measure.grid import Grid
from mjrl.measure.measured import Circumstances
from mjrl.measure.record import Recording
from mjrl.measure.statistics import Array, counted_steps, mean_over_time


@dataclass(frozen=True, kw_only=True)
class Seen:
  """What figures are worked out from, of N envs that each hold a command.

  counted  (T, N) bool: steps that count
  axes     (N, 3) mean velocity over them, NaN where none counts;  commands (N, 3)
  mass_kg  (N,) of each robot, which a condition may have changed
  """

  recording: Recording
  counted: Array
  axes: Array
  commands: Array
  mass_kg: Array


@dataclass(frozen=True, kw_only=True)
class Figure:
  """A figure of an env.

  factor  from SI to `unit`
  ideal   the value that is best; None where less is better
  read    (N,), NaN where an env has it not
  """

  key: str
  label: str
  unit: str
  factor: float
  digits: int
  ideal: float | None
  read: Callable[[Seen], Array]

  @property
  def title(self) -> str:
    """Label and unit."""
    return f"{self.label}, {self.unit}" if self.unit else self.label

  def said(self, value: float | None, sign: str = "") -> str:
    """A value in the figure's unit."""
    return "-" if value is None else f"{self.factor * value:{sign}z.{self.digits}f}"


def _ratio(axis: int) -> Callable[[Seen], Array]:
  def read(seen: Seen) -> Array:
    asked = seen.commands[:, axis]
    return np.divide(seen.axes[:, axis], asked, out=np.full(len(asked), np.nan), where=asked != 0)

  return read


def _linear_error(seen: Seen) -> Array:
  return np.linalg.norm((seen.axes - seen.commands)[:, :2], axis=1)


def _yaw_error(seen: Seen) -> Array:
  return np.abs(seen.axes - seen.commands)[:, 2]


def _falls(seen: Seen) -> Array:
  return falls(seen.recording).astype(np.float64)


def _slip(seen: Seen) -> Array:
  return over_feet(slip_speed(seen.recording, seen.counted))


def _cost(seen: Seen) -> Array:
  cost = cost_of_transport(seen.recording.power_w, seen.axes, seen.counted, seen.mass_kg)
  travelling = np.linalg.norm(seen.commands[:, :2], axis=1) > STANDING_COMMAND
  return np.where(travelling, cost, np.nan)


FIGURES = (
  Figure(
    key="forward_ratio",
    label="forward of asked",
    unit="%",
    factor=100,
    digits=1,
    ideal=1.0,
    read=_ratio(0),
  ),
  Figure(
    key="yaw_ratio",
    label="yaw of asked",
    unit="%",
    factor=100,
    digits=1,
    ideal=1.0,
    read=_ratio(2),
  ),
  Figure(
    key="linear_error_m_s",
    label="speed error",
    unit="cm/s",
    factor=100,
    digits=2,
    ideal=None,
    read=_linear_error,
  ),
  Figure(
    key="yaw_error_rad_s",
    label="yaw error",
    unit="rad/s",
    factor=1,
    digits=3,
    ideal=None,
    read=_yaw_error,
  ),
  Figure(key="falls", label="falls per env", unit="", factor=1, digits=2, ideal=None, read=_falls),
  Figure(key="slip_m_s", label="slip", unit="cm/s", factor=100, digits=2, ideal=None, read=_slip),
  Figure(
    key="cost_of_transport",
    label="cost of transport",
    unit="",
    factor=1,
    digits=3,
    ideal=None,
    read=_cost,
  ),
)


@dataclass(frozen=True, kw_only=True)
class Evaluated:
  """A policy under a condition: C cells of R envs each.

  changes   what the condition's events are otherwise than in the task, a line each
  per_env   figure to (C, R), NaN where an env has it not
  failed    (C, R) bool: an episode of the env fell or diverged;  diverged (C, R) how many did
  counted   (C,) share of the control steps that count
  """

  condition: Condition
  circumstances: Circumstances
  changes: tuple[str, ...]
  per_env: Mapping[str, Array]
  failed: Array
  diverged: Array
  counted: Array


@dataclass(frozen=True, kw_only=True)
class Evaluation:
  """A policy under all conditions of an evaluation, each for so many control steps."""

  grid: Grid
  steps: int
  conditions: tuple[Evaluated, ...]

  @property
  def length_s(self) -> float:
    """For which each command is held."""
    return self.steps / self.conditions[0].circumstances.control_hz


def evaluated(
  recording: Recording,
  grid: Grid,
  condition: Condition,
  circumstances: Circumstances,
  changes: tuple[str, ...],
  mass_kg: Array,
) -> Evaluated:
  """The figures of a recording whose envs, of mass_kg (N,), hold the commands cell by cell."""
  counted = counted_steps(recording.ended, round(circumstances.settle_s / recording.dt_s))
  num_envs, cells = recording.ended.shape[1], len(grid.commands)
  seen = Seen(
    recording=recording,
    counted=counted,
    axes=mean_over_time(recording.velocity, counted),
    commands=np.repeat(np.array(grid.commands), num_envs // cells, axis=0),
    mass_kg=mass_kg,
  )

  def by_cell(values: Array) -> Array:
    return values.reshape(cells, -1)

  return Evaluated(
    condition=condition,
    circumstances=circumstances,
    changes=changes,
    per_env={figure.key: by_cell(figure.read(seen)) for figure in FIGURES},
    failed=by_cell(recording.ended.sum(0)) > 0,
    diverged=by_cell(recording.diverged.sum(0)),
    counted=by_cell(counted.mean(0)).mean(1),
  )
