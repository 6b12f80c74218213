"""Measuring what numbers of envs cost: a few seconds of the real training at each of them."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import torch

from mjrl.envs.describe import describe
from mjrl.envs.env import Env
from mjrl.envs.recipe import for_envs
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Task
from mjrl.learn.profile import clock_of
from mjrl.learn.runner import Runner
from mjrl.learn.sizes import FAR, Size, knee
from mjrl.learn.train import check_room_to_learn
from mjrl.sim.open import open_backend
from mjrl.sim.resolve import MAX_AUTO_THREADS, Resolved
from mjrl.sim.seeds import streams

COLLECT_S = 2.0  # of which, at most, the speed of collecting is taken
LONGEST_ITERATION_S = 60.0  # beyond which nobody trains, and no more envs are tried
_WARM_UP_STEPS = 2
_FIRST = {"native:cpu": 16, "warp:cpu": 4, "warp:cuda": 512}


def counts(resolved: Resolved, recipe_envs: int) -> Iterator[int]:
  """Numbers of envs to try: doubling, and the recipe's own among them."""
  first = min(_FIRST[resolved.name], recipe_envs)
  doubling = (first * 2**k for k in itertools.count())
  last = 0
  for number in doubling:
    if last < recipe_envs < number:
      yield recipe_envs
    yield number
    last = number


def measure(
  task: Task, resolved: Resolved, cpus: int, numbers: Iterator[int]
) -> Iterator[Size | str]:
  """What each number of envs costs; at last, in words, why no more are tried.

  Args:
    task: whose recipe for the engine is learned, on the task as it is.
    resolved: engine and device.
    cpus: that the process may use.
    numbers: of envs, rising.
  """
  found: list[Size] = []
  before = _taken_bytes(resolved.device)
  for number in numbers:
    threads = min(cpus, MAX_AUTO_THREADS, number) if resolved.backend == "native" else 0
    one = replace(resolved, num_envs=number, threads=threads)
    try:
      size = _measure(task, one, before)
    except (ValueError, torch.OutOfMemoryError) as error:
      yield f"{number} envs: {str(error).splitlines()[0]}"
      return
    found.append(size)
    yield size
    if size.iteration_s > LONGEST_ITERATION_S:
      yield f"an iteration with more envs takes over {LONGEST_ITERATION_S:g} s"
      return
    if number >= FAR * knee(found) and number >= task.recipes[resolved.backend].num_envs:
      yield f"{FAR} times the knee: more envs no longer pay"
      return


def _measure(task: Task, resolved: Resolved, before: int) -> Size:
  recipe = for_envs(task.recipes[resolved.backend], resolved.num_envs)
  model = compile_scene(task)
  check_room_to_learn(task, resolved, recipe, model)
  of_networks, of_env = streams(0, 2)
  torch.manual_seed(of_networks)
  env = Env(
    task,
    open_backend(resolved, model),
    of_env,
    history=recipe.history,
    anneal=recipe.curriculum,
    spread_starts=True,
  )
  identity = {"task": describe(task), "recipe": describe(recipe)}
  runner = Runner(env, recipe, Path(), identity)  # which saves nothing unless it is told to
  runner.alg.train_mode()
  _iteration(runner, _WARM_UP_STEPS)  # allocates, compiles, and fills caches
  step_s, learning_s = _iteration(runner, recipe.rollout_steps)
  collection_s = step_s * recipe.rollout_steps
  steps = recipe.rollout_steps * resolved.num_envs
  return Size(
    num_envs=resolved.num_envs,
    env_steps_per_s=steps / (collection_s + learning_s),
    collection_s=collection_s,
    learning_s=learning_s,
    taken_bytes=max(_taken_bytes(resolved.device) - before, 0),
  )


def _iteration(runner: Runner, most_steps: int) -> tuple[float, float]:
  """Seconds of a control step, and of an update.

  Steps end with `COLLECT_S`; what lacks of a rollout then is filled with copies of the last one,
  which are as long to learn from.
  """
  clock, alg = clock_of(runner.mjrl_env.device), runner.alg
  with torch.inference_mode():
    obs = runner.env.get_observations()
    began_s, done = clock(), 0
    ends_s = time.perf_counter() + COLLECT_S  # the host's time: asking the device would hold it up
    while True:
      obs, rewards, dones, extras = runner.env.step(alg.act(obs))
      alg.process_env_step(obs, rewards, dones, extras)
      done += 1
      if done == most_steps or time.perf_counter() > ends_s:
        break
    step_s = (clock() - began_s) / done
    for _ in range(runner.recipe.rollout_steps - done):
      alg.act(obs)
      alg.process_env_step(obs, rewards, dones, extras)
    began_s = clock()
    alg.compute_returns(obs)
  alg.update()
  return step_s, clock() - began_s


def _taken_bytes(device: str) -> int:
  """Memory in use: of the device by all, on the CPU by this process."""
  if device.startswith("cuda"):
    free, total = torch.cuda.mem_get_info(device)
    return total - free
  return psutil.Process().memory_info().rss
