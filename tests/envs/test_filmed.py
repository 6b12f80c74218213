"""Frames of an env: when they are taken, and of what."""

import numpy as np
import torch

from mjrl.envs.filmed import Filming, subject_of
from mjrl.view.shot import MAX_TILES, Shot


class Frames:
  """Stands in for a film."""

  def __init__(self, shot):
    self.shot, self.taken = shot, []

  @property
  def frames(self):
    return len(self.taken)

  def add(self, frame):
    self.taken.append(frame)


def test_a_film_plays_in_real_time(calm, make_env, tmp_path):
  # Guards: a frame a step whatever the rate, and pictures that change after they were taken.
  env = make_env(calm, num_envs=2)
  env.commands.fix(torch.tensor([[0.25, 0.0, 0.0], [0.0, 0.1, 0.0]]))
  env.reset()
  for fps, wanted in ((50.0, 51), (25.0, 26), (30.0, 31), (1.0, 2)):
    film = Frames(Shot(path=tmp_path, width=64, height=64, fps=fps, camera="side"))
    filming = Filming(env, film, "a title")
    for _ in range(50):
      env.step(torch.zeros(2, 20))
      filming.step(torch.zeros(2, dtype=torch.bool))
    assert film.frames == wanted, fps
  assert not np.array_equal(film.taken[0].qpos, film.taken[1].qpos)
  first, second = film.taken[-1].lines
  assert "env 0" in first[0] and "+0.25" in first[2] and "+0.10" in second[2]


def test_a_new_episode_is_told(calm, make_env, tmp_path):
  # Guards: a camera that looks where the robot was headed before it fell.
  env = make_env(calm, num_envs=3)
  film = Frames(Shot(path=tmp_path, width=64, height=64, fps=25.0, camera="side"))
  filming = Filming(env, film, "a title")
  env.step(torch.zeros(3, 20))
  filming.step(torch.tensor([False, True, False]))  # in between two frames
  for _ in range(3):
    env.step(torch.zeros(3, 20))
    filming.step(torch.zeros(3, dtype=torch.bool))
  assert [f.began.tolist() for f in film.taken] == [
    [True, True, True],
    [False, True, False],
    [False, False, False],
  ]


def test_a_picture_has_room_for_some(calm, make_env):
  # Guards: a film of 64 robots, each a few pixels wide.
  assert subject_of(make_env(calm, num_envs=20)).tiles == MAX_TILES
  assert subject_of(make_env(calm, num_envs=2)).tiles == 2
