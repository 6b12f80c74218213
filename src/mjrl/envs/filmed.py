"""Filming an env while it is stepped."""

import numpy as np
from torch import Tensor

from mjrl.envs.env import Env
from mjrl.view.caption import Captions
from mjrl.view.film import Film, Frame, Subject
from mjrl.view.shot import MAX_TILES


def subject_of(env: Env) -> Subject:
  """The env's robots, as many of them as a picture has room for."""
  return Subject(
    model=env.backend.model,
    base_body=env.robot.base_body,
    home_height_m=env.robot.home_height_m,
    tiles=min(env.num_envs, MAX_TILES),
  )


class Filming:
  """Takes a frame of an env whenever one is due, so that the film plays in real time."""

  def __init__(self, env: Env, film: Film, title: str) -> None:
    """Take the first frame, of the env as it is.

    Args:
      env: that is stepped.
      film: that frames are added to.
      title: of a picture of one robot; several are called by their numbers.
    """
    self._env, self._film = env, film
    tiles = min(env.num_envs, MAX_TILES)
    names = [title] if tiles == 1 else [f"env {k}" for k in range(tiles)]
    self._captions = Captions(env.dt_s, names)
    self._began = np.ones(tiles, bool)
    self._steps = 0
    self._look()

  def step(self, ended: Tensor) -> None:
    """See the env after a control step, in which the episodes of `ended`, (N,) bool, were over.

    Raises:
      OSError: the film cannot go on.
    """
    self._steps += 1
    self._began |= ended[: len(self._began)].cpu().numpy()
    self._look()

  def _look(self) -> None:
    env, tiles = self._env, len(self._began)
    time_s = self._steps * env.dt_s
    self._captions.add(env.state.velocity[:tiles].cpu().numpy())
    if time_s * self._film.shot.fps < self._film.frames - 1e-6:
      return
    command = env.state.command[:tiles].cpu().numpy() if env.task.command else None
    self._film.add(
      Frame(
        qpos=env.backend.read("qpos")[:tiles].cpu().numpy().copy(),
        began=self._began.copy(),
        lines=self._captions.lines(time_s, command),
      )
    )
    self._began[:] = False
