"""Every rule on a made-up run that it is about, and on one that it is not."""

from dataclasses import replace

import pytest

from mjrl import tasks
from mjrl.envs.describe import describe
from mjrl.learn.curves import Curves
from mjrl.learn.rules import RULES, About, about

ABOUT = About(
  weights={"track_linear_velocity": 2.0, "upright": 1.0, "pose": 1.0, "action_rate": -0.1},
  episode_s=20.0,
  init_std=0.5,
  min_std=0.05,
  learn_std=True,
  adaptive=True,
  desired_kl=0.03,
  eased_until=0,
  rungs=4,
  mean_command=0.765,
  pairs=(("LF", "RF"),),
)


def good(k):
  """Scalars of iteration k of a run that learns, and has climbed its ladder at 300 and 600."""
  level = min(k // 300, 3)
  learned = min(k / 600, 1.0)
  return {
    "Train/mean_reward": 40.0 + 30.0 * learned,
    "Train/mean_episode_length": 1000.0,
    "Policy/mean_std": 0.5 - 0.4 * learned,
    "Loss/learning_rate": 2e-4 if k % 2 else 3e-4,
    "Loss/kl": 0.04,
    "Loss/explained_variance": 0.8,
    "Loss/value": 0.1,
    "Episode_Reward/track_linear_velocity": 0.6 + 0.9 * learned,
    "Episode_Reward/upright": 0.95,
    "Episode_Reward/pose": 0.9,
    "Episode_Reward/action_rate": -0.3,
    "Curriculum/command/level": float(level),
    "Curriculum/command/linear_range_m_s": 0.5,
    "Curriculum/command/linear_error_m_s": 0.38 - 0.3 * learned,
    "Curriculum/command/linear_bar_m_s": 0.18,
    "Curriculum/command/angular_error_rad_s": 0.3 - 0.2 * learned,
    "Curriculum/command/angular_bar_rad_s": 0.25,
    "Episode_Termination/fell_over": 0.1,
    "Episode_Termination/time_out": 0.9,
    "Feet/LF/landings_1_s": 2.4,
    "Feet/RF/landings_1_s": 2.6,
    "Feet/LF/duty": 0.62,
    "Feet/RF/duty": 0.66,
    "Perf/total_fps": 6000.0,
    "Perf/cpu_time": 0.5,
    "Perf/memory_mib": 400.0,
  }


def run(iterations=1000, first=0, **spoilt):
  """A good run but for some scalars, named with `__` for `/`: numbers, or functions of k."""
  curves = Curves()
  for k in range(first, first + iterations):
    scalars = good(k)
    for key, value in spoilt.items():
      name = key.replace("__", "/")
      scalars[name] = value(k) if callable(value) else value
    curves.add(k, scalars)
  return curves


LADDER = "Curriculum__command__"
LINEAR = f"{LADDER}linear_error_m_s"
TRACK = "Episode_Reward__track_linear_velocity"

# Rule to a run that it is about, and to one that comes near it: curves, and what differs in About.
CASES = {
  "stands-still": (
    # A robot that stands misses 0.765 * 0.5 m/s.
    (run(400, **{LINEAR: 0.38}), {}),
    (run(400, **{LINEAR: 0.34}), {}),
  ),
  "tracking-flat": (
    (run(400, **{TRACK: 0.6, f"{LADDER}level": 0.0}), {}),
    (run(400, **{TRACK: 0.6, f"{LADDER}level": 0.0}), {"eased_until": 900}),
  ),
  "reward-falls": (
    (
      run(700, Train__mean_reward=lambda k: 80.0 if k < 550 else 40.0, **{f"{LADDER}level": 3.0}),
      {},
    ),
    # The same where the easing ends in between.
    (
      run(700, Train__mean_reward=lambda k: 80.0 if k < 550 else 40.0, **{f"{LADDER}level": 3.0}),
      {"eased_until": 550},
    ),
  ),
  "std-stuck": (
    (run(300, Policy__mean_std=0.505), {}),
    (run(300, Policy__mean_std=lambda k: 0.505 - 0.0002 * k), {}),
  ),
  "std-floor": (
    (run(300, Policy__mean_std=0.05), {}),
    (run(300, Policy__mean_std=0.055), {}),
  ),
  "std-grows": (
    (run(300, Policy__mean_std=0.7), {}),
    (run(300, Policy__mean_std=0.55), {}),
  ),
  "learning-rate-floor": (
    (run(300, Loss__learning_rate=1e-5), {}),
    (run(300, Loss__learning_rate=lambda k: 1e-5 if k % 3 else 1.5e-5), {}),
  ),
  "learning-rate-ceiling": (
    (run(300, Loss__learning_rate=1e-2), {}),
    (run(300, Loss__learning_rate=1e-2), {"adaptive": False}),
  ),
  "ladder-stuck": (
    (run(1000, **{f"{LADDER}level": 1.0}), {}),
    (run(1000, **{f"{LADDER}level": 3.0}), {}),
  ),
  "kl-high": ((run(100, Loss__kl=0.1), {}), (run(100, Loss__kl=0.06), {})),
  "critic-blind": (
    (run(300, Loss__explained_variance=0.05), {}),
    (run(150, Loss__explained_variance=0.05), {}),
  ),
  "value-loss-jumps": (
    (run(400, Loss__value=lambda k: 0.1 if k < 380 else 2.0), {}),
    (run(400, Loss__value=lambda k: 0.1 if k < 380 else 0.4), {}),
  ),
  "one-term": (
    (run(300, Episode_Reward__action_rate=-1.5), {}),
    (run(300, Episode_Reward__pose=3.0), {}),
  ),
  "early-ends": (
    (run(300, Episode_Termination__fell_over=0.9, Train__mean_episode_length=80.0), {}),
    # They do, and last longer and longer.
    (
      run(300, Episode_Termination__fell_over=0.9, Train__mean_episode_length=lambda k: 80.0 + k),
      {},
    ),
  ),
  "lopsided": (
    (run(400, Feet__LF__duty=0.3), {}),
    (run(400, Feet__LF__duty=0.5), {}),
  ),
  "slower": (
    (run(500, Perf__total_fps=lambda k: 6000.0 if k < 280 else 2000.0), {}),
    # Others were at work for a while.
    (run(500, Perf__total_fps=lambda k: 6000.0 if k < 280 or k > 380 else 2000.0), {}),
  ),
  "memory-grows": (
    (run(500, Perf__memory_mib=lambda k: 400.0 + k), {}),
    # Once, for an evaluation.
    (run(500, Perf__memory_mib=lambda k: 400.0 if k < 250 else 800.0), {}),
  ),
}


def test_every_rule_has_its_cases():
  # Guards: a rule that nobody has ever seen find anything.
  assert list(CASES) == list(RULES)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_finds_what_it_is_about(name):
  # Guards: a run that goes wrong and says nothing; evidence without a number.
  curves, differs = CASES[name][0]
  evidence = RULES[name](curves, replace(ABOUT, **differs))
  assert any(letter.isdigit() for letter in evidence), name


@pytest.mark.parametrize("name", CASES)
def test_a_rule_leaves_alone_what_comes_near(name):
  # Guards: an alarm on a good run, after which nobody reads the next one.
  curves, differs = CASES[name][1]
  assert RULES[name](curves, replace(ABOUT, **differs)) == ""


@pytest.mark.parametrize("iterations", [0, 1, 10, 100, 200, 300, 450, 1000, 1500])
@pytest.mark.parametrize("first", [0, 1500])
def test_a_run_that_learns_is_left_alone(iterations, first):
  # Guards: the same at every age of a run, also of one that was resumed; a rule that fails on a
  # window that is not full.
  curves = run(iterations, first)
  assert {name: rule(curves, ABOUT) for name, rule in RULES.items()} == dict.fromkeys(RULES, "")


def test_curves_of_another_task_disturb_no_rule():
  # Guards: a training that ends because a rule asked for a scalar that its task has not.
  curves = Curves()
  for k in range(1000):
    curves.add(k, {"Train/mean_reward": 1.0})
  bare = replace(ABOUT, mean_command=None, rungs=0, pairs=(), weights={})
  assert not any(rule(curves, bare) for rule in RULES.values())


def test_the_evidence_tells_one_cause_from_another():
  # Guards: a bar named that was met, a slow machine taken for a slow run, a std that nobody wanted
  # learned taken for one that could not be.
  stuck = RULES["ladder-stuck"](run(1000, **{f"{LADDER}level": 1.0}), ABOUT)
  assert "linear error 0.080, below its bar 0.180" in stuck
  falls = {"Perf__total_fps": lambda k: 6000.0 if k < 280 else 2000.0}
  assert "others use the machine" in RULES["slower"](run(500, **falls), ABOUT)
  grown = RULES["slower"](run(500, Perf__cpu_time=lambda k: 0.5 + (k > 280), **falls), ABOUT)
  assert "its own work has grown" in grown
  frozen = replace(ABOUT, learn_std=False)
  assert "learn_std is false" in RULES["std-stuck"](run(300, Policy__mean_std=0.5), frozen)
  assert "pose gives 12.00 of 14." in RULES["one-term"](run(900, Episode_Reward__pose=12.0), ABOUT)
  limps = RULES["lopsided"](run(400, Feet__RF__landings_1_s=1.0), ABOUT)
  assert "LF lands 2.40 times/s" in limps and "RF lands 1.00 times/s" in limps


def test_what_the_rules_need_is_read_from_a_task():
  # Guards: a standing robot's error, or a foot's partner, of another task than the one that runs.
  task = describe(tasks.build("jumper.tripod"))
  found = about(task, task["recipes"]["native"])
  assert found.mean_command == pytest.approx(0.765, abs=0.002)  # of a square, half its side being 1
  assert found.eased_until == 900 and found.rungs == 4
  assert found.weights["track_linear_velocity"] == 2.0
  assert set(found.pairs) == {("LF", "RF"), ("LM", "RM"), ("LR", "RR")}
