"""From recorded arrays to the SI figures of a segment.  Pure functions of what was recorded.

Each figure is worked out per env over the control steps that count, then given as mean and standard
deviation over the envs.  What was not measured, or has no meaning for the command, is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mjrl.envs.posture import POSTURE
from mjrl.measure.gait_figures import Clock, clock_match, swings
from mjrl.measure.series import Posture, Segment
from mjrl.measure.statistics import Array, Spread, counted_steps, mean_over_time, spread

if TYPE_CHECKING:  # it loads torch, which reading figures does without
  from mjrl.measure.record import Recording

GRAVITY_M_S2 = 9.81
AT_LIMIT = 0.999
"""A torque of at least this share of the effort limit is at the limit (float32 rounds)."""
LEAST_SPEED_M_S = 0.02
"""Below this speed a cost of transport says nothing."""


@dataclass(frozen=True, kw_only=True)
class Tracking:
  """One component of the command: achieved is the mean over time, error = achieved - commanded."""

  commanded: float
  achieved: Spread | None
  error: float | None
  ratio: float | None


@dataclass(frozen=True, kw_only=True)
class JointFigures:
  """Torque of one joint, sampled once per control step; the peak is that of all envs."""

  peak_torque_n_m: float | None
  rms_torque_n_m: float | None
  share_at_limit: float | None


@dataclass(frozen=True, kw_only=True)
class FootFigures:
  """One foot, or the mean over all of them.  See `definitions.DEFINITIONS`."""

  duty: Spread | None
  clock_match: Spread | None
  lift_m: Spread | None
  clearance_m: Spread | None
  slip_m_s: Spread | None
  swings: int
  short_flights: int


@dataclass(frozen=True, kw_only=True)
class Extent:
  """A quantity of the base: its mean, and its extremes over all envs and counted steps."""

  mean: Spread | None
  least: float | None
  greatest: float | None


@dataclass(frozen=True, kw_only=True)
class PostureFigures:
  """Each number of the posture that was asked for."""

  twist_rad: Tracking
  pitch_rad: Tracking
  roll_rad: Tracking
  height_m: Tracking


@dataclass(frozen=True, kw_only=True)
class SegmentFigures:
  """Everything that is reported of one command.  See `definitions.DEFINITIONS`."""

  name: str
  steps: int
  counted_share: float
  falls: int
  envs_failed: int
  diverged: int
  forward_m_s: Tracking
  left_m_s: Tracking
  yaw_rad_s: Tracking
  drift_m_s: Spread | None
  height_m: Extent
  tilt_rad: Extent
  cost_of_transport: Spread | None
  clock_match_strict: Spread | None
  clock_match_lenient: Spread | None
  all_feet: FootFigures
  feet: dict[str, FootFigures]
  joints: dict[str, JointFigures]
  posture: PostureFigures | None = None


def segment_figures(
  recording: "Recording",
  segment: Segment,
  *,
  joints: Sequence[str],
  feet: Sequence[str],
  clock: Clock | None,
  effort_limit_n_m: float,
  mass_kg: float,
  settle_s: float,
) -> SegmentFigures:
  """The figures of one held command.

  clock     None for a task without a gait: its figures are then missing
  settle_s  time after the start of each episode that does not count
  """
  counted = counted_steps(recording.ended, round(settle_s / recording.dt_s))
  moving_clock = None if segment.standing else clock
  match = None
  if moving_clock is not None:
    match = clock_match(recording.foot_contact, recording.clock_steps, counted, moving_clock)
  every_foot = _feet(recording, counted, clock, match.per_foot if match else None)
  axes = mean_over_time(recording.velocity, counted)
  cost = cost_of_transport(recording.power_w, axes, counted, mass_kg)
  drift = drift_speed(recording.position_m, counted, recording.dt_s)
  return SegmentFigures(
    name=segment.name,
    steps=len(counted),
    counted_share=float(counted.mean()),
    falls=int(recording.ended.sum()) - recording.diverged,
    envs_failed=int(recording.ended.any(0).sum()),
    diverged=recording.diverged,
    forward_m_s=tracking(segment.command[0], axes[:, 0]),
    left_m_s=tracking(segment.command[1], axes[:, 1]),
    yaw_rad_s=tracking(segment.command[2], axes[:, 2]),
    drift_m_s=spread(drift) if segment.standing else None,
    height_m=extent(recording.height_m, counted),
    tilt_rad=extent(recording.tilt_rad, counted),
    cost_of_transport=spread(cost) if segment.travelling else None,
    clock_match_strict=spread(match.strict) if match else None,
    clock_match_lenient=spread(match.lenient) if match else None,
    all_feet=_foot(every_foot, slice(None)),
    feet={name: _foot(every_foot, slice(f, f + 1)) for f, name in enumerate(feet)},
    joints={
      name: joint_figures(recording.torque_n_m[:, :, j], counted, effort_limit_n_m)
      for j, name in enumerate(joints)
    },
    posture=posture_figures(recording.posture, segment.posture, counted),
  )


def posture_figures(
  postures: Array | None, asked: Posture | None, counted: Array
) -> PostureFigures | None:
  """What was asked of the body against its postures, (T, N, 4); None where nothing was."""
  if postures is None or asked is None:
    return None
  means = mean_over_time(postures, counted)
  numbers = zip(POSTURE, asked, means.T, strict=True)
  return PostureFigures(**{name: tracking(value, mean) for name, value, mean in numbers})


def tracking(commanded: float, achieved: Array) -> Tracking:
  """One component of the command against its mean over time in each env, (N,)."""
  over_envs = spread(achieved)
  mean = over_envs.mean if over_envs else None
  return Tracking(
    commanded=commanded,
    achieved=over_envs,
    error=None if mean is None else mean - commanded,
    ratio=None if mean is None or commanded == 0 else mean / commanded,
  )


def joint_figures(torque_n_m: Array, counted: Array, limit_n_m: float) -> JointFigures:
  """Peak, root mean square and share of time at the limit of one joint's torque (T, N)."""
  size = np.abs(torque_n_m[counted]).astype(np.float64)
  if not size.size:
    return JointFigures(peak_torque_n_m=None, rms_torque_n_m=None, share_at_limit=None)
  return JointFigures(
    peak_torque_n_m=float(size.max()),
    rms_torque_n_m=float(np.sqrt(np.mean(size**2))),
    share_at_limit=float(np.mean(size >= AT_LIMIT * limit_n_m)),
  )


def extent(values: Array, counted: Array) -> Extent:
  """Mean and extremes of (T, N)."""
  known = values[counted]
  return Extent(
    mean=spread(mean_over_time(values, counted)),
    least=float(known.min()) if known.size else None,
    greatest=float(known.max()) if known.size else None,
  )


def drift_speed(position_m: Array, counted: Array, dt_s: float) -> Array:
  """Distance between first and last counted place of each episode over its time.  (N,) m/s.

  position_m  (T, N, 2) in the world.
  """
  first_m = position_m[0].astype(np.float64)
  moved_m, time_s = np.zeros(counted.shape[1]), np.zeros(counted.shape[1])
  before = np.zeros(counted.shape[1], bool)
  for step, counts in enumerate(counted):
    begins = counts & ~before
    first_m = np.where(begins[:, None], position_m[step], first_m)
    last = counts & ~(counted[step + 1] if step + 1 < len(counted) else False)
    moved_m += np.where(last, np.linalg.norm(position_m[step] - first_m, axis=1), 0.0)
    time_s += np.where(counts & before, dt_s, 0.0)
    before = counts
  return np.divide(moved_m, time_s, out=np.full(time_s.shape, np.nan), where=time_s > 0)


def cost_of_transport(power_w: Array, axes: Array, counted: Array, mass_kg: float) -> Array:
  """Mean positive mechanical power over weight times speed, per env.  (N,); NaN where it stands.

  power_w  (T, N) sum over joints of max(0, torque * velocity);  axes  (N, 3) mean velocity
  """
  speed = np.hypot(axes[:, 0], axes[:, 1])
  weight_w = mass_kg * GRAVITY_M_S2 * speed
  power = mean_over_time(power_w, counted)
  return np.divide(power, weight_w, out=np.full(power.shape, np.nan), where=speed > LEAST_SPEED_M_S)


@dataclass(frozen=True, kw_only=True)
class _Feet:
  """Per env and foot, (N, F)."""

  duty: Array
  match: Array | None
  lift_m: Array
  clearance_m: Array
  slip_m_s: Array
  swings: Array
  short_flights: Array


def _feet(
  recording: "Recording", counted: Array, clock: Clock | None, match: Array | None
) -> _Feet:
  contact = recording.foot_contact
  least_steps = clock.half_swing_steps if clock else 1
  found = swings(contact, recording.foot_height_m, counted, least_steps)
  return _Feet(
    duty=mean_over_time(contact, counted),
    match=match,
    lift_m=found.lift_m,
    clearance_m=found.clearance_m,
    slip_m_s=mean_over_time(recording.foot_speed_m_s, counted[:, :, None] & contact),
    swings=found.number,
    short_flights=found.short,
  )


def _foot(feet: _Feet, columns: slice) -> FootFigures:
  return FootFigures(
    duty=spread(_over_feet(feet.duty[:, columns])),
    clock_match=None if feet.match is None else spread(_over_feet(feet.match[:, columns])),
    lift_m=spread(_over_feet(feet.lift_m[:, columns])),
    clearance_m=spread(_over_feet(feet.clearance_m[:, columns])),
    slip_m_s=spread(_over_feet(feet.slip_m_s[:, columns])),
    swings=int(feet.swings[:, columns].sum()),
    short_flights=int(feet.short_flights[:, columns].sum()),
  )


def _over_feet(values: Array) -> Array:
  """Mean over the feet that have the figure, (N, F) to (N,)."""
  return mean_over_time(values.T, np.isfinite(values.T))
