from dataclasses import replace

import pytest

from mjrl import tasks
from mjrl.envs.curriculum import as_on_last_rung
from mjrl.measure.replayed import as_replayed, kept


@pytest.fixture(scope="module")
def task():
  return tasks.build("jumper.tripod")


def test_every_difference_is_made_and_said(task):
  # Guards: a replay that is easier than training in a way that nobody is told.
  changed, said = as_replayed(task, obs_noise=False, physics_hz=1000)
  text = "\n".join(said)
  assert not [e for e in changed.events.values() if e.when == "interval"] and "push" in text
  assert changed.episode_s > 1e6 and "20 s" in text
  assert changed.curriculum is None and "ladder" in text
  assert not any(row.noise for row in changed.observations["policy"].values()) and "noise" in text
  assert changed.physics_dt_s == pytest.approx(0.001) and "1000 Hz instead of the 200 Hz" in text
  assert changed.control_dt_s == task.control_dt_s
  assert len(said) == 5 and all(sentence.endswith(".") for sentence in said)


def test_nothing_else_changes(task):
  # Guards: a replay that quietly drops randomisation, terminations or rows of the observation.
  changed, _ = as_replayed(task, obs_noise=True, physics_hz=None)
  back = replace(changed, events=task.events, episode_s=task.episode_s, curriculum=task.curriculum)
  assert back == task


def test_on_rough_ground_envs_are_spread_over_all_levels(task):
  # Guards: a policy measured on the easiest tiles alone, where a training would have begun.
  rough = replace(task, terrain=replace(task.terrain, ground="rough"))
  changed, said = as_replayed(rough, obs_noise=True, physics_hz=None)
  assert changed.terrain == replace(rough.terrain, curriculum=None)
  assert "There is no terrain curriculum: envs are spread over all levels." in said
  assert as_on_last_rung(rough).terrain == changed.terrain  # and so are those of evaluations


def test_by_default_noise_and_rate_are_those_of_training(task):
  # Guards: a clean or finer replay presented as the trained one.
  changed, said = as_replayed(task, obs_noise=True, physics_hz=None)
  assert changed.observations == task.observations
  assert changed.physics_dt_s == task.physics_dt_s
  assert len(said) == 3 and "Hz" not in "".join(said) and "noise" not in "".join(said)


def test_the_rate_of_training_by_name_is_no_difference(task):
  # Guards: 1/200 in place of 0.005, another number to the last bit and another result.
  changed, said = as_replayed(task, obs_noise=True, physics_hz=1 / task.physics_dt_s)
  assert changed.physics_dt_s == task.physics_dt_s and len(said) == 3


@pytest.mark.parametrize("hz", [170.0, 25.0, 0.0, -200.0])
def test_a_rate_that_does_not_fit_is_refused(task, hz):
  # Guards: the control rate, and with it the policy, changed by a physics rate.
  with pytest.raises(ValueError, match=r"--physics-hz .* control rate, 50 Hz: try"):
    as_replayed(task, obs_noise=True, physics_hz=hz)


def test_what_stays_random_is_said(task):
  # Guards: randomisation that stays on without a word.
  for pushes in (False, True):
    replayed, _ = as_replayed(task, obs_noise=True, physics_hz=None, pushes=pushes)
    text = "\n".join(kept(replayed))
    stay = ("startup", "reset", "interval") if pushes else ("startup", "reset")
    for name, event in task.events.items():
      assert (name in text) == (event.when in stay)
  for name, row in task.observations["policy"].items():
    assert (f"{name} ±" in text) == bool(row.noise)
