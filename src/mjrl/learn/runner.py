"""The learning loop: rsl_rl's algorithm, models and storage; our log, checkpoints and stops."""

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rsl_rl.runners import OnPolicyRunner

from mjrl.envs.env import Env
from mjrl.envs.recipe import Recipe
from mjrl.learn import checkpoints, resume
from mjrl.learn.config import rsl_config
from mjrl.learn.moments import Moment, RunEvents
from mjrl.learn.ppo import Ppo
from mjrl.learn.progress import Display
from mjrl.learn.sinks import Sink
from mjrl.learn.vec_env import RslEnv

_WINDOW = 100  # episodes over which reward and length are averaged


class Times(NamedTuple):
  """Wall time of an iteration's two halves."""

  collection_s: float
  learning_s: float


class Runner(OnPolicyRunner):
  """Learns a task, one iteration after the other, from a counter that a resumed run carries on."""

  alg: Ppo

  def __init__(
    self,
    env: Env,
    recipe: Recipe,
    folder: Path,
    identity: dict[str, Any],
    *,
    sinks: Sequence[Sink] = (),
    events: RunEvents | None = None,
  ) -> None:
    """Build networks and storage.

    Args:
      env: to learn in.
      recipe: PPO's numbers.
      folder: of the run.
      identity: plain values that every checkpoint carries, "task" and "recipe" among them.
      sinks: what takes the scalars of every iteration.
      events: the task's own, of the run.
    """
    with redirect_stdout(StringIO()):  # rsl_rl prints its networks, layer by layer
      super().__init__(RslEnv(env), rsl_config(recipe, env), log_dir=None, device=env.device)
    self.mjrl_env, self.recipe, self.folder, self.identity = env, recipe, folder, identity
    self.sinks, self.events = sinks, events or RunEvents({})
    self.next_iteration = 0
    self.env_steps = 0
    self.returns: deque[float] = deque(maxlen=_WINDOW)
    self.lengths: deque[float] = deque(maxlen=_WINDOW)
    self.last_log: dict[str, float] = {}
    self.first_reward: float | None = None
    self.newest: Path | None = None
    self._between_iterations = True
    self._world: dict[str, Any] = {}
    self._curriculum: dict[str, dict[str, float]] = {}

  def learn(  # type: ignore[override]
    self,
    num_learning_iterations: int,
    stop: Callable[[], bool] = lambda: False,
    after_step: Callable[[], None] = lambda: None,
  ) -> None:
    """Learn; saves every so often, and at the end, whatever the end is.

    Args:
      num_learning_iterations: to run from here on.
      stop: asked between control steps; True ends the run.
      after_step: called after every control step.
    """
    first = self.next_iteration
    last = first + num_learning_iterations - 1
    display = Display(first, last)
    obs = self.env.get_observations()
    self.alg.train_mode()
    try:
      self._fire("train_start")
      while self.next_iteration <= last and not stop():
        start = time.perf_counter()
        obs, complete = self._collect(obs, stop, after_step)
        if not complete:
          break
        collected = time.perf_counter()
        self._between_iterations = False
        losses = self.alg.update()
        self.next_iteration += 1
        self.env_steps += self.recipe.rollout_steps * self.env.num_envs
        times = Times(collected - start, time.perf_counter() - collected)
        self._end_iteration(display, losses, times)
        if self.next_iteration % self.recipe.save_every == 0:
          self.save_checkpoint()
    finally:
      display.close()
      # With an update half done there is nothing that belongs together; the last one was saved.
      if self.next_iteration > first and self._between_iterations:
        self.save_checkpoint()
      for sink in self.sinks:
        sink.close()
    self._fire("train_end", checkpoint=self.newest)

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

  def _end_iteration(self, display: Display, losses: dict[str, float], times: Times) -> None:
    """Measure, log, and note where a run that is stopped within the next iteration goes on."""
    self.last_log = scalars = self._scalars(losses, times)
    self._mark()
    if self.events.wanted("iteration"):
      self._fire("iteration", scalars=scalars)
      self._mark()  # an event may have changed the world
    for sink in self.sinks:
      sink.write(self.next_iteration - 1, scalars)
    notes = [f"updates skipped: {self.alg.skipped_for}"] if self.alg.skipped_updates else []
    display.block(self.next_iteration - 1, scalars, [*notes, *self.mjrl_env.take_notes()])

  def _scalars(self, losses: dict[str, float], times: Times) -> dict[str, float]:
    """Everything that is logged of the iteration that has just been done."""
    for episode_return, length in self.mjrl_env.take_finished():
      self.returns.append(episode_return)
      self.lengths.append(length)
    with torch.inference_mode():
      of_task = self.mjrl_env.end_iteration(self.next_iteration - 1)
    steps = self.recipe.rollout_steps * self.env.num_envs
    scalars = {
      "Perf/env_steps": self.env_steps,
      "Perf/total_fps": steps / (times.collection_s + times.learning_s),
      "Perf/collection_time": times.collection_s,
      "Perf/learning_time": times.learning_s,
    }
    scalars |= {f"Loss/{name}": value for name, value in losses.items()}
    scalars["Loss/learning_rate"] = self.alg.learning_rate
    scalars["Loss/skipped_updates"] = self.alg.skipped_updates
    if self.returns:
      scalars["Train/mean_reward"] = statistics.mean(self.returns)
      scalars["Train/mean_episode_length"] = statistics.mean(self.lengths)
      if self.first_reward is None:
        self.first_reward = scalars["Train/mean_reward"]
    scalars["Policy/mean_std"] = float(self.alg.get_policy().output_std.mean().detach())
    return scalars | of_task

  def _mark(self) -> None:
    """Take the world as it is: a run that is stopped within the next iteration goes on from it."""
    self._world, self._curriculum = self._snapshot(), self.mjrl_env.save_curriculum()
    self._between_iterations = True

  def _fire(self, event: str, **more: Any) -> None:
    self.events.fire(
      Moment(
        event=event,
        folder=self.folder,
        iteration=self.next_iteration - 1,
        env_steps=self.env_steps,
        env=self.mjrl_env,
        **more,
      )
    )

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
    self._fire("checkpoint", checkpoint=path)
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
      if "cuda_rng" in world:
        torch.cuda.set_rng_state(world["cuda_rng"], self.device)
      self.returns.extend(world["returns"])
      self.lengths.extend(world["lengths"])

  def _snapshot(self) -> dict[str, Any]:
    """The world as it is, and what draws its random numbers."""
    world = {
      "env": self.mjrl_env.save(),
      "torch_rng": torch.get_rng_state(),
      "returns": list(self.returns),
      "lengths": list(self.lengths),
    }
    if self.device.startswith("cuda"):
      world["cuda_rng"] = torch.cuda.get_rng_state(self.device)
    return world
