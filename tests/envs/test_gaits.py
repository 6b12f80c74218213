"""Gait clocks."""

from math import cos, pi, sin

import pytest

from mjrl.envs.gaits import Gait
from mjrl.robots.jumper import JUMPER
from mjrl.tasks.jumper.tripod import TRIPOD


def gait(**changes):
  numbers = {
    "name": "walk",
    "swing_steps": 3,
    "groups": (("A",), ("B", "C"), ("D",)),
    "mirror": (1, -1),
  }
  return Gait(**numbers | changes)


def test_the_table_of_tripod():
  # Guards: feet grouped by side instead of across: a table that a robot cannot stand on.
  table = TRIPOD.contact_table(JUMPER.feet)
  assert len(table) == 16
  for step, row in enumerate(table):
    swings = {foot for foot, down in zip(JUMPER.feet, row, strict=True) if not down}
    assert swings == ({"LF", "RM", "LR"} if step < 8 else {"RF", "LM", "RR"}), step


def test_groups_swing_one_after_the_other():
  # Guards: a group that swings twice, and one that never does.
  table = gait().contact_table(("D", "C", "B", "A"))
  assert gait().cycle_steps == 9 and gait().duty == pytest.approx(2 / 3)
  swings = ["".join(f for f, down in zip("DCBA", row, strict=True) if not down) for row in table]
  assert swings == ["A"] * 3 + ["CB"] * 3 + ["D"] * 3


def test_the_phase_goes_round_once():
  # Guards: a phase in turns of half a cycle, or one that jumps.
  table = TRIPOD.phase_table()
  assert table[0] == (0.0, 1.0) and table[4] == pytest.approx((1.0, 0.0), abs=1e-12)
  for step, phase in enumerate(table):
    assert phase == pytest.approx((sin(2 * pi * step / 16), cos(2 * pi * step / 16)))
  assert len(set(table)) == 16


def test_mirrored_a_tripod_is_half_a_cycle_later():
  # Guards: a mirror loss that teaches the other half of the clock.
  contacts, phases = TRIPOD.contact_table(JUMPER.feet), TRIPOD.phase_table()
  other_side = [JUMPER.feet.index(JUMPER.mirror_feet[foot]) for foot in JUMPER.feet]
  for step in range(16):
    later = (step + 8) % 16
    assert [contacts[step][foot] for foot in other_side] == contacts[later]
    signed = tuple(sign * value for sign, value in zip(TRIPOD.mirror, phases[step], strict=True))
    assert signed == pytest.approx(phases[later], abs=1e-12)


@pytest.mark.parametrize("feet", [("A", "B", "C"), ("A", "B", "C", "D", "E"), ("A", "B", "C", "X")])
def test_groups_must_be_the_feet(feet):
  # Guards: a foot that the clock forgets, or one that the robot does not have.
  with pytest.raises(ValueError, match="are not made of the feet"):
    gait().contact_table(feet)


@pytest.mark.parametrize(
  ("bad", "says"),
  [
    ({"groups": (("A", "B"), ("B",))}, "a foot swings twice"),
    ({"groups": (("A", "A"), ("B",))}, "a foot swings twice"),
    ({"groups": (("A", "B"),)}, "at least 2 groups"),
    ({"swing_steps": 0}, "at least 1 step"),
  ],
)
def test_a_clock_that_is_none_is_refused(bad, says):
  # Guards: a cycle of no length.
  with pytest.raises(ValueError, match=says):
    gait(**bad)
