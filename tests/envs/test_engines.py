"""The step loop on the warp engine, and what it makes of it, against native:cpu."""

import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from mjrl import tasks
from mjrl.envs.env import Env
from mjrl.envs.postures import posture_of
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import noiseless, term
from mjrl.envs.terms import terminations
from mjrl.sim.warp import WarpBackend

N = 6


@pytest.fixture
def make_warp_env():
  """An environment on warp:cpu."""

  def make(task, num_envs=N, seed=0, nconmax=24, **options):
    backend = WarpBackend(compile_scene(task), num_envs, "cpu", nconmax=nconmax, njmax=80)
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


@pytest.mark.parametrize("name", ["jumper.tripod", "jumper.posture"])
def test_a_control_step_looks_at_nothing(name, make_warp_env, actions, monkeypatch):
  # Guards: a GPU that waits for Python in every step: a look costs more than all rewards together.
  fell = term(terminations.fell_over, max_tilt_rad=0.2)
  task = tasks.build(name)
  command = replace(task.command, hold_s=(0.1, 0.2), standing=0.0)
  task = replace(task, episode_s=0.4, command=command, terminations={"fell_over": fell})
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
  assert all(ladder.holds for ladder in env.ladders.values())


STANCE, FLIGHT, WALK = [0, 1], [2, 3], [4, 5]
# Largest difference from native of a row in any env, after one control step from the same state, as
# a share of 1 + the value.  Forces of feet come to 3e-4, all else to 5e-5.
ROW_TOLERANCE = 1e-3


def evaluated(task, step):
  """Every number that any row of the task makes of a control step, (N, ...) by the row's name."""
  s = step.state
  rows = {f"reward {k}": row.fn(s, **row.params) for k, row in task.rewards.items()}
  for k, row in task.metrics.items():
    rows[f"metric {k}"], rows[f"share of metric {k}"] = row.fn(s, **row.params)
  for group, table in task.observations.items():
    rows |= {f"{group} {k}": row.fn(s, **row.params) for k, row in table.items()}
  rows |= {f"termination {k}": row.fn(s, **row.params) for k, row in task.terminations.items()}
  over = step.terminated[:, None]  # the observation is that of another episode
  rows |= {f"group {k}": group.masked_fill(over, 0) for k, group in step.observations.items()}
  rows |= {"reward": step.reward, "terminated": step.terminated}
  return {name: value.detach().float().reshape(N, -1).clone() for name, value in rows.items()}


def apart(rows, others, order=slice(None)):
  """Rows that differ in some env by more than the tolerance, the others' envs in that order."""
  return {
    name
    for name, value in rows.items()
    if ((others[name][order] - value).abs() > ROW_TOLERANCE * (1 + value.abs())).any()
  }


@pytest.mark.parametrize("name", tasks.TASKS)
def test_every_row_is_native_s(name, make_env, make_warp_env, actions):
  # Guards: a sensor that a row reads from another column, stage or frame on the other engine; a row
  # that is right in stance alone; and the test passing because all envs are alike.
  task = tasks.build(name)
  task = replace(
    task,
    observations={group: noiseless(table) for group, table in task.observations.items()},
    events={k: event for k, event in task.events.items() if event.when != "interval"},
    command=replace(task.command, standing=0.0, hold_s=(1000.0, 1000.0), heading=0.0),
  )
  envs = make_env(task, N), make_warp_env(task)
  fields = [torch.cat((env.backend.read("qpos"), env.commands.value), 1) for env in envs]
  assert torch.equal(*fields)
  stands = torch.tensor([[k in STANCE] for k in range(N)])
  for env in envs:
    env.commands.fix(torch.where(stands, 0.0, env.commands.value))
    if body := posture_of(env.asked):
      body.fix(body.value)
  random = actions(envs[0], 32)
  phase = 2 * math.pi * torch.rand(random.shape[1:], generator=torch.Generator().manual_seed(3))
  told, seen = set(), []
  for k in range(32):
    qpos, qvel = (envs[0].backend.read(field).clone() for field in ("qpos", "qvel"))
    if k % 8 == 0:
      qpos[FLIGHT, 2] += 0.1
    if k == 31:  # on its back; the last step, as each engine draws new starts at its own times
      qpos[3, 2:7] = torch.tensor([0.3, 0.0, 1.0, 0.0, 0.0])
    action = 2.0 * torch.sin(phase + 2 * math.pi * k / 16)
    action[STANCE], action[FLIGHT] = 0.05 * random[k, STANCE], random[k, FLIGHT]
    steps = []
    for env in envs:
      env.backend.set_state(torch.ones(N, dtype=torch.bool), qpos=qpos, qvel=qvel)
      steps.append(env.step(action))
    ours, theirs = (evaluated(task, step) for step in steps)
    assert ours.keys() == theirs.keys() and apart(ours, theirs) == set(), k
    told |= apart(ours, theirs, torch.arange(N).roll(2))
    seen.append(steps[0].state.foot_contact)
  contact = torch.stack(seen).float().mean((0, 2))
  assert contact[STANCE].min() > 0.9 and contact[FLIGHT].max() < 0.5
  assert 0.2 < contact[WALK].min() and contact[WALK].max() < 0.9
  # In another order of envs, every row would have told, but that all robots have a posture.
  alike = {f"share of metric {k}" for k in ("twist_error_rad", "tilt_error_rad", "height_error_m")}
  assert told == ours.keys() - alike


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


@pytest.fixture(scope="session")
def rough(calm):
  """The calm task on two levels of three kinds of tile, and a curriculum that all climb at once."""
  ladder = replace(calm.terrain.curriculum, dwell_episodes=1, base_m_s=9.0, base_rad_s=9.0)
  terrain = replace(calm.terrain, ground="rough", levels=2, kinds=("slopes", "stairs", "mounds"))
  return replace(calm, terrain=replace(terrain, curriculum=ladder))


def test_robots_meet_the_same_ground_on_both_engines(rough, make_env, make_warp_env, actions):
  # Guards: a shape that one engine has not, or collides another way; heights over the one engine's
  # ground with the other's feet.
  task = replace(rough, terrain=replace(rough.terrain, curriculum=None))
  native, warp = make_env(task, N), make_warp_env(task, nconmax=64)
  met = torch.zeros(N, dtype=torch.bool)
  for action in actions(native, 24):
    qpos, qvel = (native.backend.read(field).clone() for field in ("qpos", "qvel"))
    steps = []
    for env in (native, warp):
      env.backend.set_state(torch.ones(N, dtype=torch.bool), qpos=qpos, qvel=qvel)
      steps.append(env.step(action))
    ours, theirs = (evaluated(task, step) for step in steps)
    assert apart(ours, theirs) == set()
    s = steps[0].state
    met |= ((s.foot_pos_w[..., 2] - s.foot_height_m > 0.01) & s.foot_contact).any(1)
  assert met.tolist().count(True) >= 3  # or the plain alone has been compared
  assert warp.backend.take_lost() == {}


def test_a_control_step_on_rough_ground_looks_at_nothing(
  rough, make_warp_env, actions, monkeypatch
):
  # Guards: levels or heights that a GPU has to wait for in every step.
  env = make_warp_env(replace(rough, episode_s=1.1, curriculum=None), nconmax=64)
  env.commands.fix(torch.full((N, 3), 0.1))
  steps = actions(env, 64, scale=0.1)
  for action in steps[:4]:
    env.step(action)
  with no_looks(monkeypatch):
    for action in steps[4:]:
      env.step(action)
  assert env.world.tiles.level.tolist() == [1] * N
  assert env.end_iteration(0)["Curriculum/terrain/promoted"] == N
