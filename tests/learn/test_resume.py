"""A run that was stopped and resumed is the run that was not."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.recipe import Memory
from mjrl.envs.task import every
from mjrl.envs.terms import events
from mjrl.learn import checkpoints, resume

MEMORIES = [None, *(Memory(kind=kind, hidden=8, layers=2) for kind in ("lstm", "gru"))]


@pytest.fixture(params=MEMORIES, ids=lambda memory: memory.kind if memory else "none")
def lively(small, request):
  """The small recipe with pushes, short episodes, a past, and a ladder that is climbed at once."""
  push = every(
    (0.1, 0.3),
    events.push,
    horizontal_m_s=0.2,
    vertical_m_s=0.1,
    tilt_rad_s=0.3,
    yaw_rad_s=0.4,
  )
  ladder = replace(small.curriculum, dwell_steps=10, min_holds=1, bar_base_m_s=9, bar_base_rad_s=9)
  command = replace(small.command, hold_s=(1.0, 1.2), standing=0.0)
  recipe = replace(small.recipes["native"], history=3, rollout_steps=10, memory=request.param)
  return replace(
    small,
    episode_s=2.2,
    curriculum=ladder,
    command=command,
    events={**small.events, "push": push},
    recipes={"native": recipe},
  )


def tensors(value, path=""):
  """Every tensor and number of a checkpoint, by its path."""
  if isinstance(value, dict):
    return {k: v for key, item in value.items() for k, v in tensors(item, f"{path}/{key}").items()}
  if isinstance(value, list):
    return tensors(dict(enumerate(value)), path)
  return {path: value}


def different(first, second):
  """Paths at which two checkpoints are not equal to the bit."""
  first, second = tensors(first), tensors(second)
  assert first.keys() == second.keys()
  return [
    path
    for path, value in first.items()
    if not (torch.equal(value, second[path]) if torch.is_tensor(value) else value == second[path])
  ]


def go_on(make_runner, task, path, num_envs=8):
  """A runner that has taken up a checkpoint and the world beside it."""
  runner = make_runner(task, seed=99, num_envs=num_envs)
  saved = checkpoints.read(path)
  memory = saved["recipe"]["memory"] is not None
  world, why = resume.read(path, saved["iteration"], "native:cpu", num_envs, memory=memory)
  runner.restore(saved, world)
  return runner, why


def test_a_resumed_run_is_the_run_that_was_not_stopped(lively, make_runner):
  # Guards: curves that jump where a run was resumed (rsl_rl#89), and results nobody can repeat.
  straight = make_runner(lively)
  straight.learn(12)
  stopped = make_runner(lively)
  stopped.learn(7)
  resumed, why = go_on(make_runner, lively, stopped.saves.newest)
  assert why == ""
  resumed.learn(5)
  one, other = (checkpoints.read(run.saves.newest) for run in (straight, resumed))
  assert one["curriculum"]["command"]["level"] > 0  # something has happened in it
  assert different(one, other) == []
  paths = [resume.path_for(run.folder, 11) for run in (straight, resumed)]
  worlds = [checkpoints.unpickle(path)["world"] for path in paths]
  assert different(*worlds) == []


def test_a_resumed_run_on_rough_ground_is_the_run_that_was_not_stopped(small, make_runner):
  # Guards: levels of the terrain that start anew, or tiles that envs are moved to once more.
  ladder = replace(small.terrain.curriculum, dwell_episodes=1, base_m_s=9.0, base_rad_s=9.0)
  task = replace(
    small,
    episode_s=1.2,
    command=replace(small.command, standing=0.0),
    curriculum=None,
    terrain=replace(small.terrain, ground="rough", curriculum=ladder),
    recipes={"native": replace(small.recipes["native"], rollout_steps=20)},
  )
  straight = make_runner(task)
  straight.learn(10)
  stopped = make_runner(task)
  stopped.learn(6)
  resumed, why = go_on(make_runner, task, stopped.saves.newest)
  assert why == ""
  resumed.learn(4)
  one, other = (checkpoints.read(run.saves.newest) for run in (straight, resumed))
  assert one["curriculum"]["terrain"]["level"] > 1
  assert different(one, other) == []
  paths = [resume.path_for(run.folder, 9) for run in (straight, resumed)]
  assert different(*(checkpoints.unpickle(path)["world"] for path in paths)) == []


def test_a_run_stopped_in_the_middle_goes_on_from_its_last_iteration(
  lively, make_runner, stop_when
):
  # Guards: a world that is half a rollout ahead of the networks beside it, after Ctrl-C.
  straight = make_runner(lively)
  straight.learn(6)
  stopped = make_runner(lively)
  asked = iter([False] * (4 * 11 - 3) + [True] * 9)  # eleven questions an iteration of ten steps
  stopped.learn(6, stop=stop_when(lambda: next(asked)))
  assert 0 < stopped.next_iteration < 6
  resumed, _ = go_on(make_runner, lively, stopped.saves.newest)
  resumed.learn(6 - stopped.next_iteration)
  assert different(*(checkpoints.read(run.saves.newest) for run in (straight, resumed))) == []


def test_a_world_of_another_run_is_refused_with_the_reason(small, make_runner):
  # Guards: episodes that silently start anew, or the state of other envs taken for one's own.
  runner = make_runner(small)
  runner.learn(1)
  path = runner.saves.newest
  assert "8 envs, this run 4" in go_on(make_runner, small, path, num_envs=4)[1]
  assert "there is no resume_3.pt" in resume.read(path, 3, "native:cpu", 8)[1]
  assert "of native:cpu, this run of warp:cuda" in resume.read(path, 0, "warp:cuda", 8)[1]
  world = resume.path_for(path.parent, 0)
  world.rename(resume.path_for(path.parent, 3))
  assert "is of iteration 0" in resume.read(path, 3, "native:cpu", 8)[1]
  world.write_bytes(b"PK")
  why = resume.read(path, 0, "native:cpu", 8)[1]
  assert "resume_0.pt is cut short" in why and "--checkpoint" not in why
  world.unlink()
  assert "there is no resume_0.pt" in resume.read(path, 0, "native:cpu", 8)[1]
