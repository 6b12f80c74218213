"""A page is checked when it is built."""

from dataclasses import FrozenInstanceError, replace

import pytest

from mjrl.envs.task import obs, read_number, term
from mjrl.envs.terms import observations, terminations
from mjrl.names import nearest


@pytest.mark.parametrize("control_dt_s", [0.012, 0.0025, 0.0])
def test_control_steps_are_whole_physics_steps(tripod, control_dt_s):
  # Guards: 2.4 substeps that become 2, and a robot that lives slower than its clock.
  with pytest.raises(ValueError, match=r"is not a whole multiple of physics_dt_s 0\.005"):
    replace(tripod, control_dt_s=control_dt_s)


def test_counts_follow_from_the_times(tripod):
  # Guards: a float that is cut to the number below.
  assert (tripod.substeps, tripod.episode_steps) == (4, 1000)
  other = replace(tripod, physics_dt_s=0.001, control_dt_s=0.007, episode_s=0.7)
  assert (other.substeps, other.episode_steps) == (7, 100)


@pytest.mark.parametrize("group", ["policy", "critic"])
def test_both_groups_must_be_there(tripod, group):
  # Guards: a KeyError in the learner.
  for rows in ({}, None):
    groups = {k: v for k, v in tripod.observations.items() if k != group}
    groups |= {} if rows is None else {group: rows}
    with pytest.raises(ValueError, match=f"group '{group}' is missing or empty"):
      replace(tripod, observations=groups)


def test_a_page_cannot_be_changed(tripod):
  # Guards: an environment that edits the task it was given.
  with pytest.raises(FrozenInstanceError):
    tripod.episode_s = 3.0


def test_rows_check_their_parameters():
  # Guards: a parameter that no row reads.
  with pytest.raises(ValueError, match=r"fell_over: .*missing \['max_tilt_rad'\]"):
    term(terminations.fell_over)
  with pytest.raises(ValueError, match=r"action: unknown parameters \['lag'\]"):
    obs(observations.action, lag=1)


def test_numbers_are_found_by_path(tripod):
  # Guards: an override that changes nothing.
  assert read_number(tripod, "rewards.gait.weight") == 1.0
  assert read_number(tripod, "rewards.gait.width_feet") == 0.7


def test_choices_are_named():
  # Guards: an error that leaves its reader to guess.
  assert nearest("gate", ["slip", "gait"]) == "did you mean 'gait'? valid names: slip, gait"
  assert nearest("xyzzy", ["slip", "gait"]) == "valid names: slip, gait"
