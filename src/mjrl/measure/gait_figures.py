"""What the feet did: swings, and how well their contacts follow the gait clock."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mjrl.envs.gaits import Gait
from mjrl.measure.statistics import Array, mean_over_time


@dataclass(frozen=True, kw_only=True)
class Clock:
  """A gait clock as tables over its cycle of C control steps.

  wanted          (C, F) bool: the foot should be on the ground
  at_switch       (C, F) bool: what is wanted of the foot differs one control step before or after
  half_swing_steps  half of a swing, rounded up
  """

  wanted: Array
  at_switch: Array
  half_swing_steps: int


def clock(gait: Gait, feet: Sequence[str]) -> Clock:
  """The clock's tables for these feet."""
  wanted = np.array(gait.contact_table(feet))
  at_switch = (wanted != np.roll(wanted, 1, axis=0)) | (wanted != np.roll(wanted, -1, axis=0))
  return Clock(wanted=wanted, at_switch=at_switch, half_swing_steps=(gait.swing_steps + 1) // 2)


@dataclass(frozen=True, kw_only=True)
class Match:
  """Share of the counted control steps in which contacts match the clock, per env.

  per_foot  (N, F)
  strict    (N,) all feet match
  lenient   (N,) all feet match, a foot being forgiven in the control step directly before or after
            one of its switches
  """

  per_foot: Array
  strict: Array
  lenient: Array


def clock_match(contact: Array, clock_steps: Array, counted: Array, clock: Clock) -> Match:
  """Compare contacts (T, N, F) with the clock at clock_steps (T, N)."""
  right = contact == clock.wanted[clock_steps]
  forgiven = right | clock.at_switch[clock_steps]
  return Match(
    per_foot=mean_over_time(right, counted),
    strict=mean_over_time(right.all(2), counted),
    lenient=mean_over_time(forgiven.all(2), counted),
  )


@dataclass(frozen=True, kw_only=True)
class Swings:
  """The flights of each foot that began and ended within counted steps.  All (N, F).

  number       of flights that lasted long enough to be swings
  short        of flights that did not: bounces and brushes
  clearance_m  mean over the swings of the greatest height of the foot's lowest point over the
               ground; NaN without a swing
  lift_m       the same above the mean height of that point in stance, in which contact is soft
  """

  number: Array
  short: Array
  clearance_m: Array
  lift_m: Array


def swings(contact: Array, height_m: Array, counted: Array, least_steps: int) -> Swings:
  """Find the swings of least_steps control steps or more in contact and height, (T, N, F)."""
  shape = contact.shape[1:]
  flight_steps = np.zeros(shape, np.int64)
  began = np.zeros(shape, bool)  # whether the flight's take-off was seen
  peak_m = np.full(shape, -np.inf)
  number, short = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
  total_m = np.zeros(shape)
  for on_ground, height, counts in zip(contact, height_m, counted, strict=True):
    seen = counts[:, None]
    landed = on_ground & seen & began & (flight_steps > 0)
    swing = landed & (flight_steps >= least_steps)
    number += swing
    short += landed & ~swing
    total_m += np.where(swing, peak_m, 0.0)
    began = seen & (began | on_ground)
    flight_steps = np.where(on_ground, 0, flight_steps + 1)
    peak_m = np.where(on_ground, -np.inf, np.maximum(peak_m, height))
  stance_m = mean_over_time(height_m, counted[:, :, None] & contact)
  peak = np.divide(total_m, number, out=np.full(shape, np.nan), where=number > 0)
  return Swings(number=number, short=short, clearance_m=peak, lift_m=peak - stance_m)
