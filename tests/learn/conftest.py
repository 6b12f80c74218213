from dataclasses import replace

import pytest
import torch

from mjrl import tasks
from mjrl.envs.describe import describe
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.learn.evaluation import open_evaluation
from mjrl.learn.failures import Failures
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.moments import RunEvents
from mjrl.learn.options import Options
from mjrl.learn.runner import Runner
from mjrl.learn.sinks import open_sinks
from mjrl.sim.native import NativeBackend
from mjrl.sim.resolve import Resolved

OPTIONS = Options()


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
  """As the commands do: two pools of threads that wait for one another are 15 times slower."""
  torch.set_num_threads(1)


@pytest.fixture(scope="session")
def small():
  """The tripod task with a recipe of two iterations of four steps and tiny networks."""
  task = tasks.build("jumper.tripod")
  recipe = replace(
    task.recipes["native"],
    num_envs=8,
    rollout_steps=4,
    max_iterations=2,
    save_every=100,
    actor_hidden=(16,),
    critic_hidden=(16,),
    epochs=2,
    mini_batches=2,
  )
  return replace(task, recipes={"native": recipe})


@pytest.fixture
def make_runner(tmp_path):
  """A runner on native:cpu that writes into the test's folder."""

  def make(task, num_envs=8, seed=0, options=OPTIONS, keep_last=None, **changes):
    recipe = replace(task.recipes["native"], **changes)
    torch.manual_seed(seed)
    model = compile_scene(task)
    backend = NativeBackend(model, num_envs, 2)
    env = Env(task, backend, seed, history=recipe.history, anneal=recipe.curriculum)
    resolved = Resolved(
      backend="native", device="cpu", num_envs=num_envs, threads=2, torch_threads=1, reasons={}
    )
    evaluation = open_evaluation(
      task, resolved, model, seed + 1, history=recipe.history, options=options
    )
    folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    identity = {"task": describe(task), "recipe": describe(recipe), "backend": "native:cpu"}
    failures, events = Failures(), RunEvents(task.events)
    return Runner(
      env,
      recipe,
      folder,
      identity,
      sinks=open_sinks(folder, "tensorboard", {}, failures),
      events=events,
      evaluation=evaluation,
      keep_last=keep_last,
      failures=failures,
    )

  return make


@pytest.fixture
def stop_when():
  """A stop that is asked for once a function says so."""

  class StopWhen(StopAsked):
    def __init__(self, asked):
      super().__init__()
      self._asked = asked

    def __bool__(self):
      return self._asked()

  return StopWhen
