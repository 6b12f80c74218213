"""Learning rates by a plan."""

from math import cos, pi

import pytest
import torch

from mjrl.learn.schedules import factor


@pytest.mark.parametrize(
  ("schedule", "factors"),
  [
    ("constant", (1.0, 1.0, 1.0)),
    ("linear", (1.0, 0.75, 0.25)),
    ("cosine", (1.0, (1 + cos(pi / 4)) / 2, (1 + cos(3 * pi / 4)) / 2)),
    ("step", (1.0, 0.5, 0.125)),
    ("exponential", (1.0, 0.01**0.25, 0.01**0.75)),
    ("adaptive", (None, None, None)),
  ],
)
def test_factors(schedule, factors):
  # Guards: a plan that ends elsewhere than it says.
  assert tuple(factor(schedule, k, 8) for k in (0, 2, 6)) == pytest.approx(factors)


def test_a_run_follows_its_plan_across_a_resume(small, make_runner):
  # Guards: a plan that rsl_rl's adaptive rule overwrites, or that starts anew when a run goes on.
  runner = make_runner(small, learning_rate=1e-3, schedule="linear")
  seen = []
  update = runner.alg.update

  def watched():
    losses = update()
    seen.append([group["lr"] for group in runner.alg.optimizer.param_groups])
    return losses

  runner.alg.update = watched
  runner.learn(2)
  runner.learn(2)
  rates = [1e-3, 0.5e-3, 1e-3 * (1 - 2 / 4), 1e-3 * (1 - 3 / 4)]
  assert seen == [pytest.approx([rate]) for rate in rates]


def test_a_fixed_std_stays(small, make_runner):
  # Guards: --no-learn_std that learns it all the same.
  runner = make_runner(small, learn_std=False, init_std=0.3)
  runner.learn(1)
  std = runner.alg.get_policy().get_parameter("distribution.std_param")
  assert torch.allclose(std, torch.full_like(std, 0.3))
