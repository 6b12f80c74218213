"""Evaluation during training: whole episodes of the policy's mean action, in envs of their own.

Every evaluation starts from the same world and the same random numbers, on the task itself: what
differs between two of them is the policy.  Each env has a quota of episodes, because the first N
episodes to end would be the short ones.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import torch
from torch import Tensor

from mjrl.envs.curriculum import as_on_last_rung
from mjrl.envs.env import Env, Step
from mjrl.envs.policy import Policy, advance
from mjrl.envs.scoring import Metrics
from mjrl.envs.task import Task
from mjrl.learn.distributed import summed
from mjrl.learn.moments import check_can_fire
from mjrl.learn.options import Options
from mjrl.names import nearest
from mjrl.sim.open import open_backend
from mjrl.sim.ranks import ALONE, Ranks
from mjrl.sim.resolve import Resolved

_OF_EPISODES = ("reward", "episode_length", "success")
_OF_THE_EVALUATION = ("episodes", "seconds")
_SPARE_STEPS = 10  # above what full episodes take, which is as much as any can


def scalar_names(task: Task) -> tuple[str, ...]:
  """What `best_metric` can be: the scalars that an evaluation of the task finds in its episodes.

  Raises:
    ValueError: a metric row whose name is one of the evaluation's own.
  """
  taken = [name for name in (*_OF_EPISODES, *_OF_THE_EVALUATION) if name in task.metrics]
  if taken:
    raise ValueError(
      f"{task.name}: metric {taken[0]!r} would be logged as eval/{taken[0]}, where an evaluation "
      "logs a number of its own; call the row something else"
    )
  failures = [f"failure/{name}" for name in (*task.terminations, "diverged")]
  terminal = [f"terminal/{name}" for name in task.metrics]
  return tuple(f"eval/{name}" for name in (*_OF_EPISODES, *failures, *task.metrics, *terminal))


def check_best_metric(task: Task, best_metric: str) -> None:
  """Refuse a metric by which no evaluation of the task could be the best.

  Raises:
    ValueError: with the nearest names that would do.
  """
  names = scalar_names(task)
  if best_metric not in names:
    raise ValueError(
      f"--best_metric {best_metric!r} is none of what an evaluation of {task.name} finds; "
      f"{nearest(best_metric, names)}"
    )


def check_evaluation(
  task: Task, every: int | None, best_metric: str, *, first: int, iterations: int
) -> None:
  """Refuse what no evaluation of a run could do.

  Args:
    task: that is to run, with its events.
    every: iterations between evaluations; None evaluates never.
    best_metric: of the best.
    first: iteration of the run.
    iterations: of the run.

  Raises:
    ValueError: no evaluation would come, could fire an event of the task, or could find the best.
  """
  check_can_fire(task.events, every)
  if every is None:
    return
  check_best_metric(task, best_metric)
  if (first + iterations) // every == first // every:
    raise ValueError(
      f"--eval_every {every}: this run ends with iteration {first + iterations - 1}, before the "
      f"first evaluation; give at most {iterations}, or leave it out"
    )


def num_eval_envs(options: Options, resolved: Resolved) -> int:
  """Envs of this process's evaluation: as many as training's, but hardly one without an episode."""
  if not options.eval_every:
    return 0
  return max(min(_share(options.num_eval_episodes, resolved.ranks), resolved.num_envs), 1)


def open_evaluation(
  task: Task,
  resolved: Resolved,
  model: mujoco.MjModel,
  seed: int,
  *,
  history: int | None,
  options: Options,
) -> "Evaluation | None":
  """The evaluation that the options ask for, in an engine batch of its own.

  Args:
    task: as it is trained; commands are drawn from its full ranges, no number is eased, and a
      ladder's widths are those of its last rung.
    resolved: engine, device, env count and threads of training.
    model: of the task's scene.
    seed: of every draw in it.
    history: frames of observation rows that keep several, in place of their own.
    options: those of the run.
  """
  if options.eval_every is None:
    return None
  num_envs = num_eval_envs(options, resolved)
  own = replace(resolved, num_envs=num_envs, threads=min(resolved.threads, num_envs))
  env = Env(as_on_last_rung(task), open_backend(own, model), seed, history=history)
  return Evaluation(
    env,
    every=options.eval_every,
    episodes=options.num_eval_episodes,
    best_metric=options.best_metric,
    ranks=resolved.ranks,
  )


class Evaluation:
  """Plays a fixed number of episodes, however the policy does in them.

  The processes of a distributed run share the episodes out, and all know what came of them.
  """

  def __init__(
    self, env: Env, *, every: int, episodes: int, best_metric: str, ranks: Ranks = ALONE
  ) -> None:
    """Keep the world as it is, for every evaluation to start from.

    Args:
      env: newly built, and used for nothing else.
      every: iterations between evaluations.
      episodes: complete ones of an evaluation, by all processes.
      best_metric: one of `scalar_names`; the highest is the best.
      ranks: this process's.
    """
    self.env, self.every, self.episodes, self.best_metric = env, every, episodes, best_metric
    self.quota = quota(_share(episodes, ranks), env.num_envs)
    self.step_limit = max(self.quota) * env.task.episode_steps + _SPARE_STEPS
    self._start = env.save()
    self._notes: list[str] = []

  def due(self, iteration: int, first: int, last: int) -> bool:
    """Whether to evaluate after `iteration`, of a run of iterations first..last.

    That is after every `every` iterations, counted on across resumes, and after the last of a run
    that has come by one of those: its final policy is evaluated too.
    """
    regular = (iteration + 1) % self.every == 0
    return regular or (iteration == last and (last + 1) // self.every > first // self.every)

  def run(
    self, policy: Policy, *, stop: Callable[[], bool], fire: Callable[..., None]
  ) -> dict[str, float] | None:
    """Evaluate.

    Args:
      policy: that is evaluated.
      stop: asked between control steps; True abandons the evaluation, of a process that is alone.
      fire: called with the names of the run's moments, see `mjrl.learn.moments`.

    Returns:
      Name to value, ready for the log; None where it was abandoned.
    """
    began = time.perf_counter()
    env, count = self.env, _Count(self.env, self.quota)
    cuda = [torch.device(env.device)] if env.device.startswith("cuda") else []
    # Whoever draws in here, an event of the task, say, must not change what training draws next.
    with torch.inference_mode(), torch.random.fork_rng(cuda):
      env.load(self._start)
      policy.reset()
      fire("eval_start")
      observations = env.observations()
      for _ in range(self.step_limit):
        if stop():
          return None
        step = advance(env, policy, observations)
        observations = step.observations
        count.add(step)
        fire("eval_step", step=step)
        if count.complete:
          break
      self._note(count.episodes)
      scalars = count.scalars(summed) | {"eval/seconds": time.perf_counter() - began}
      fire("eval_end", scalars=scalars)
    return scalars

  def better(
    self, scalars: dict[str, float], iteration: int, best: dict[str, Any] | None
  ) -> dict[str, Any] | None:
    """What the best is now, or None where it stays as it was.

    An evaluation that was cut short is not taken: what it counted are the short episodes.
    """
    value = scalars.get(self.best_metric, math.nan)
    if best is not None and best["metric"] == self.best_metric and not value > best["value"]:
      return None
    if not math.isfinite(value) or scalars["eval/episodes"] < self.episodes:
      return None
    return {"metric": self.best_metric, "value": value, "iteration": iteration}

  def take_notes(self) -> list[str]:
    """What went wrong since the last call, a line each."""
    notes, self._notes = self._notes, []
    return notes

  def _note(self, episodes: int) -> None:
    self._notes += [f"evaluation: {note}" for note in self.env.take_notes()]
    wanted = sum(self.quota)
    if episodes < wanted:
      self._notes.append(
        f"evaluation: cut short after {self.step_limit} control steps, with {episodes} of "
        f"{wanted} episodes complete: it cannot be the best"
      )
    self.env.take_finished()  # and forget what else the env would log
    self.env.end_iteration(0)


def quota(episodes: int, num_envs: int) -> list[int]:
  """Episodes that count of each env, as even as can be; they add up to `episodes`."""
  return [episodes // num_envs + (k < episodes % num_envs) for k in range(num_envs)]


def _share(episodes: int, ranks: Ranks) -> int:
  """Episodes of this process."""
  return quota(episodes, ranks.world_size)[ranks.rank]


class _Count:
  """What the episodes within the quotas have given so far."""

  def __init__(self, env: Env, quota: list[int]) -> None:
    """Count nothing yet."""
    task, n, device = env.task, env.num_envs, env.device
    self.episodes = 0
    self._success = task.success
    self._wanted = sum(quota)
    self._left = torch.tensor(quota, device=device)
    self._nobody = torch.zeros(n, dtype=torch.bool, device=device)
    self._return = torch.zeros(n, device=device)
    self._length = torch.zeros(n, device=device)
    failures = [f"failure/{name}" for name in (*task.terminations, "diverged")]
    self._sums = dict.fromkeys((*_OF_EPISODES, *failures), 0.0)
    self._metrics, self._terminal = Metrics(task.metrics, device), Metrics(task.metrics, device)

  @property
  def complete(self) -> bool:
    """Whether every env has filled its quota."""
    return self.episodes == self._wanted

  def add(self, step: Step) -> None:
    """Count a control step, and the episodes that ended with it."""
    counted = self._left > 0
    ended = step.terminated | step.timed_out
    diverged = step.failed.get("diverged", self._nobody)
    self._return += step.reward
    self._length += 1
    self._metrics.add(step.state, counted & ~diverged)
    done = ended & counted
    if done.any():
      self._terminal.add(step.state, done & ~diverged)
      self._end_episodes(step, done, self._succeeded(step) & ~diverged)
    self._return.masked_fill_(ended, 0.0)
    self._length.masked_fill_(ended, 0.0)

  def _succeeded(self, step: Step) -> Tensor:
    if self._success is None:
      return step.timed_out
    return self._success.fn(step.state, **self._success.params)

  def _end_episodes(self, step: Step, done: Tensor, success: Tensor) -> None:
    values = {"reward": self._return, "episode_length": self._length, "success": success}
    values |= {f"failure/{name}": mask for name, mask in step.failed.items()}
    for name, value in values.items():
      self._sums[name] += float(value[done].sum())
    self._left -= done.long()
    self.episodes += int(done.sum())

  def scalars(self, pool: Callable[[Tensor], Tensor]) -> dict[str, float]:
    """Means over the episodes and their steps, by their names in the log.

    Args:
      pool: adds up what several processes have summed.
    """
    mine = torch.tensor([*self._sums.values(), self.episodes], dtype=torch.float64)
    *sums, episodes = pool(mine).tolist()
    found: dict[str, float] = {}
    if episodes:
      found |= {name: total / episodes for name, total in zip(self._sums, sums, strict=True)}
    found |= self._metrics.drain(pool)
    found |= {f"terminal/{name}": value for name, value in self._terminal.drain(pool).items()}
    found["episodes"] = int(episodes)
    return {f"eval/{name}": value for name, value in found.items()}
