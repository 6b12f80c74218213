"""Observation groups."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.observing import Observer
from mjrl.envs.task import obs
from mjrl.envs.terms import observations

DT_S = 0.02


class Group(Observer):
  """An observer of one group."""

  def read(self):
    return super().read()["policy"]


def group(standing, rows, num_envs=2, history=None, seed=0):
  rng = torch.Generator().manual_seed(seed)
  return Group({"policy": rows}, at(standing, 0.0, num_envs), DT_S, rng, history)


def at(standing, value, num_envs=2):
  """A state that can be told from others: all its actions are `value`."""
  return standing(num_envs, action=value, lin_vel_b=[[value, 0.0, 0.0]] * num_envs)


def test_reading_changes_nothing(tripod, make_env, actions):
  # Guards: buffers pushed by a read (mjlab#364): half the delay, frames twice, other noise.
  plain, read = make_env(tripod), make_env(tripod)
  for action in actions(plain, 5):
    for _ in range(3):
      first = read.observations()
      assert all(torch.equal(first[k], v) for k, v in read.observations().items())
    expected, got = plain.step(action), read.step(action)
    for name, observation in expected.observations.items():
      assert torch.equal(observation, got.observations[name]), name


@pytest.mark.parametrize("history", [1, 3])
@pytest.mark.parametrize("delay", [0, 1, 4])
def test_a_delay_of_k_steps_is_k_steps(standing, delay, history):
  # Guards: a delay that is off by one, or shortened by the history.
  g = group(standing, {"a": obs(observations.action, delay_s=delay * DT_S, history=history)})
  for step in range(1, 12):
    g.write(at(standing, float(step)))
    newest = g.read()[:, -2:]
    assert newest.eq(max(step - delay, 0)).all(), step


def test_history_is_oldest_first(standing):
  # Guards: frames in an order that the controller on the robot does not use.
  g = group(standing, {"a": obs(observations.action, history=3), "v": obs(observations.lin_vel_b)})
  for step in range(1, 6):
    g.write(at(standing, float(step)))
  assert g.layout("policy") == {"a": (2, 3), "v": (3, 1)}
  assert g.read()[0].tolist() == [3.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 0.0, 0.0]


def test_a_new_episode_has_no_past(standing):
  # Guards: frames of a fall in the first observations after it.
  g = group(standing, {"a": obs(observations.action, history=3, delay_s=DT_S)})
  for step in range(1, 6):
    g.write(at(standing, float(step)))
  g.write(at(standing, 9.0), torch.tensor([True, False]))
  assert g.read()[:, ::2].tolist() == [[9.0, 9.0, 9.0], [2.0, 3.0, 4.0]]
  g.write(at(standing, 10.0))
  assert g.read()[:, ::2].tolist() == [[9.0, 9.0, 9.0], [3.0, 4.0, 5.0]]


def test_noise_is_drawn_once_per_frame(standing):
  # Guards: noise drawn anew on stored frames, which the policy then averages away.
  g = group(standing, {"a": obs(observations.action, noise=0.5, history=3)})
  before = g.read()
  for step in range(1, 6):
    g.write(at(standing, float(step)))
    after = g.read()
    assert torch.equal(after[:, :4], before[:, 2:]), step
    newest = after[:, 4:] - step
    assert newest.abs().max() <= 0.5 and len(newest.unique()) == newest.numel()
    before = after


def test_noise_fills_its_width(standing):
  # Guards: noise of half or twice the width, or with a bias.
  g = group(standing, {"a": obs(observations.action, noise=0.5)}, num_envs=4000)
  g.write(at(standing, 0.0, 4000))
  draws = g.read()
  assert 0.49 < draws.abs().max() <= 0.5
  assert abs(draws.mean()) < 0.02 and abs(draws.std() - 0.5 / 3**0.5) < 0.01


def test_a_row_is_clipped_in_its_unit_and_then_scaled(standing):
  # Guards: a clip in the unit of the scaled row.
  g = group(standing, {"a": obs(observations.action, clip=(-2.0, 2.0), scale=10.0)})
  g.write(at(standing, 5.0))
  assert g.read()[0].tolist() == [20.0, 20.0]


def test_the_critic_sees_no_noise(tripod, make_env):
  # Guards: rows shared between actor and critic, and the actor's noise with them.
  env = make_env(tripod)
  layout, frame = env.observer.layout("critic"), 0
  critic, policy = env.observations()["critic"], env.observations()["policy"]
  for name, (width, frames) in layout.items():
    row = tripod.observations["critic"][name]
    assert row.noise == 0, name
    value = row.fn(env.state, **row.params).repeat(1, frames)  # a first frame, all of the past
    assert torch.equal(critic[:, frame : frame + width * frames], value), name
    frame += width * frames
  assert frame == critic.shape[1]
  assert not torch.equal(policy[:, :3], critic[:, :3])  # where the policy's noise is


@pytest.mark.parametrize("delay_s", [0.01, 0.05])
def test_a_delay_between_steps_is_refused(tripod, make_env, delay_s):
  # Guards: a delay that is rounded without a word.
  rows = dict(tripod.observations["policy"])
  rows["command"] = replace(rows["command"], delay_s=delay_s)
  task = replace(tripod, observations={**tripod.observations, "policy": rows})
  with pytest.raises(ValueError, match=rf"policy\.command: delay_s {delay_s} .* 0\.02 s"):
    make_env(task)


@pytest.mark.parametrize("bad", [{"history": 0}, {"noise": -0.1}, {"delay_s": -0.02}])
def test_numbers_that_mean_nothing_are_refused(bad):
  # Guards: a sign that is silently turned.
  with pytest.raises(ValueError, match="at least 1, 0 and 0"):
    obs(observations.action, **bad)


def test_groups_do_not_mix(standing):
  # Guards: columns of one group in another, and noise of one in the other's rows.
  groups = {
    "policy": {"a": obs(observations.action, noise=0.5, history=2, delay_s=DT_S)},
    "critic": {"v": obs(observations.lin_vel_b), "a": obs(observations.action, history=3)},
  }
  for order in (list(groups), list(reversed(groups))):
    rng = torch.Generator().manual_seed(0)
    ordered = {name: groups[name] for name in order}
    g = Observer(ordered, at(standing, 0.0), DT_S, rng, None)
    for step in range(1, 6):
      g.write(at(standing, float(step)))
    seen = g.read()
    assert seen["critic"][0].tolist() == [5.0, 0.0, 0.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0]
    noise = seen["policy"] - torch.tensor([3.0, 3.0, 4.0, 4.0])
    assert 0 < noise.abs().min() and noise.abs().max() <= 0.5
    assert g.width("policy") == 4 and g.width("critic") == 9


def test_what_was_read_stays(standing):
  # Guards: observations in the rollout's storage that change with the next step.
  for rows in ({"a": obs(observations.action)}, {"a": obs(observations.action, history=2)}):
    g = group(standing, rows)
    g.write(at(standing, 1.0))
    first = g.read()
    copy = first.clone()
    g.write(at(standing, 2.0))
    g.write(at(standing, 3.0), torch.tensor([True, False]))
    g.write(at(standing, 4.0))
    assert torch.equal(first, copy)


def test_history_of_the_recipe_spares_rows_with_one_frame(standing):
  # Guards: a command repeated five times, or a row's history that stays.
  rows = {"a": obs(observations.action, history=5), "v": obs(observations.lin_vel_b)}
  assert group(standing, rows, history=3).layout("policy") == {"a": (2, 3), "v": (3, 1)}
  assert group(standing, rows).layout("policy") == {"a": (2, 5), "v": (3, 1)}


def test_frames_are_saved_and_taken_up(standing):
  # Guards: a resumed run that starts with an empty past.
  g, other = (group(standing, {"a": obs(observations.action, history=3)}) for _ in range(2))
  for step in range(1, 4):
    g.write(at(standing, float(step)))
  other.load(g.save())
  for each in (g, other):
    each.write(at(standing, 4.0))
  assert torch.equal(g.read(), other.read())
