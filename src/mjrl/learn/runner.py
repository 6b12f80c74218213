"""The learning loop: rsl_rl's algorithm, models and storage; our log, checkpoints and stops."""

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch

from mjrl.envs.env import Env
from mjrl.envs.recipe import Recipe
from mjrl.learn.distributed import averaged, from_first, gathered, stop_agreed, summed
from mjrl.learn.episodes import Episodes
from mjrl.learn.evaluation import Evaluation
from mjrl.learn.failures import CONSOLE, Failures
from mjrl.learn.films import Films
from mjrl.learn.findings import Judge
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.moments import Moment, RunEvents
from mjrl.learn.policy import NetworkPolicy
from mjrl.learn.ppo import Ppo
from mjrl.learn.progress import Display
from mjrl.learn.rsl import OnPolicyRunner
from mjrl.learn.rsl_config import rsl_config
from mjrl.learn.rules import about
from mjrl.learn.saves import Saves
from mjrl.learn.schedules import factor
from mjrl.learn.sinks import Sink
from mjrl.learn.usage import Usage
from mjrl.learn.vec_env import RslEnv
from mjrl.sim.ranks import ALONE, Ranks


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
    films: Films | None = None,
    keep_last: int | None = None,
    failures: Failures | None = None,
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
      films: of the policy, every so often.
      keep_last: how many of the newest checkpoints to keep; None keeps all.
      failures: of the run, which the sinks count into, too.
    """
    self.ranks = ranks
    with redirect_stdout(StringIO()):  # rsl_rl prints its networks, layer by layer
      super().__init__(RslEnv(env), rsl_config(recipe, env), log_dir=None, device=env.device)
    self.mjrl_env, self.recipe, self.folder = env, recipe, folder
    self.sinks, self.events = sinks, events or RunEvents({})
    self.next_iteration = 0
    self.env_steps = 0
    self.last_log: dict[str, float] = {}
    self.evaluation, self.films = evaluation, films
    # Copied now, since torch copies no model from which something was computed for a gradient.
    looked_at = evaluation or films
    self._evaluated = copy.deepcopy(self.alg.get_policy()).eval() if looked_at else None
    self.failures = failures or Failures()
    self.episodes = Episodes()
    self._usage = Usage(env.device)
    self.judge = Judge(about(identity["task"], identity["recipe"]))
    self.saves = Saves(
      folder,
      identity,
      self.alg,
      env,
      self.episodes,
      ranks=ranks,
      failures=self.failures,
      keep_last=keep_last,
    )
    self._between_iterations = True

  def learn(  # type: ignore[override]
    self,
    num_learning_iterations: int,
    stop: StopAsked | None = None,
    after_step: Callable[[], None] = lambda: None,
  ) -> None:
    """Learn; saves every so often, and at the end, whatever the end is.

    Args:
      num_learning_iterations: to run from here on.
      stop: ends the run after the control step; the processes of a distributed run end together,
        after an iteration.
      after_step: called after every control step.
    """
    stop = StopAsked() if stop is None else stop
    first = self.next_iteration
    last = first + num_learning_iterations - 1
    display = Display(first, last)
    obs = self.env.get_observations()
    self.alg.train_mode()
    try:
      if not self.ranks.alone:
        self.alg.broadcast_parameters()
      self._fire("train_start")
      while self.next_iteration <= last and not stop_agreed(stop):
        start = time.perf_counter()
        obs, complete = self._collect(obs, stop, after_step)
        if not complete:
          break
        collected = time.perf_counter()
        self._plan_learning_rate(last)
        self._between_iterations = False
        losses = self.alg.update()
        self.next_iteration += 1
        self.env_steps += self._steps_per_iteration
        times = Times(collected - start, time.perf_counter() - collected)
        evaluate = bool(
          self.evaluation and self.evaluation.due(self.next_iteration - 1, first, last)
        )
        self._end_iteration(display, losses, times, evaluate, stop)
        if self.films:
          self._film(self.films, last, stop)
        if self.next_iteration % self.recipe.save_every == 0:
          self.save_checkpoint()
    finally:
      # With an update half done there is nothing that belongs together, but what was kept of the
      # last one. A distributed run keeps it: an update is where the death of another is noticed.
      if (self._between_iterations or not self.ranks.alone) and self.saves.due:
        self.save_checkpoint()
      if self.films:
        self.films.close(stopped=self.next_iteration <= last)
      for sink in self.sinks:
        sink.close()
      with self.failures.survived(CONSOLE):
        display.close()
    self._fire("train_end", checkpoint=self.saves.newest)

  def _collect(self, obs: Any, stop: StopAsked, after_step: Callable[[], None]) -> tuple[Any, bool]:
    """A rollout; cut short, and said so, where a stop is asked for and nobody waits for us."""
    with torch.inference_mode():
      for _ in range(self.recipe.rollout_steps):
        if self.ranks.alone and stop:
          return obs, False
        actions = self.alg.act(obs)
        obs, rewards, dones, extras = self.env.step(actions)
        self.alg.process_env_step(obs, rewards, dones, extras)
        after_step()
      self.alg.compute_returns(obs)
    return obs, True

  def _plan_learning_rate(self, last: int) -> None:
    share = factor(self.recipe.schedule, self.next_iteration, last + 1)
    if share is not None:
      self.alg.set_learning_rate(share * self.recipe.learning_rate)

  def _end_iteration(
    self,
    display: Display,
    losses: dict[str, float],
    times: Times,
    evaluate: bool,
    stop: StopAsked,
  ) -> None:
    """Measure, log, and note where a run that is stopped within the next iteration goes on."""
    self.last_log = scalars = self._scalars(losses, times)
    self._mark()
    if evaluate:
      scalars |= self._evaluate(stop)
    if self.events.wanted("iteration"):
      self._fire("iteration", scalars=scalars)
      self._mark()  # an event may have changed the world
    self._log(display, scalars)

  def _log(self, display: Display, scalars: dict[str, float]) -> None:
    """Keep, judge and show what is known of the iteration that has just been done."""
    iteration = self.next_iteration - 1
    findings = self.judge.take(iteration, scalars)
    for sink in self.sinks:
      sink.write(iteration, scalars)
      for finding in findings:
        sink.say(iteration, f"findings/{finding.rule}", finding.text)
    notes = self.alg.take_notes() + self._take_notes()
    with self.failures.survived(CONSOLE):
      display.block(iteration, scalars, notes, [finding.text for finding in findings])

  def _take_notes(self) -> list[str]:
    mine = self.mjrl_env.take_notes() + (self.evaluation.take_notes() if self.evaluation else [])
    ours, *others = gathered(mine)
    return ours + [f"rank {k}: {note}" for k, notes in enumerate(others, 1) for note in notes]

  def _evaluate(self, stop: StopAsked) -> dict[str, float]:
    """The scalars of an evaluation, none where it was stopped; the best policy is kept."""
    assert self.evaluation  # there is something that is due
    fire = partial(self._fire, env=self.evaluation.env)
    scalars = self.evaluation.run(
      self._policy_now(), stop=lambda: self.ranks.alone and bool(stop), fire=fire
    )
    if scalars is None:
      return {}
    best = self.evaluation.better(scalars, self.next_iteration - 1, self.saves.best)
    if best and (path := self.saves.save_best(best)):
      self._fire("checkpoint", checkpoint=path)
    return scalars

  def _film(self, films: Films, last: int, stop: StopAsked) -> None:
    """Film the policy if that is due, and show what has been drawn."""
    iteration = self.next_iteration - 1
    films.show()
    if films.due(iteration, last):
      films.shoot(self._policy_now(), iteration, is_last=iteration == last, stop=lambda: bool(stop))

  def _policy_now(self) -> NetworkPolicy:
    """The policy as it is, in networks that nobody learns with."""
    assert self._evaluated  # there is somebody who looks at it
    self._evaluated.load_state_dict(self.alg.get_policy().state_dict())
    return NetworkPolicy(self._evaluated)

  def _scalars(self, losses: dict[str, float], times: Times) -> dict[str, float]:
    """Everything that is logged of the iteration that has just been done."""
    for finished in gathered(self.mjrl_env.take_finished()):
      self.episodes.add(finished)
    if not self.ranks.alone:  # the first one's holds decide the ladder's level for all
      self.mjrl_env.load_curriculum(from_first(self.mjrl_env.shared_curriculum()))
    with torch.inference_mode():
      of_task = self.mjrl_env.end_iteration(self.next_iteration - 1, pool=summed)
    scalars = {
      "Perf/env_steps": self.env_steps,
      "Perf/total_fps": self._steps_per_iteration / (times.collection_s + times.learning_s),
      "Perf/collection_time": times.collection_s,
      "Perf/learning_time": times.learning_s,
    } | self._usage.since()
    scalars |= {f"Loss/{name}": value for name, value in averaged(losses).items()}
    scalars["Loss/learning_rate"] = self.alg.learning_rate
    scalars["Loss/skipped_updates"] = self.alg.skipped_updates
    scalars |= self.episodes.scalars()
    scalars["Policy/mean_std"] = float(self.alg.get_policy().output_std.mean().detach())
    return scalars | of_task

  def _mark(self) -> None:
    self.saves.mark(self.next_iteration - 1, self.env_steps)
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

  def save_checkpoint(self) -> None:
    """Write the checkpoint of the last finished iteration; see `Saves.save`."""
    if path := self.saves.save():
      self._fire("checkpoint", checkpoint=path)

  def restore(self, saved: dict[str, Any], world: dict[str, Any] | None) -> None:
    """Go on from a checkpoint, with the iteration after its last; see `Saves.restore`."""
    self.saves.restore(saved, world)
    self.next_iteration = saved["iteration"] + 1
    self.env_steps = saved["env_steps"]

  def start_from(self, saved: dict[str, Any]) -> None:
    """Take up the networks of a checkpoint, and nothing else of its run.

    The action's standard deviation stays the recipe's: what the policy knows is to be tried anew.
    """
    actor = self.alg.get_policy()
    std = actor.get_parameter("distribution.std_param")
    own = std.detach().clone()
    self.alg.load(saved, {"actor": True, "critic": True}, strict=True)
    std.data.copy_(own)

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
