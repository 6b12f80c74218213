"""A measured replay as files, pictures and reports take it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from mjrl.measure.figures import SegmentFigures
from mjrl.measure.series import Segment
from mjrl.measure.statistics import Array


@dataclass(frozen=True, kw_only=True)
class Circumstances:
  """What was replayed, on what, and how it differs from training.

  scene  its "name", and as "physics" what makes its ground another than training's flat one
  """

  task: str
  robot: str
  agent: str
  checkpoint: str | None
  iteration: int | None
  backend: str
  device: str
  num_envs: int
  seed: int
  physics_hz: float
  control_hz: float
  observation_noise: bool
  settle_s: float
  mass_kg: float
  effort_limit_n_m: float
  scene: Mapping[str, str]
  differences_from_training: tuple[str, ...]
  as_in_training: tuple[str, ...]
  versions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class MeasuredSegment:
  """A command, its figures over all envs, and the series behind the pictures, T control steps.

  env0           (T, C) see `record.columns`
  velocity_mean  (T, 3) over the envs: forward m/s, left m/s, yaw rad/s;  velocity_std the same
  posture_mean   (T, 4) over the envs, see `State.body_posture`;  posture_std the same; None in a
                 task that asks for none
  """

  segment: Segment
  figures: SegmentFigures
  env0: Array
  velocity_mean: Array
  velocity_std: Array
  posture_mean: Array | None = None
  posture_std: Array | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
  """A whole measured replay.

  columns          names of the columns of every `env0`
  joint_range_rad  joint to its lower and upper limit
  """

  circumstances: Circumstances
  joints: tuple[str, ...]
  feet: tuple[str, ...]
  joint_range_rad: Mapping[str, tuple[float, float]]
  columns: tuple[str, ...]
  segments: tuple[MeasuredSegment, ...]

  @property
  def dt_s(self) -> float:
    """Length of a control step."""
    return 1 / self.circumstances.control_hz

  @property
  def starts(self) -> tuple[int, ...]:
    """First control step of each segment, and at last the number of all."""
    return tuple(accumulate((len(part.env0) for part in self.segments), initial=0))

  def index(self, column: str) -> int:
    """Where a column stands.

    Raises:
      ValueError: there is no such column.
    """
    if column not in self.columns:
      raise ValueError(f"no column {column!r}; the columns are {', '.join(self.columns)}")
    return self.columns.index(column)
