import numpy as np
import pytest

from mjrl.envs.gaits import Gait
from mjrl.measure.gait_figures import clock, clock_match, swings

FEET = ("LF", "RF", "LM", "RM", "LR", "RR")
TRIPOD = Gait(
  name="tripod", swing_steps=8, groups=(("LF", "RM", "LR"), ("RF", "LM", "RR")), mirror=(-1, -1)
)


def match(recording, tripod):
  counted = np.ones(recording.ended.shape, bool)
  return clock_match(recording.foot_contact, recording.clock_steps, counted, tripod)


def test_the_clock_knows_its_switches(tripod):
  # Guards: forgiveness that reaches further than the two control steps at a switch.
  assert tripod.half_swing_steps == 4
  left = tripod.at_switch[:, 0]  # swings in steps 0 to 7
  assert np.flatnonzero(left).tolist() == [0, 7, 8, 15]
  assert (tripod.at_switch == left[:, None]).all()


def test_a_perfect_tripod_matches_throughout(walk, tripod):
  # Guards: feet and columns of the clock in different orders.
  got = match(walk, tripod)
  assert (got.per_foot == 1).all() and (got.strict == 1).all() and (got.lenient == 1).all()


@pytest.mark.parametrize("steps", [-1, 1])
def test_one_step_early_or_late_is_forgiven_and_seen(late, tripod, steps):
  # Guards: tolerance on one side of a switch alone, and a strict figure that is tolerant too.
  got = match(late(steps), tripod)
  assert (got.lenient == 1).all()
  assert got.strict == pytest.approx(14 / 16)
  assert got.per_foot == pytest.approx(14 / 16)


@pytest.mark.parametrize("steps", [-2, 2])
def test_two_steps_early_or_late_are_not_forgiven(late, tripod, steps):
  # Guards: a gait a quarter of a swing off the clock passing for one that keeps it.
  got = match(late(steps), tripod)
  assert got.lenient == pytest.approx(14 / 16)
  assert got.strict == pytest.approx(12 / 16)


def test_one_lazy_foot_shows_in_its_own_figure_and_in_all_six(walk, tripod):
  # Guards: five good feet hiding one that never leaves the ground.
  contact = walk.foot_contact.copy()
  contact[:, :, 3] = True
  counted = np.ones(walk.ended.shape, bool)
  got = clock_match(contact, walk.clock_steps, counted, tripod)
  assert got.per_foot[:, 3] == pytest.approx(0.5)
  assert (np.delete(got.per_foot, 3, axis=1) == 1).all()
  assert got.strict == pytest.approx(0.5) and got.lenient == pytest.approx(10 / 16)


def test_a_gait_of_other_feet_is_refused():
  # Guards: a clock silently laid over the wrong feet.
  with pytest.raises(ValueError, match="are not made of the feet"):
    clock(TRIPOD, FEET[:5])


def one_foot(text, heights=None):
  """Contacts of one foot in one env: a character per step, # on the ground."""
  contact = np.array([c == "#" for c in text])[:, None, None]
  heights = np.where(contact[:, 0, 0], 0.0, 0.02) if heights is None else np.array(heights)
  return contact, heights[:, None, None]


def test_lift_is_the_peak_over_stance():
  # Guards: the mean height of a swing, or its height over the floor, in place of its peak.
  contact, height = one_foot("##...##", [-0.004, -0.002, 0.01, 0.03, 0.02, -0.001, -0.001])
  got = swings(contact, height, np.ones((7, 1), bool), least_steps=1)
  assert got.number == 1
  assert got.clearance_m == pytest.approx(0.03)
  assert got.lift_m == pytest.approx(0.032)


def test_bounces_are_counted_and_kept_out_of_the_lift():
  # Guards: chatter of a foot on the ground reported as many low steps, or hidden.
  contact, height = one_foot("#.#....#.#")
  got = swings(contact, height, np.ones((10, 1), bool), least_steps=4)
  assert (got.number, got.short) == (1, 2)
  assert got.lift_m == pytest.approx(0.02)


def test_flights_cut_off_at_either_end_are_no_swings():
  # Guards: half a swing, whose peak was not seen, lowering the mean.
  contact, height = one_foot("...#...#..")
  got = swings(contact, height, np.ones((10, 1), bool), least_steps=1)
  assert got.number == 1


def test_a_flight_through_the_end_of_an_episode_is_no_swing():
  # Guards: a robot dropped in at its start reported as having lifted its feet.
  contact, height = one_foot("##....##")
  counted = np.array([1, 1, 1, 0, 0, 1, 1, 1], bool)[:, None]
  got = swings(contact, height, counted, least_steps=1)
  assert got.number == 0 and np.isnan(got.lift_m).all()
