"""What every task keeps to.  A new task is under test as soon as it is in the list."""

import math
from dataclasses import replace

import pytest
import torch

from mjrl import robots, tasks
from mjrl.envs.env import Env
from mjrl.envs.mirror import augmentation
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Reward, read_number
from mjrl.sim.native import NativeBackend

N, STEPS = 8, 30
ROW_BASE = {
  "jumper.flat": 409,
  "jumper.tripod": 411,
  "jumper.tetrapod": 411,
  "jumper.ripple": 411,
  "jumper.posture": 415,
}

every_task = pytest.mark.parametrize("name", tasks.TASKS)


def make(task, seed=0, num_envs=N):
  return Env(task, NativeBackend(compile_scene(task), num_envs, 2), seed)


def actions(env, steps=STEPS):
  rng = torch.Generator().manual_seed(0)
  return torch.randn(steps, env.num_envs, len(env.robot.gait_joints), generator=rng)


def rollout(env):
  return [env.step(action) for action in actions(env)]


@every_task
def test_the_list_agrees_with_the_page(name):
  # Guards: --list promising what the page does not hold; a name under which nothing is found.
  entry, task = tasks.entry(name), tasks.build(name)
  assert task.name == name and task.robot.name == entry.robot
  assert task.robot is robots.load(entry.robot)
  assert entry.num_envs == {engine: recipe.num_envs for engine, recipe in task.recipes.items()}
  assert entry.description and len(entry.description) < 60 and not entry.description.endswith(".")


def test_an_unknown_task_names_the_nearest():
  # Guards: "KeyError: 'jumper.tripot'".
  with pytest.raises(ValueError, match=r"'jumper.tripot'; did you mean 'jumper.tripod'\? valid "):
    tasks.entry("jumper.tripot")


@every_task
def test_shapes_and_finite_values(name):
  # Guards: a row that gives a number per foot, a NaN after the first fall, float64.
  task = tasks.build(name)
  env = make(replace(task, episode_s=0.4))  # two resets are in it
  widths = {group: env.observer.width(group) for group in task.observations}
  for step in rollout(env):
    assert {group: o.shape for group, o in step.observations.items()} == {
      group: (N, width) for group, width in widths.items()
    }
    for tensor in (step.reward, step.terminated, step.timed_out):
      assert tensor.shape == (N,)
    assert step.terminated.dtype == step.timed_out.dtype == torch.bool
    for tensor in (step.reward, *step.observations.values(), *(step.terminal or {}).values()):
      assert tensor.dtype == torch.float32 and tensor.isfinite().all()
  log = env.end_iteration(0)
  assert all(math.isfinite(value) for value in log.values()), log
  assert log["Metrics/diverged"] == 0


@every_task
def test_the_seed_decides(name):
  # Guards: a draw of the page that comes from another stream.
  runs = [rollout(make(tasks.build(name), seed=seed)) for seed in (5, 5, 6)]
  for step, again in zip(*runs[:2], strict=True):
    assert torch.equal(step.reward, again.reward)
    assert all(torch.equal(o, again.observations[k]) for k, o in step.observations.items())
  assert not torch.equal(runs[0][-1].reward, runs[2][-1].reward)


class Counted:
  """A row's function, and how often it was called."""

  def __init__(self, fn):
    self.fn, self.calls, self.values = fn, 0, []
    self.__name__ = fn.__name__

  def __call__(self, s, **params):
    self.calls += 1
    self.values.append(self.fn(s, **params))
    return self.values[-1]


@every_task
def test_every_reward_row_is_evaluated_and_logged(name):
  # Guards: a row of the table that nothing reads.
  task = tasks.build(name)
  counted = {key: Counted(row.fn) for key, row in task.rewards.items()}
  rows = {
    key: Reward(weight=row.weight, fn=counted[key], params=row.params)
    for key, row in task.rewards.items()
  }
  env = make(replace(task, rewards=rows, episode_s=0.4))
  for row in counted.values():
    row.calls = 0  # once, when the table was checked
  rollout(env)
  log = env.end_iteration(0)
  eased = {row.path for recipe in task.recipes.values() for row in recipe.curriculum.values()}
  for key, row in task.rewards.items():
    if row.weight == 0:
      assert f"rewards.{key}.weight" in eased, f"{key}: a row of weight 0 is only in the way"
      continue
    assert counted[key].calls == STEPS, key
    assert all(value.shape == (N,) for value in counted[key].values), key
    assert math.isfinite(log[f"Episode_Reward/{key}"])
  for key in task.metrics:
    assert math.isfinite(log[f"Metrics/{key}"]), key
  for key in task.terminations:
    assert f"Episode_Termination/{key}" in log


@every_task
def test_no_observation_is_constant(name):
  # Guards: a column that carries nothing: a wrong address, a sensor that is never computed.
  task = tasks.build(name)
  env = make(task, num_envs=16)
  seen = {group: [o] for group, o in env.observations().items()}
  for action in actions(env, 60):
    for group, o in env.step(action).observations.items():
      seen[group].append(o)
  for group, frames in seen.items():
    spread = torch.cat(frames).std(0)
    column = 0
    for key, (width, history) in env.observer.layout(group).items():
      values = spread[column : column + width * history]
      assert (values > 1e-4).all(), f"{group}.{key}: columns {(values <= 1e-4).nonzero().flatten()}"
      column += width * history


@every_task
def test_starts_differ(name):
  # Guards: envs that are copies of one another.
  env = make(tasks.build(name), num_envs=16)
  for _ in range(2):
    for group, observation in env.observations().items():
      assert len(observation.unique(dim=0)) == 16, group
    qpos = env.backend.read("qpos")
    for column in (0, 1, 2, 3, 6):  # place, height and heading
      assert len(qpos[:, column].unique()) == 16, column
    env.reset()


@every_task
def test_observations_have_the_width_of_the_reference(name):
  # Guards: a row lost or a frame too many, found out by the controller on the robot.
  assert make(tasks.build(name)).observer.width("policy") == ROW_BASE[name]


@every_task
def test_only_time_outs_are_truncations(name):
  # Guards: a time-out row among the failures, which no value is bootstrapped for (rsl_rl#20).
  task = tasks.build(name)
  env = make(replace(task, episode_s=0.2))
  for _ in range(9):
    assert not env.step(torch.zeros(N, 20)).timed_out.any()
  step = env.step(torch.zeros(N, 20))
  assert step.timed_out.all() and not step.terminated.any()


@every_task
@pytest.mark.parametrize("engine", ["native", "warp"])
def test_a_run_of_the_recipe_ends_on_the_task(name, engine):
  # Guards: a run whose kernels or weights are still eased when it is measured.
  task = tasks.build(name)
  recipe = task.recipes[engine]
  env = Env(task, NativeBackend(compile_scene(task), 2, 1), 0, anneal=recipe.curriculum)
  env.ladder.go_to(len(task.curriculum.rungs) - 1)
  for row in recipe.curriculum.values():
    assert row.until_iteration <= recipe.max_iterations, row.path
  for key, annealing in env.annealing.items():
    spec = annealing.spec
    _, reward_row, number = spec.path.split(".")
    own = env.rewards._own[reward_row][number]  # of the last rung, where a ladder sets it
    if not number.startswith("std_"):
      assert own == read_number(task, spec.path), key
    for done, value in ((0, spec.easy), (recipe.max_iterations, own)):
      annealing.load({"average": spec.start, "next_iteration": done})  # nothing learned
      assert annealing.log()["value"] == pytest.approx(value, rel=1e-12), key


@every_task
def test_a_recipe_can_be_cut_into_its_mini_batches(name):
  # Guards: samples that are collected and never learned from.
  for recipe in tasks.build(name).recipes.values():
    assert recipe.num_envs * recipe.rollout_steps % recipe.mini_batches == 0
    assert recipe.save_every <= recipe.max_iterations


@every_task
def test_every_row_has_a_mirror_image(name):
  # Guards: a recipe that mirrors, and stops at the first update because of a row without an image.
  augmentation(make(tasks.build(name), num_envs=1))


@every_task
def test_a_good_standing_robot_is_told_so(name):
  # Guards: a table whose signs are turned: the robot that does what is asked must be paid.
  env = make(tasks.build(name))
  env.commands.fix(torch.zeros(N, 3))
  for _ in range(40):  # it drops by a few centimetres first
    step = env.step(torch.zeros(N, 20))
  assert not step.terminated.any()
  dt_s = env.dt_s
  assert (step.reward / dt_s > 5).all(), step.reward / dt_s
