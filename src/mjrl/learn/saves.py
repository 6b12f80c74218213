"""What a run keeps of itself: checkpoints, the world beside the newest, and the best policy."""

import copy
from pathlib import Path
from typing import Any

import torch

from mjrl.envs.env import Env
from mjrl.learn import checkpoints, resume
from mjrl.learn.episodes import Episodes
from mjrl.learn.failures import BEST, CHECKPOINT, PRUNE, WORLD, Failures
from mjrl.learn.moments import without_run_events
from mjrl.learn.ppo import Ppo
from mjrl.sim.ranks import Ranks


class Saves:
  """Marks where a run could go on from, and writes it; of a distributed run, the first process.

  What cannot be written is said and counted in `failures`, and leaves what was there before.

  newest  the checkpoint that was written last, None before
  best    "metric", "value" and "iteration" of the best evaluation, None before
  """

  def __init__(
    self,
    folder: Path,
    identity: dict[str, Any],
    alg: Ppo,
    env: Env,
    episodes: Episodes,
    *,
    ranks: Ranks,
    failures: Failures,
    keep_last: int | None,
  ) -> None:
    """Nothing is marked yet.

    Args:
      folder: of the run.
      identity: plain values that every checkpoint carries, "task" and "recipe" among them.
      alg: networks and optimiser.
      env: that it learns in.
      episodes: that the log is of.
      ranks: which process of a distributed run this is.
      failures: of the run.
      keep_last: how many of the newest checkpoints to keep; None keeps all.
    """
    self._folder, self._identity = folder, identity
    self._alg, self._env, self._episodes = alg, env, episodes
    self._ranks, self._failures, self._keep_last = ranks, failures, keep_last
    self._written: list[Path] = []
    self._learned: dict[str, Any] = {}
    self._world: dict[str, Any] = {}
    self.newest: Path | None = None
    self.best: dict[str, Any] | None = None

  def mark(self, iteration: int, env_steps: int) -> None:
    """Take the world as it is: a run that is stopped within the next iteration goes on from it.

    Args:
      iteration: the last one that is done.
      env_steps: control steps of all envs so far.
    """
    self._learned = {
      "iteration": iteration,
      "env_steps": env_steps,
      "curriculum": self._env.save_curriculum(),
    }
    if self._ranks.alone:
      self._world = self._snapshot()
    elif self._ranks.first:
      self._learned |= copy.deepcopy(self._alg.save())

  @property
  def due(self) -> bool:
    """Whether what was marked last has no checkpoint yet."""
    if not self._learned:
      return False
    return (
      self.newest is None or checkpoints.iteration_of(self.newest) != self._learned["iteration"]
    )

  def save(self) -> Path | None:
    """Write `model_<marked iteration>.pt`, its world before it, and prune older ones.

    Returns:
      The file; None where it could not be written, or is another process's to write.
    """
    if not self._ranks.first:
      return None
    iteration = self._learned["iteration"]
    path = self._folder / f"model_{iteration}.pt"
    if self._ranks.alone:
      with self._failures.survived(WORLD):
        resume.write(self._folder, iteration, self._identity["backend"], self._world)
    with self._failures.survived(CHECKPOINT):
      checkpoints.write(path, self._content())
      self.newest = path
      self._written.append(path)
    if CHECKPOINT in self._failures.open:
      return None
    with self._failures.survived(PRUNE):
      resume.remove_others(self._folder, iteration)
      checkpoints.prune(self._written, self._keep_last or len(self._written))
    return path

  def save_best(self, best: dict[str, Any]) -> Path | None:
    """Write `model_best.pt`, of what is marked.

    Args:
      best: what the best is now; it stays what it was where it cannot be written.

    Returns:
      The file; None where it could not be written, or is another process's to write.
    """
    before, self.best = self.best, best
    if not self._ranks.first:
      return None
    path = self._folder / checkpoints.BEST
    with self._failures.survived(BEST):
      checkpoints.write(path, self._content())
      return path
    self.best = before
    return None

  def restore(self, saved: dict[str, Any], world: dict[str, Any] | None) -> None:
    """Take up networks, optimiser, curricula and the best of a checkpoint.

    Args:
      saved: the checkpoint.
      world: what `resume.read` gave; None lets the episodes start anew.
    """
    self._alg.load(saved, None, strict=True)
    self._env.load_curriculum(saved["curriculum"])
    # With another weight or noise, what was the best is of another scale.
    same = without_run_events(saved["task"]) == without_run_events(self._identity["task"])
    self.best = saved.get("best") if same else None
    if world is None:
      return
    self._env.load(world["env"])
    self._alg.load_memory(world["memory"])
    torch.set_rng_state(world["torch_rng"])
    if "cuda_rng" in world:
      torch.cuda.set_rng_state(world["cuda_rng"], self._env.device)
    self._episodes.load(world)

  def _content(self) -> dict[str, Any]:
    """What every checkpoint holds."""
    return {**self._alg.save(), **self._identity, **self._learned, "best": self.best}

  def _snapshot(self) -> dict[str, Any]:
    """The world as it is, what the networks remember of it, and what draws random numbers."""
    world = {
      "env": self._env.save(),
      "memory": self._alg.save_memory(),
      "torch_rng": torch.get_rng_state(),
      **self._episodes.save(),
    }
    if self._env.device.startswith("cuda"):
      world["cuda_rng"] = torch.cuda.get_rng_state(self._env.device)
    return world
