"""Films of the policy while it learns, made beside the run: they change nothing that is learned.

A film is played in envs of its own, from the same world and with the same random numbers each time,
so that what differs between two of them is the policy.  It is drawn in a process of its own, while
the run goes on.  One that fails costs a line.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import mujoco
import torch

from mjrl.envs.curriculum import as_on_last_rung
from mjrl.envs.env import Env
from mjrl.envs.filmed import Filming, subject_of
from mjrl.envs.policy import Policy, advance
from mjrl.envs.task import Task
from mjrl.learn.failures import Failures
from mjrl.learn.options import Options
from mjrl.learn.sinks import Sink
from mjrl.sim.open import open_backend
from mjrl.sim.resolve import Resolved
from mjrl.view.film import Film
from mjrl.view.shot import CAMERA, FPS, SECONDS, SIZE, shot

FOLDER = "videos"
_NUM_ENVS = 1  # each has to be drawn, which takes a CPU about as long as it plays
_LAST_S, _STOPPED_S = 300.0, 20.0  # for which a run that ends, or is stopped, waits for its films
_WHAT = "make a film"


def num_film_envs(options: Options) -> int:
  """Envs that films are played in."""
  return _NUM_ENVS if options.video_every else 0


def open_film_env(
  task: Task,
  resolved: Resolved,
  model: mujoco.MjModel,
  seed: int,
  *,
  history: int | None,
  options: Options,
) -> Env | None:
  """The envs that films are played in, as those of an evaluation are; None where none are made."""
  if options.video_every is None:
    return None
  own = replace(resolved, num_envs=_NUM_ENVS, threads=min(resolved.threads, _NUM_ENVS))
  return Env(as_on_last_rung(task), open_backend(own, model), seed, history=history)


class Films:
  """Plays, hands over to be drawn, and shows what has been drawn meanwhile: one after the other."""

  def __init__(
    self, env: Env, folder: Path, options: Options, sinks: Sequence[Sink], failures: Failures
  ) -> None:
    """Keep the world as it is, for every film to start from.

    Args:
      env: newly built, and used for nothing else.
      folder: of the run.
      options: those of the run; its films are every `video_every` iterations, and of its last.
      sinks: what shows films.
      failures: of the run.
    """
    assert options.video_every is not None  # there is an env for films
    self._env, self._folder, self._every = env, folder / FOLDER, options.video_every
    self._library, self._sinks, self._failures = options.video_library, sinks, failures
    self._start = env.save()
    self._drawn: tuple[int, Film, Path] | None = None  # being drawn: of when, and its excerpt

  def due(self, iteration: int, last: int) -> bool:
    """Whether there is a film of `iteration`, in a run that ends with `last`."""
    return (iteration + 1) % self._every == 0 or iteration == last

  def shoot(
    self, policy: Policy, iteration: int, *, is_last: bool, stop: Callable[[], bool]
  ) -> None:
    """Play, and begin to draw; where a stop is asked for meanwhile, there is no film.

    The run does not wait for the film before, unless it is over anyway.
    """
    self.show(wait_s=_LAST_S if is_last else 0.0)
    try:
      if self._drawn:
        raise OSError("the one before is still being drawn; give a larger --video_every")
      self._shoot(policy, iteration, stop)
    except Exception as error:  # a film is never worth a run
      self._failed(error)

  def show(self, wait_s: float = 0.0) -> None:
    """Hand a film that is finished to the sinks.

    Args:
      wait_s: how long to wait for one that is not.
    """
    if self._drawn is None or (self._drawn[1].drawing and not wait_s):
      return
    (iteration, film, gif), self._drawn = self._drawn, None
    try:
      path = film.close(wait_s)
      for sink in self._sinks:
        sink.film(iteration, path, gif.read_bytes())
    except Exception as error:
      self._failed(error)
    finally:
      with suppress(OSError):
        gif.unlink()

  def close(self, stopped: bool) -> None:
    """Wait for the last one, not for long if the run was stopped."""
    self.show(wait_s=_STOPPED_S if stopped else _LAST_S)

  def _shoot(self, policy: Policy, iteration: int, stop: Callable[[], bool]) -> None:
    env = self._env
    path, gif = self._folder / f"iteration_{iteration}.mp4", self._folder / ".excerpt.gif"
    asked = shot(path, SIZE, min(FPS, 1 / env.dt_s), CAMERA, 1 / env.dt_s)
    film = Film(asked, subject_of(env), self._library, later=True, gif=gif)
    cuda = [torch.device(env.device)] if env.device.startswith("cuda") else []
    try:
      # Whoever draws in here, an event of the task, say, must not change what training draws next.
      with torch.inference_mode(), torch.random.fork_rng(cuda):
        if self._play(policy, film, stop):
          film.develop()
          self._drawn = iteration, film, gif
    finally:
      if not self._drawn:
        film.abandon()

  def _play(self, policy: Policy, film: Film, stop: Callable[[], bool]) -> bool:
    """Whether it was played to its end."""
    env = self._env
    env.load(self._start)
    policy.reset()
    observations = env.observations()
    filming = Filming(env, film, env.task.name)
    for _ in range(round(SECONDS / env.dt_s)):
      if stop():
        return False
      step = advance(env, policy, observations)
      observations = step.observations
      filming.step(step.terminated | step.timed_out)
    env.take_finished()  # and forget what else the env would log
    env.take_notes()
    env.end_iteration(0)
    return True

  def _failed(self, error: Exception) -> None:
    why = str(error) or type(error).__name__
    self._failures.add(_WHAT, why, f"could not {_WHAT}: {why}; the run goes on")
