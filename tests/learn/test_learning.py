"""The one question that no unit test answers: does it learn?"""

from dataclasses import replace

import pytest

from mjrl.envs.task import noiseless, reward
from mjrl.envs.terms import rewards

ITERATIONS = 25


@pytest.fixture
def stepping(small):
  """The tripod's clock alone, without noise and pushes: learned in 20,000 steps."""
  recipe = replace(
    small.recipes["native"],
    curriculum={},
    rollout_steps=24,
    actor_hidden=(128, 128),
    critic_hidden=(128, 128),
    epochs=4,
    mini_batches=4,
    gamma=0.9,
    desired_kl=0.1,
    entropy_coef=0.003,
  )
  kept = ("track_linear_velocity", "track_angular_velocity", "upright", "action_rate")
  return replace(
    small,
    rewards={name: small.rewards[name] for name in kept}
    | {"gait": reward(4.0, rewards.gait, width_feet=2.0, max_air_s=0.5, max_contact_s=1.0)},
    events={"start": small.events["start"]},
    observations={name: noiseless(rows) for name, rows in small.observations.items()},
    command=replace(small.command, standing=0.0, heading=0.0),
    recipes={"native": recipe},
  )


@pytest.mark.parametrize("learns", [True, False])
def test_feet_learn_to_follow_the_clock(stepping, make_runner, learns):
  # Guards: a learner that runs, logs and saves, and learns nothing: advantages of a wrong sign,
  # actions of another env, a normaliser that forgets.  Unlearned, three of six feet are wrong.
  runner = make_runner(stepping, num_envs=32)
  if not learns:
    runner.alg.optimizer.step = lambda: None
  wrong = []
  for _ in range(ITERATIONS):
    runner.learn(1)
    wrong.append(runner.last_log["Metrics/wrong_feet"])
  assert wrong[0] == pytest.approx(3, abs=0.2)
  assert (sum(wrong[-5:]) / 5 < 1.5) == learns, wrong
  assert learns or min(wrong) > 2.7, wrong
