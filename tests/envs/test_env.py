"""The step loop."""

import math
from dataclasses import replace

import pytest
import torch

from mjrl.envs.task import Observation, Reward


def rollout(env, actions):
  """Everything that a learner sees, and what the log says."""
  seen = []
  for action in actions:
    step = env.step(action)
    seen += [*step.observations.values(), step.reward, step.terminated, step.timed_out]
  seen.append(torch.tensor(list(env.end_iteration(0).values())))
  return seen


def equal(a, b):
  return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_same_seed_gives_the_same_rollout_on_any_number_of_threads(tripod, make_env, actions):
  # Guards: draws from a stream that no seed reaches, and results that depend on threads
  # (mjlab#1023, envpool#144).
  task = replace(tripod, episode_s=0.3)  # so that resets are in it
  runs = []
  for seed, threads in ((3, 1), (3, 3), (4, 1)):
    env = make_env(task, seed=seed, threads=threads)
    runs.append(rollout(env, actions(env, 40)))
  assert equal(runs[0], runs[1])
  assert not equal(runs[0], runs[2])


def test_what_startup_draws_follows_the_seed(tripod, make_env):
  # Guards: start-up randomisation that comes before the seed (IsaacLab#904).
  first, again, other = (make_env(tripod, seed=seed) for seed in (1, 1, 2))
  for field in ("geom_friction", "body_ipos"):
    values = [env.backend.get_model(field) for env in (first, again, other)]
    assert torch.equal(values[0], values[1]) and not torch.equal(values[0], values[2]), field
  assert equal([*first.observations().values()], [*again.observations().values()])
  assert not torch.equal(first.observations()["policy"], other.observations()["policy"])


def test_clocks_start_anywhere_in_the_cycle(tripod, make_env):
  # Guards: every episode starting at phase 0, so that the policy learns a time, not a phase.
  env = make_env(tripod, num_envs=256)
  for _ in range(2):
    counts = env.clock_steps.bincount(minlength=16)
    assert len(counts) == 16 and counts.min() > 4 and counts.max() < 32
    env.reset()


def test_a_clock_advances_once_per_control_step(tripod, make_env, actions):
  # Guards: a clock that runs by physics steps, or stops at the end of a cycle.
  env = make_env(tripod)
  before = env.clock_steps.clone()
  for action in actions(env, 19):
    env.step(action * 0)
  assert torch.equal(env.clock_steps, (before + 19) % 16)


def flip(env, mask):
  """Turn the masked robots on their backs, high up."""
  qpos = env.backend.read("qpos").clone()
  qpos[:, 2], qpos[:, 3:7] = 1.0, torch.tensor([0.0, 1.0, 0.0, 0.0])
  env.backend.set_state(mask, qpos=qpos)


def test_an_end_is_a_time_out_or_a_failure(calm, make_env, actions):
  # Guards: a time-out that counts as a failure, and the other way round (rsl_rl#20): the first
  # teaches that long episodes end badly, the second that falling costs nothing.
  env = make_env(replace(calm, episode_s=0.2))
  falls = torch.tensor([False, True, False, False])
  steps = []
  for k, action in enumerate(actions(env, 10, scale=0.0)):
    if k == 9:  # in the very step in which the others time out
      flip(env, falls)
    steps.append(env.step(action))
  assert not any(bool((s.terminated | s.timed_out).any()) for s in steps[:-1])
  assert torch.equal(steps[-1].terminated, falls)
  assert torch.equal(steps[-1].timed_out, ~falls)
  assert env.episode_steps.tolist() == [0, 0, 0, 0]
  log = env.end_iteration(0)
  ends = {k: v for k, v in log.items() if k.startswith("Episode_Termination/")}
  assert ends == {
    "Episode_Termination/fell_over": 0.25,
    "Episode_Termination/time_out": 0.75,
    "Episode_Termination/diverged": 0.0,
  }


def test_terminal_is_what_a_longer_episode_would_have_seen(calm, make_env, actions):
  # Guards: a time-out valued by the first observation of the next episode, or by one with a
  # command that nobody was under.
  short, long = (make_env(replace(calm, episode_s=s)) for s in (0.2, 20.0))
  for action in actions(short, 10):
    mine, other = short.step(action), long.step(action)
  assert mine.timed_out.all() and not other.timed_out.any()
  for name, terminal in mine.terminal.items():
    assert torch.equal(terminal, other.observations[name]), name
    assert not torch.allclose(terminal, mine.observations[name]), name
  assert other.terminal is None
  assert torch.equal(mine.reward, other.reward)


def test_terminal_keeps_the_history(calm, make_env, actions):
  # Guards: a terminal observation whose past is already the next episode's.
  short, long = (make_env(replace(calm, episode_s=s), history=5) for s in (0.2, 20.0))
  for action in actions(short, 10):
    mine, other = short.step(action), long.step(action)
  start, (width, frames) = 6, short.observer.layout("policy")["joint_pos"]
  past = slice(start, start + width * (frames - 1))  # all but the newest frame
  assert torch.equal(mine.terminal["policy"][:, past], other.observations["policy"][:, past])


def test_the_state_of_a_step_is_that_of_its_end(calm, make_env, actions):
  # Guards: a recording of a fall that shows the start of the next episode.
  short, long = (make_env(replace(calm, episode_s=s)) for s in (0.2, 20.0))
  for action in actions(short, 10):
    mine, other = short.step(action), long.step(action)
  assert mine.timed_out.all()
  for name in ("base_pos_w", "joint_pos_rad", "joint_torque_n_m", "lin_vel_b", "foot_contact"):
    assert torch.equal(getattr(mine.state, name), getattr(other.state, name)), name


def test_a_diverged_env_is_reset_and_counted_and_the_others_go_on(calm, make_env, actions):
  # Guards: a NaN that is "sanitised" and comes back (mjlab#912), spreads, or ends the run.
  plain, env = make_env(calm), make_env(calm)
  others = [0, 1, 2]
  for k, action in enumerate(actions(env, 20)):
    if k == 5:
      qvel = env.backend.read("qvel").clone()
      qvel[3] = math.nan
      env.backend.set_state(torch.tensor([False, False, False, True]), qvel=qvel)
    expected, step = plain.step(action), env.step(action)
    assert step.terminated.tolist() == [False, False, False, k == 5], k
    assert step.reward.isfinite().all()
    for name, observation in step.observations.items():
      assert torch.equal(observation[others], expected.observations[name][others]), (k, name)
      assert observation.isfinite().all(), (k, name)
    assert torch.equal(step.reward[others], expected.reward[others])
  assert env.episode_steps.tolist() == [20, 20, 20, 14]
  log = env.end_iteration(0)
  assert log["Metrics/diverged"] == 1 and log["Episode_Termination/diverged"] == 1
  assert all(math.isfinite(value) for value in log.values()), log
  assert env.end_iteration(1)["Metrics/diverged"] == 0


def test_an_action_that_is_no_number_costs_one_episode(calm, make_env, actions):
  # Guards: one bad number of the policy in the sums of the log for the rest of the run, and in the
  # value of other envs' time-outs.
  env = make_env(replace(calm, episode_s=0.2))
  for k, action in enumerate(actions(env, 30)):
    if k in (4, 9):
      action[1, 3] = math.nan
    step = env.step(action)
    assert step.terminated[1] == (k in (4, 9)), k
    for group in (step.observations, step.terminal or {}):
      for name, observation in group.items():
        assert observation[[0, 2, 3]].isfinite().all(), (k, name)
    assert all(observation.isfinite().all() for observation in step.observations.values())
    assert step.reward.isfinite().all()
  log = env.end_iteration(0)
  assert log["Metrics/diverged"] == 2
  assert all(math.isfinite(value) for value in log.values()), log
  for action in actions(env, 20):
    env.step(action)
  log = env.end_iteration(1)
  assert all(math.isfinite(value) for value in log.values()), log


class Bad:
  """A row that gives one env NaN at its third call."""

  __name__ = "bad"

  def __init__(self, column=False):
    self.calls, self.column = 0, column

  def __call__(self, s):
    self.calls += 1
    value = torch.zeros(len(s.command))
    if self.calls == 3:
      value[2] = math.nan
    return value[:, None] if self.column else value


def test_a_reward_that_is_no_number_costs_one_episode(calm, make_env, actions):
  # Guards: one NaN in a row that makes its curve, and the learner, NaN for good.
  rewards = {**calm.rewards, "bad": Reward(weight=1.0, fn=Bad(), params={})}
  env = make_env(replace(calm, rewards=rewards, episode_s=0.2))
  rewards["bad"].fn.calls = 0
  ends = []
  for action in actions(env, 25):
    step = env.step(action)
    assert step.reward.isfinite().all()
    ends.append(step.terminated.tolist())
  assert ends[2] == [False, False, True, False]
  (note,) = env.take_notes()
  assert note.startswith("diverged, and started anew: env 2: ")
  for index in range(2):
    log = env.end_iteration(index)
    assert all(math.isfinite(value) for value in log.values()), log
    for action in actions(env, 12):
      env.step(action)


def test_an_observation_that_is_no_number_never_reaches_the_learner(calm, make_env, actions):
  # Guards: a NaN in a row of the critic alone, which its normaliser would never forget (mjlab#412).
  row = Observation(fn=Bad(column=True))
  groups = {**calm.observations, "critic": {**calm.observations["critic"], "bad": row}}
  env = make_env(replace(calm, observations=groups))
  row.fn.calls = 0
  ends = torch.zeros(4, dtype=torch.bool)
  for action in actions(env, 6):
    step = env.step(action)
    ends |= step.terminated
    assert step.observations["critic"].isfinite().all()
  assert ends.tolist() == [False, False, True, False]


def test_an_action_reaches_the_driven_servos_alone(tripod, make_env, actions):
  # Guards: joints taken in the wrong order, grippers that move, encoder bias with the wrong sign.
  env = make_env(tripod)
  env.backend.read("ctrl")
  action = actions(env, 1)[0]
  env.step(action)
  robot = tripod.robot
  ctrl, bias = env.backend.read("ctrl"), env.world.encoder_bias_rad
  assert bias.abs().max() > 0.01
  for j, joint in enumerate(robot.joints):
    expected = torch.full((4,), robot.home_rad[joint]) - bias[:, j]
    if joint in robot.gait_joints:
      expected += 0.25 * action[:, robot.gait_joints.index(joint)]
    torch.testing.assert_close(ctrl[:, j], expected, msg=joint)


def test_encoders_read_the_target_when_the_joint_is_there(tripod, make_env):
  # Guards: a bias that is added twice instead of cancelling: the robot would miss its own target.
  env = make_env(tripod)
  s = env.state
  qpos = env.backend.read("qpos").clone()
  qpos[:, 7:] = s.home_rad - s.encoder_bias_rad  # where a servo without load would be at action 0
  env.backend.reset(torch.ones(4, dtype=torch.bool), qpos, env.backend.read("qvel") * 0)
  torch.testing.assert_close(env._read().encoder_offset_rad, torch.zeros(4, 20), atol=1e-6, rtol=0)


def test_a_reset_of_everything_starts_everything_anew(calm, make_env, actions):
  # Guards: a half-run episode counted into the next one: a curve above its weight.
  env = make_env(replace(calm, episode_s=0.2))
  for action in actions(env, 7, scale=0.0):
    env.step(action)
  env.reset()
  assert env.episode_steps.tolist() == [0, 0, 0, 0]
  rewards = torch.stack([env.step(action).reward for action in actions(env, 10, scale=0.0)]).sum(0)
  finished = env.take_finished()
  assert [length for _, length in finished] == [10, 10, 10, 10]
  torch.testing.assert_close(torch.tensor([value for value, _ in finished]), rewards)
  assert env.end_iteration(0)["Episode_Reward/upright"] <= 1.0 + 1e-5


def test_finished_episodes_are_told_once(calm, make_env, actions):
  # Guards: a mean reward made of something else than the rewards.
  env = make_env(replace(calm, episode_s=0.1))
  rewards = torch.stack([env.step(action).reward for action in actions(env, 12)])
  sums = torch.cat([rewards[:5].sum(0), rewards[5:10].sum(0)])
  finished = env.take_finished()
  torch.testing.assert_close(torch.tensor([value for value, _ in finished]), sums)
  assert {length for _, length in finished} == {5}
  assert env.take_finished() == []


def test_first_episodes_can_end_at_different_times(calm, make_env):
  # Guards: all envs timing out in the same step for ever; short first episodes that drag the curves
  # down, or that stay short.
  env = make_env(replace(calm, episode_s=1.0), num_envs=64, spread_starts=True)
  ends = torch.zeros(64, 110, dtype=torch.bool)
  for k in range(110):
    step = env.step(torch.zeros(64, 20))
    assert not step.terminated.any()
    ends[:, k] = step.timed_out
  times = [row.nonzero().flatten() + 1 for row in ends]
  first = torch.stack([t[0] for t in times])
  assert first.min() >= 5 and first.max() <= 50 and len(first.unique()) > 25
  assert all((t.diff() == 50).all() for t in times)
  finished = env.take_finished()
  assert len(finished) == ends.sum() and all(length == pytest.approx(50) for _, length in finished)
  assert env.end_iteration(0)["Episode_Reward/upright"] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("history", [None, 1, 3])
def test_a_recipe_chooses_the_history(tripod, make_env, history):
  # Guards: a number of frames in the recipe that nothing follows.
  observer = make_env(tripod, history=history).observer
  frames = 5 if history is None else history
  assert observer.width("policy") == 3 + 3 + 3 + 2 + 4 * 20 * frames


def test_a_saved_curriculum_is_taken_up(tripod, make_env):
  # Guards: a resumed run that starts its ladder and its annealing anew (mjlab PR 484).
  anneal = tripod.recipes["native"].curriculum
  env, other = (make_env(tripod, anneal=anneal) for _ in range(2))
  env.ladder.go_to(2)
  for index in range(3):
    env.annealing["gait_width"].iteration(index, {"wrong_feet": 1.0})
  other.load_curriculum(env.save_curriculum())
  assert other.save_curriculum() == env.save_curriculum()
  assert other.rewards.numbers == env.rewards.numbers
  assert other.ladder.log() == env.ladder.log() and other.ladder.level == 2
