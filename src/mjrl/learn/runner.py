"""The learning loop: rsl_rl's algorithm, models and storage; our log, checkpoints and stops."""

import statistics
import time
from collections import deque
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner
from torch.utils.tensorboard import SummaryWriter

from mjrl.envs.env import Env
from mjrl.envs.task import Recipe
from mjrl.learn import checkpoints, resume
from mjrl.learn.config import rsl_config
from mjrl.learn.ppo import Ppo
from mjrl.learn.progress import Display, clock
from mjrl.learn.vec_env import RslEnv

_WINDOW = 100  # episodes over which reward and length are averaged


class Runner(OnPolicyRunner):
  """Learns a task, one iteration after the other, from a counter that a resumed run carries on."""

  alg: Ppo

  def __init__(self, env: Env, recipe: Recipe, folder: Path, identity: dict[str, Any]) -> None:
    """Build networks and storage.

    Args:
      env: to learn in.
      recipe: PPO's numbers.
      folder: of the run.
      identity: plain values that every checkpoint carries, "task" and "recipe" among them.
    """
    with redirect_stdout(StringIO()):  # rsl_rl prints its networks, layer by layer
      super().__init__(RslEnv(env), rsl_config(recipe, env), log_dir=None, device=env.device)
    self.mjrl_env, self.recipe, self.folder, self.identity = env, recipe, folder, identity
    self.next_iteration = 0
    self.env_steps = 0
    self.returns: deque[float] = deque(maxlen=_WINDOW)
    self.lengths: deque[float] = deque(maxlen=_WINDOW)
    self.last_log: dict[str, float] = {}
    self.first_reward: float | None = None
    self.newest: Path | None = None
    self._world: dict[str, Any] = {}
    self._curriculum: dict[str, dict[str, float]] = {}

  def learn(  # type: ignore[override]
    self,
    num_learning_iterations: int,
    stop: Callable[[], bool] = lambda: False,
    after_step: Callable[[], None] = lambda: None,
  ) -> None:
    """Learn; saves every so often, and at the end.

    Args:
      num_learning_iterations: to run from here on.
      stop: asked between control steps; True ends the run.
      after_step: called after every control step.
    """
    first = self.next_iteration
    last = first + num_learning_iterations - 1
    display = Display(first, last)
    writer = SummaryWriter(str(self.folder), flush_secs=10)
    began = time.perf_counter()
    obs = self.env.get_observations()
    self.alg.train_mode()
    try:
      while self.next_iteration <= last and not stop():
        start = time.perf_counter()
        obs, complete = self._collect(obs, stop, after_step)
        if not complete:
          break
        collected = time.perf_counter()
        losses = self.alg.update()
        done = time.perf_counter()
        it = self.next_iteration
        self.next_iteration += 1
        self.env_steps += self.recipe.rollout_steps * self.env.num_envs
        self._log(writer, display, it, losses, (start, collected, done), began, first, last)
        # As between two iterations: a run that is stopped within the next one goes on from here.
        self._world, self._curriculum = self._snapshot(), self.mjrl_env.save_curriculum()
        if self.next_iteration % self.recipe.save_every == 0:
          self.save_checkpoint()
    finally:
      display.close()
      writer.close()
    if self.next_iteration > first:
      self.save_checkpoint()

  def _collect(
    self, obs: Any, stop: Callable[[], bool], after_step: Callable[[], None]
  ) -> tuple[Any, bool]:
    """A rollout; cut short, and said so, where a stop is asked for."""
    with torch.inference_mode():
      for _ in range(self.recipe.rollout_steps):
        if stop():
          return obs, False
        actions = self.alg.act(obs)
        obs, rewards, dones, extras = self.env.step(actions)
        self.alg.process_env_step(obs, rewards, dones, extras)
        after_step()
      self.alg.compute_returns(obs)
    return obs, True

  def _log(
    self,
    writer: SummaryWriter,
    display: Display,
    it: int,
    losses: dict[str, float],
    times: tuple[float, float, float],
    began: float,
    first: int,
    last: int,
  ) -> None:
    start, collected, done = times
    steps = self.recipe.rollout_steps * self.env.num_envs
    for episode_return, length in self.mjrl_env.take_finished():
      self.returns.append(episode_return)
      self.lengths.append(length)
    with torch.inference_mode():
      task_log = self.mjrl_env.end_iteration(it)
    std = float(self.alg.get_policy().output_std.mean().detach())
    scalars = {f"Loss/{name}": value for name, value in losses.items()}
    scalars["Loss/learning_rate"] = self.alg.learning_rate
    scalars["Loss/skipped_updates"] = self.alg.skipped_updates
    scalars["Policy/mean_std"] = std
    scalars["Perf/total_fps"] = steps / (done - start)
    scalars["Perf/collection_time"] = collected - start
    scalars["Perf/learning_time"] = done - collected
    scalars["Perf/env_steps"] = self.env_steps
    if self.returns:
      scalars["Train/mean_reward"] = statistics.mean(self.returns)
      scalars["Train/mean_episode_length"] = statistics.mean(self.lengths)
      if self.first_reward is None:
        self.first_reward = scalars["Train/mean_reward"]
    self.last_log = scalars | task_log
    for name, value in self.last_log.items():
      writer.add_scalar(name, value, it)

    elapsed = time.perf_counter() - began
    mean_s = elapsed / (it + 1 - first)
    facts: dict[str, float | str] = {
      "Total steps": self.env_steps,
      "Steps per second": f"{scalars['Perf/total_fps']:.0f}",
      "Collection time": f"{collected - start:.3f} s",
      "Learning time": f"{done - collected:.3f} s",
    }
    facts |= {f"Mean {name} loss": value for name, value in losses.items()}
    facts["Learning rate"] = f"{self.alg.learning_rate:.1e}"
    if self.alg.skipped_updates:
      facts["Updates skipped, not finite"] = f"{self.alg.skipped_updates} ({self.alg.skipped_for})"
    if self.returns:
      facts["Mean reward"] = scalars["Train/mean_reward"]
      facts["Mean episode length"] = scalars["Train/mean_episode_length"]
    facts["Mean action std"] = std
    facts |= task_log
    facts |= {f"Note {k}": note for k, note in enumerate(self.mjrl_env.take_notes(), 1)}
    facts["Time elapsed"] = clock(elapsed)
    facts["ETA"] = clock(mean_s * (last - it))
    display.block(it, facts)

  def save_checkpoint(self) -> Path:
    """Write `model_<last finished iteration>.pt`."""
    path = self.folder / f"model_{self.next_iteration - 1}.pt"
    saved = self.alg.save() | self.identity
    saved |= {
      "iteration": self.next_iteration - 1,
      "env_steps": self.env_steps,
      "curriculum": self._curriculum,
    }
    checkpoints.write(path, saved)
    resume.write(self.folder, self.next_iteration - 1, self.identity["backend"], self._world)
    self.newest = path
    return path

  def restore(self, saved: dict[str, Any], world: dict[str, Any] | None) -> None:
    """Go on from a checkpoint: networks, optimiser, curricula, and the iteration after its last.

    Args:
      saved: the checkpoint.
      world: what `resume.read` gave; None lets the episodes start anew.
    """
    self.alg.load(saved, None, strict=True)
    self.next_iteration = saved["iteration"] + 1
    self.env_steps = saved["env_steps"]
    self.mjrl_env.load_curriculum(saved["curriculum"])
    if world is not None:
      self.mjrl_env.load(world["env"])
      torch.set_rng_state(world["torch_rng"])
      self.returns.extend(world["returns"])
      self.lengths.extend(world["lengths"])

  def _snapshot(self) -> dict[str, Any]:
    """The world as it is, and what draws its random numbers."""
    return {
      "env": self.mjrl_env.save(),
      "torch_rng": torch.get_rng_state(),
      "returns": list(self.returns),
      "lengths": list(self.lengths),
    }
