"""The learning loop: rsl_rl's algorithm, models and storage; our log, checkpoints and stops."""

import copy
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mjrl.envs.env import Env
from mjrl.envs.recipe import Recipe
from mjrl.learn import checkpoints, resume
from mjrl.learn.distributed import averaged, from_first, gathered, summed
from mjrl.learn.evaluation import Evaluation
from mjrl.learn.failures import BEST, CHECKPOINT, CONSOLE, PRUNE, WORLD, Failures
from mjrl.learn.moments import Moment, RunEvents
from mjrl.learn.policy import NetworkPolicy
from mjrl.learn.ppo import Ppo
from mjrl.learn.progress import Display
from mjrl.learn.rsl import OnPolicyRunner
from mjrl.learn.rsl_config import rsl_config
from mjrl.learn.sinks import Sink
from mjrl.learn.vec_env import RslEnv
from mjrl.sim.ranks import ALONE, Ranks

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
    ranks: Ranks = ALONE,
    evaluation: Evaluation | None = None,
    keep_last: int | None = None,
  ) -> None:
    """Build networks and storage.

    Args:
      env: to learn in.
      recipe: PPO's numbers.
      folder: of the run.
      identity: plain values that every checkpoint carries, "task" and "recipe" among them.
      sinks: what takes the scalars of every iteration.
      events: the task's own, of the run.
      ranks: which process of a distributed run this is, see `mjrl.learn.distributed.joined`.
      evaluation: of the policy, every so often.
      keep_last: how many of the newest checkpoints to keep; None keeps all.
    """
    self.ranks = ranks
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
    self.evaluation = evaluation
    self.best: dict[str, Any] | None = None  # "metric", "value" and "iteration"
    # Copied now, since torch copies no model from which something was computed for a gradient.
    self._evaluated = copy.deepcopy(self.alg.get_policy()).eval() if evaluation else None
    self.failures = Failures()
    self._keep_last, self._written = keep_last, list[Path]()
    self._between_iterations = True
    self._world: dict[str, Any] = {}
    self._learned: dict[str, Any] = {}

  def learn(  # type: ignore[override]
    self,
    num_learning_iterations: int,
    stop: Callable[[], bool] = lambda: False,
    after_step: Callable[[], None] = lambda: None,
    agreed: Callable[[], bool] | None = None,
  ) -> None:
    """Learn; saves every so often, and at the end, whatever the end is.

    Args:
      num_learning_iterations: to run from here on.
      stop: asked between control steps; True ends the run.
      after_step: called after every control step.
      agreed: asked between iterations alone, in place of `stop`: the processes of a distributed run
        end together.
    """
    first = self.next_iteration
    last = first + num_learning_iterations - 1
    display = Display(first, last)
    obs = self.env.get_observations()
    self.alg.train_mode()
    within = (lambda: False) if agreed else stop
    self._learned = {}
    try:
      if not self.ranks.alone:
        self.alg.broadcast_parameters()
      self._fire("train_start")
      while self.next_iteration <= last and not (agreed or stop)():
        start = time.perf_counter()
        obs, complete = self._collect(obs, within, after_step)
        if not complete:
          break
        collected = time.perf_counter()
        self._between_iterations = False
        losses = self.alg.update()
        self.next_iteration += 1
        self.env_steps += self._steps_per_iteration
        times = Times(collected - start, time.perf_counter() - collected)
        evaluate = self.evaluation and self.evaluation.due(self.next_iteration - 1, first, last)
        self._end_iteration(display, losses, times, stop if evaluate else None)
        if self.next_iteration % self.recipe.save_every == 0:
          self.save_checkpoint()
    finally:
      # With an update half done there is nothing that belongs together, but what was kept of the
      # last one. A distributed run keeps it: an update is where the death of another is noticed.
      whole = self._between_iterations or not self.ranks.alone
      if self._learned and whole and not self._is_saved():
        self.save_checkpoint()
      for sink in self.sinks:
        sink.close()
      display.close()
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

  def _end_iteration(
    self,
    display: Display,
    losses: dict[str, float],
    times: Times,
    stop_evaluation: Callable[[], bool] | None,
  ) -> None:
    """Measure, log, and note where a run that is stopped within the next iteration goes on."""
    self.last_log = scalars = self._scalars(losses, times)
    self._mark()
    if stop_evaluation:
      scalars |= self._evaluate(stop_evaluation)
    if self.events.wanted("iteration"):
      self._fire("iteration", scalars=scalars)
      self._mark()  # an event may have changed the world
    self._log(display, scalars)

  def _log(self, display: Display, scalars: dict[str, float]) -> None:
    """Keep and show what is known of the iteration that has just been done."""
    for sink in self.sinks:
      sink.write(self.next_iteration - 1, scalars)
    notes = [f"updates skipped: {self.alg.skipped_for}"] if self.alg.skipped_updates else []
    notes += self._take_notes() + (self.evaluation.take_notes() if self.evaluation else [])
    with self.failures.survived(CONSOLE):
      display.block(self.next_iteration - 1, scalars, notes)

  def _take_notes(self) -> list[str]:
    ours, *others = gathered(self.mjrl_env.take_notes())
    return ours + [f"rank {k}: {note}" for k, notes in enumerate(others, 1) for note in notes]

  def _evaluate(self, stop: Callable[[], bool]) -> dict[str, float]:
    """The scalars of an evaluation, none where it was stopped; the best policy is kept."""
    assert self.evaluation and self._evaluated  # there is something that is due
    self._evaluated.load_state_dict(self.alg.get_policy().state_dict())
    fire = partial(self._fire, env=self.evaluation.env)
    scalars = self.evaluation.run(NetworkPolicy(self._evaluated), stop=stop, fire=fire)
    if scalars is None:
      return {}
    if best := self.evaluation.better(scalars, self.next_iteration - 1, self.best):
      self.best, path = best, self.folder / checkpoints.BEST
      with self.failures.survived(BEST):
        checkpoints.write(path, self._content())
        self._fire("checkpoint", checkpoint=path)
    return scalars

  def _scalars(self, losses: dict[str, float], times: Times) -> dict[str, float]:
    """Everything that is logged of the iteration that has just been done."""
    for finished in gathered(self.mjrl_env.take_finished()):
      for episode_return, length in finished:
        self.returns.append(episode_return)
        self.lengths.append(length)
    if not self.ranks.alone:  # the first one's holds decide the ladder's level for all
      self.mjrl_env.load_curriculum(from_first(self.mjrl_env.save_curriculum()))
    with torch.inference_mode():
      of_task = self.mjrl_env.end_iteration(self.next_iteration - 1, pool=summed)
    scalars = {
      "Perf/env_steps": self.env_steps,
      "Perf/total_fps": self._steps_per_iteration / (times.collection_s + times.learning_s),
      "Perf/collection_time": times.collection_s,
      "Perf/learning_time": times.learning_s,
    }
    scalars |= {f"Loss/{name}": value for name, value in averaged(losses).items()}
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
    self._learned = {
      "iteration": self.next_iteration - 1,
      "env_steps": self.env_steps,
      "curriculum": self.mjrl_env.save_curriculum(),
    }
    if self.ranks.alone:
      self._world = self._snapshot()
    elif self.ranks.first:
      self._learned |= copy.deepcopy(self.alg.save())
    self._between_iterations = True

  def _fire(self, event: str, *, env: Env | None = None, **more: Any) -> None:
    self.events.fire(
      Moment(
        event=event,
        rank=self.ranks.rank,
        folder=self.folder,
        iteration=self.next_iteration - 1,
        env_steps=self.env_steps,
        env=env or self.mjrl_env,
        **more,
      )
    )

  def _is_saved(self) -> bool:
    """Whether the last finished iteration has its checkpoint."""
    return self.newest is not None and (
      checkpoints.iteration_of(self.newest) == self._learned["iteration"]
    )

  def save_checkpoint(self) -> None:
    """Write `model_<last finished iteration>.pt`, its world before it, and prune older ones.

    The first process does. What cannot be written is said and counted in `failures`, and leaves
    what was there before.
    """
    if not self.ranks.first:
      return
    iteration = self._learned["iteration"]
    path = self.folder / f"model_{iteration}.pt"
    if self.ranks.alone:
      with self.failures.survived(WORLD):
        resume.write(self.folder, iteration, self.identity["backend"], self._world)
    with self.failures.survived(CHECKPOINT):
      checkpoints.write(path, self._content())
      self.newest = path
      self._written.append(path)
    if not self._is_saved():
      return
    with self.failures.survived(PRUNE):
      resume.remove_others(self.folder, iteration)
      checkpoints.prune(self._written, self._keep_last or len(self._written))
    self._fire("checkpoint", checkpoint=path)

  def _content(self) -> dict[str, Any]:
    """What every checkpoint holds."""
    return {**self.alg.save(), **self.identity, **self._learned, "best": self.best}

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
    # With another weight or noise, what was the best is of another scale.
    self.best = saved.get("best") if saved["task"] == self.identity["task"] else None
    if world is not None:
      self.mjrl_env.load(world["env"])
      self.alg.load_memory(world["memory"])
      torch.set_rng_state(world["torch_rng"])
      if "cuda_rng" in world:
        torch.cuda.set_rng_state(world["cuda_rng"], self.device)
      self.returns.extend(world["returns"])
      self.lengths.extend(world["lengths"])

  @property
  def _steps_per_iteration(self) -> int:
    """Control steps of the envs of all processes."""
    return self.recipe.rollout_steps * self.env.num_envs * self.ranks.world_size

  def _configure_multi_gpu(self) -> None:
    """In place of rsl_rl's, which knows NCCL alone; the group is `mjrl.learn.distributed`'s."""
    self.is_distributed = not self.ranks.alone
    self.gpu_world_size = self.ranks.world_size
    self.gpu_global_rank, self.gpu_local_rank = self.ranks.rank, self.ranks.local_rank
    self.cfg["multi_gpu"] = (
      {
        "global_rank": self.ranks.rank,
        "local_rank": self.ranks.local_rank,
        "world_size": self.ranks.world_size,
      }
      if self.is_distributed
      else None
    )

  def _snapshot(self) -> dict[str, Any]:
    """The world as it is, what the networks remember of it, and what draws random numbers."""
    world = {
      "env": self.mjrl_env.save(),
      "memory": self.alg.save_memory(),
      "torch_rng": torch.get_rng_state(),
      "returns": list(self.returns),
      "lengths": list(self.lengths),
    }
    if self.device.startswith("cuda"):
      world["cuda_rng"] = torch.cuda.get_rng_state(self.device)
    return world
