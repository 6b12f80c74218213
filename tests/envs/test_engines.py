"""The step loop on the warp engine, and what it makes of it, against native:cpu."""

import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from mjrl import tasks
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import term
from mjrl.envs.terms import terminations
from mjrl.sim.warp import WarpBackend

N = 6


@pytest.fixture
def make_warp_env():
  """An environment on warp:cpu."""

  def make(task, num_envs=N, seed=0, **options):
    backend = WarpBackend(compile_scene(task), num_envs, "cpu", nconmax=24, njmax=80)
    return Env(task, backend, seed, **options)

  return make


@contextmanager
def no_looks(monkeypatch):
  """Make whatever would have to wait for a GPU raise."""

  def refuse(name):
    def wait(*args, **kwargs):
      raise AssertionError(f"torch's {name} reads from the device")

    return wait

  with monkeypatch.context() as patch:
    for name in (
      *("item", "tolist", "numpy", "cpu", "nonzero", "unique", "__bool__", "__float__"),
      *("__int__", "__index__", "masked_select", "equal", "allclose"),
    ):
      patch.setattr(torch.Tensor, name, refuse(name))
    for name in ("tensor", "as_tensor", "from_numpy", "nonzero", "masked_select", "equal"):
      patch.setattr(torch, name, refuse(name))
    index = torch.Tensor.__getitem__

    def getitem(tensor, key):
      keys = key if isinstance(key, tuple) else (key,)
      if any(isinstance(k, torch.Tensor) and k.dtype == torch.bool for k in keys):
        refuse("boolean index")()
      return index(tensor, key)

    patch.setattr(torch.Tensor, "__getitem__", getitem)
    yield


def test_a_control_step_looks_at_nothing(tripod, make_warp_env, actions, monkeypatch):
  # Guards: a GPU that waits for Python in every step: a look costs more than all rewards together.
  fell = term(terminations.fell_over, max_tilt_rad=0.2)
  command = replace(tripod.command, hold_s=(0.1, 0.2), standing=0.0)
  task = replace(tripod, episode_s=0.4, command=command, terminations={"fell_over": fell})
  env = make_warp_env(task, spread_starts=True)
  steps = actions(env, 60, scale=2.0)
  for action in steps[:20]:  # until everything is recorded, and constants are on the device
    env.step(action)
  env.end_iteration(0)
  env.take_finished()
  with no_looks(monkeypatch):
    with pytest.raises(AssertionError, match="boolean index"):
      steps[0][steps[0] > 0]
    for action in steps[20:]:
      env.step(action)
  # Much has happened meanwhile, and is known once it is asked for.
  log = env.end_iteration(1)
  assert log["Episode_Termination/fell_over"] > 0 and log["Episode_Termination/time_out"] > 0
  assert len(env.take_finished()) > 5 and env.ladder.holds > 0


@pytest.mark.parametrize("name", tasks.TASKS)
def test_every_row_is_native_s(name, make_env, make_warp_env, actions):
  # Guards: a sensor that a reward reads from another column, stage or frame on the other engine.
  task = tasks.build(name)
  task = replace(
    task,
    events={k: event for k, event in task.events.items() if event.when != "interval"},
    command=replace(task.command, standing=0.3, hold_s=(1000.0, 1000.0), heading=0.0),
  )
  envs = make_env(task, N), make_warp_env(task)
  assert torch.equal(envs[0].backend.read("qpos"), envs[1].backend.read("qpos"))
  for k, action in enumerate(actions(envs[0], 25, scale=0.7)):
    for env in envs:
      env.step(action)
    native, warp = (env.rewards._values for env in envs)
    scale = 1 + native.abs().amax(1)
    for row, gap, size in zip(task.rewards, (native - warp).abs().amax(1), scale, strict=False):
      assert gap < 2e-3 * size, (row, k, gap)
    for group in ("policy", "critic"):
      columns = envs[0].observer._columns.values()
      clean = slice(0, max(c.stop for c in columns))
      frames = [env.observer._newest[:, clean] for env in envs]
      torch.testing.assert_close(*frames, atol=2e-3, rtol=2e-3, msg=f"{group} {k}")
  assert len(envs[0].rewards.rows) > 10 and native.std(1).gt(0).sum() > 8


def test_logs_of_both_engines_tell_the_same(calm, make_env, make_warp_env):
  # Guards: counts, means and ladders that are only right where numbers are read back in each step.
  task = replace(
    calm,
    episode_s=1.4,
    command=replace(calm.command, hold_s=(1.1, 1.2)),
    curriculum=replace(calm.curriculum, dwell_steps=10**9),
    events={k: e for k, e in calm.events.items() if e.when != "startup"},
  )
  logs, finished, ladders = [], [], []
  for env in (make_env(task, N), make_warp_env(task)):
    env.commands.fix(0.2 * (torch.arange(N) < 4)[:, None] * torch.ones(3))  # two stand
    for _ in range(72):
      env.step(torch.zeros(N, 20))
    logs.append(env.end_iteration(0))
    finished.append(env.take_finished())
    ladders.append(env.ladder.save())
  assert logs[0].keys() == logs[1].keys()
  for key, value in logs[0].items():
    assert logs[1][key] == pytest.approx(value, rel=0.02, abs=2e-3), key
  assert len(finished[0]) == len(finished[1]) == N
  for one, other in zip(*finished, strict=True):
    assert one == pytest.approx(other, rel=1e-3)
  assert ladders[0]["holds"] == ladders[1]["holds"] == 4  # who stands is not judged


def test_a_diverged_env_is_started_anew_and_named(calm, make_warp_env, actions):
  # Guards: bad numbers that no look discovers, on an engine that is not to be looked at.
  env, plain = make_warp_env(calm), make_warp_env(calm)
  for k, action in enumerate(actions(env, 12)):
    if k == 5:
      bad = torch.full_like(env.backend.read("qvel"), math.nan)
      env.backend.set_state(torch.arange(N) == 3, qvel=bad)
    step, expected = env.step(action), plain.step(action)
    assert step.terminated.tolist() == [e == 3 and k == 5 for e in range(N)]
    assert step.reward.isfinite().all()
    for name, observation in step.observations.items():
      assert observation.isfinite().all()
      others = torch.arange(N) != 3
      assert torch.equal(observation[others], expected.observations[name][others]), (k, name)
  (note,) = env.take_notes()
  assert note.startswith("diverged, and started anew: env 3: reward ")
  log = env.end_iteration(0)
  assert log["Metrics/diverged"] == 1 and log["Episode_Termination/diverged"] == 1
  assert all(math.isfinite(value) for value in log.values()), log
  assert env.take_notes() == []


def test_a_resumed_world_goes_on_to_the_bit(tripod, make_warp_env, actions):
  # Guards: a resumed run on a GPU in which robots have the friction of others.
  env, other = make_warp_env(tripod, seed=0), make_warp_env(tripod, seed=1)
  steps = actions(env, 16)
  for action in steps[:8]:
    env.step(action)
  saved = env.save()
  other.load(saved)
  for action in steps[8:]:
    one, two = env.step(action), other.step(action)
    assert torch.equal(one.reward, two.reward)
    for name, observation in one.observations.items():
      assert torch.equal(observation, two.observations[name]), name
