"""PPO: what a time-out is worth, and updates that no bad number can end."""

import math
from dataclasses import replace

import pytest
import torch
from rsl_rl.models import MLPModel, RNNModel
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from mjrl import tasks
from mjrl.learn.ppo import Ppo

N, STEPS, WIDTH, GAMMA = 3, 4, 2, 0.9


def observations(value=0.0, num_envs=N):
  filled = torch.full((num_envs, WIDTH), float(value))
  return TensorDict({"policy": filled, "critic": filled.clone()}, batch_size=[num_envs])


def make(num_envs=N, steps=STEPS, bootstrap="terminal", memory=None, **changes):
  torch.manual_seed(0)
  obs = observations(num_envs=num_envs)
  groups = {"actor": ["policy"], "critic": ["critic"]}
  gaussian = {"class_name": "GaussianDistribution", "init_std": 0.5}
  model = RNNModel if memory else MLPModel
  options = {"hidden_dims": (8,), "obs_normalization": True}
  options |= {"rnn_type": memory, "rnn_hidden_dim": 4} if memory else {}
  actor = model(obs, groups, "actor", 2, distribution_cfg=gaussian, **options)
  critic = model(obs, groups, "critic", 1, **options)
  storage = RolloutStorage("rl", num_envs, steps, obs, [2])
  options = {"gamma": GAMMA, "lam": 0.95, "num_learning_epochs": 2, "num_mini_batches": 2} | changes
  return Ppo(actor, critic, storage, bootstrap=bootstrap, min_std=0.05, **options)


def step(alg, obs, rewards, timed_out=(), failed=(), terminal=None, after=None):
  """One step of a rollout; the envs named time out or fail."""
  n = obs.batch_size[0]
  ends = torch.zeros(2, n, dtype=torch.bool)
  for row, envs in enumerate((timed_out, failed)):
    ends[row, list(envs)] = True
  extras = {"time_outs": ends[0]} | ({"terminal": terminal} if terminal is not None else {})
  with torch.inference_mode():
    alg.act(obs)
    alg.process_env_step(
      obs if after is None else after, torch.tensor(rewards), ends.any(0), extras
    )


def rollout(alg, steps=STEPS, rewards=(1.0, 1.0, 1.0), **ends):
  rng = torch.Generator().manual_seed(1)
  for _ in range(steps):
    obs = TensorDict(
      {k: torch.randn(N, WIDTH, generator=rng) for k in ("policy", "critic")}, batch_size=[N]
    )
    step(alg, obs, list(rewards), **ends)
  with torch.inference_mode():
    alg.compute_returns(observations())


def test_a_time_out_is_worth_where_it_ended():
  # Guards: a time-out valued by the observation before it (rsl_rl#20), by the next episode's, or
  # as an end for good; and a failure that is paid for what did not come.
  alg = make()
  terminal = observations(2.0)
  step(alg, observations(1.0), [1.0, 2.0, 3.0], timed_out=[0], failed=[1], terminal=terminal)
  value = alg.critic(terminal).squeeze(1)
  expected = torch.tensor([1.0 + GAMMA * value[0].item(), 2.0, 3.0])
  torch.testing.assert_close(alg.storage.rewards[0].squeeze(1), expected)
  assert alg.storage.dones[0].squeeze(1).tolist() == [1, 1, 0]
  assert abs(value[0].item()) > 1e-3  # so that the test can tell


def test_a_time_out_can_be_valued_as_rsl_rl_does():
  # Guards: a recipe's choice that does nothing.
  alg = make(bootstrap="previous")
  before = observations(1.0)
  step(alg, before, [1.0, 2.0, 3.0], timed_out=[0], failed=[1], terminal=observations(2.0))
  value = alg.critic(before).squeeze(1)[0].item()
  expected = torch.tensor([1.0 + GAMMA * value, 2.0, 3.0])
  torch.testing.assert_close(alg.storage.rewards[0].squeeze(1), expected)


def test_a_step_without_time_outs_adds_nothing():
  # Guards: a bootstrap of the last terminal observations, again and again.
  alg = make()
  step(alg, observations(1.0), [1.0, 2.0, 3.0], failed=[1])
  assert alg.storage.rewards[0].squeeze(1).tolist() == [1.0, 2.0, 3.0]


def test_a_terminal_observation_that_is_no_number_stays_its_own():
  # Guards: NaN * 0: an env that diverges in the step in which another times out.
  alg = make()
  terminal = observations(2.0)
  terminal["critic"][1] = math.nan
  step(alg, observations(1.0), [1.0, 2.0, 3.0], timed_out=[0], failed=[1], terminal=terminal)
  rewards = alg.storage.rewards[0].squeeze(1)
  assert rewards[1:].tolist() == [2.0, 3.0] and rewards[0].isfinite()


def test_an_unknown_bootstrap_is_refused():
  # Guards: a typo that means "previous".
  recipe = tasks.build("jumper.tripod").recipes["native"]
  with pytest.raises(ValueError, match=r"bootstrap 'terminl'; did you mean 'terminal'\?"):
    replace(recipe, bootstrap="terminl")


def parameters(alg):
  return {k: v.clone() for k, v in alg.actor.state_dict().items()} | {
    f"critic.{k}": v.clone() for k, v in alg.critic.state_dict().items()
  }


def changed(alg, before):
  after = parameters(alg)
  return [k for k in before if "normalizer" not in k and not torch.equal(before[k], after[k])]


def test_an_update_that_is_not_finite_is_skipped_and_counted():
  # Guards: one NaN reward that ends a run after hours (rsl_rl#33), or leaves NaN in the networks.
  alg = make()
  rollout(alg, rewards=(1.0, math.nan, 1.0))
  before = parameters(alg)
  alg.update()
  assert alg.skipped_updates == 4  # two epochs of two mini-batches
  assert changed(alg, before) == []
  (note,) = alg.take_notes()
  assert note.startswith("updates skipped: last for the gradient of ")
  rollout(alg, rewards=(1.0, 2.0, 3.0))
  losses = alg.update()
  assert alg.skipped_updates == 4 and all(map(math.isfinite, losses.values()))
  assert changed(alg, before) and alg.take_notes() == []
  assert all(v.isfinite().all() for v in parameters(alg).values())


@pytest.mark.parametrize("std", [-0.1, 0.0, math.nan])
def test_a_collapsed_std_comes_back(std):
  # Guards: "normal expects all elements of std >= 0.0", or exploration that is gone for good.
  alg = make()
  for _ in range(3):
    with torch.no_grad():
      alg.actor.distribution.std_param[1] = std
    rollout(alg, rewards=(1.0, 2.0, 3.0))
    alg.update()
    param = alg.actor.distribution.std_param
    assert param.isfinite().all() and param.min() >= 0.05
  assert param[0] > 0.3  # the other keeps its own
  before = parameters(alg)
  rollout(alg, rewards=(1.0, 2.0, 3.0))
  assert all(map(math.isfinite, alg.update().values()))
  assert changed(alg, before)


def test_a_std_above_its_floor_is_left_alone():
  # Guards: a floor that is a value.
  alg = make()
  rollout(alg)
  alg.update()
  assert 0.4 < alg.actor.distribution.std_param.min() < 0.6


@pytest.mark.parametrize(("bootstrap", "reaches"), [("terminal", True), ("none", False)])
@pytest.mark.parametrize("memory", [None, "lstm"])
def test_the_critic_of_a_constant_reward_approaches_its_sum(bootstrap, reaches, memory):
  # Guards: values that fall towards the end of an episode, where none is in sight: r / (1 - gamma)
  # is right, and a time-out taken for an end stays far below.
  options = {"use_clipped_value_loss": False, "max_grad_norm": 10.0, "schedule": "fixed"}
  alg = make(learning_rate=0.02, memory=memory, num_mini_batches=1 if memory else 2, **options)
  obs = observations(1.0)
  for index in range(150):
    for k in range(STEPS):
      ends = {"timed_out": [index % N]} if k == 2 and bootstrap == "terminal" else {}
      ends |= {"failed": [index % N]} if k == 2 and bootstrap == "none" else {}
      step(alg, obs, [1.0] * N, terminal=obs if "timed_out" in ends else None, **ends)
    with torch.inference_mode():
      alg.compute_returns(obs)
    alg.update()
  with torch.inference_mode():
    value = alg.critic(obs).mean().item()
  wanted = 1 / (1 - GAMMA)
  assert (abs(value - wanted) < 0.01 * wanted) == reaches, value


def test_what_the_critic_foresaw_is_told():
  # Guards: a share of the wrong variance, or of what the critic says after it has learned.
  alg = make(num_learning_epochs=1)
  rollout(alg)
  returns = torch.randn(STEPS, N, 1, generator=torch.Generator().manual_seed(2)) * 3 + 5
  alg.storage.returns.copy_(returns)
  alg.storage.values.copy_(returns - 0.2 * (returns - returns.mean()))  # most of each deviation
  assert alg.update()["explained_variance"] == pytest.approx(0.96, abs=1e-5)
  rollout(alg)
  alg.storage.returns.fill_(2.0)
  alg.storage.values.fill_(1.0)  # all alike: nothing is left to foresee
  assert alg.update()["explained_variance"] == 1.0


def test_the_divergence_of_an_update_is_told(monkeypatch):
  # Guards: no way to see that updates are too large, or none at all; those of all updates so far.
  alg, told = make(schedule="adaptive", learning_rate=1e-3), []
  divergence = alg.actor.distribution.kl_divergence
  monkeypatch.setattr(
    alg.actor.distribution,
    "kl_divergence",
    lambda *args: told.append(float(divergence(*args).mean())) or divergence(*args),
  )
  for _ in range(2):
    told.clear()
    rollout(alg)
    assert alg.update()["kl"] == pytest.approx(sum(told) / len(told))
    assert len(told) == 4 and max(told) > 0
  # By a plan, rsl_rl works out none.
  fixed = make(schedule="fixed")
  rollout(fixed)
  assert "kl" not in fixed.update()
