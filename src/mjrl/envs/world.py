"""What events act on: the engine, the robot in it, and where the next episode starts."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from mjrl.envs.tiles import Tiles
from mjrl.robots.robot import Robot
from mjrl.sim.backend import Backend


@dataclass(frozen=True, kw_only=True)
class World:
  """N envs as their events see them.

  rng               the stream that every draw of the environment comes from
  start_qpos        (N, nq) where the next episode of each env starts;  start_qvel (N, nv)
  encoder_bias_rad  (N, J) what the encoders read too much
  tiles             where each env lives on rough ground; None where the ground is flat
  """

  backend: Backend
  robot: Robot
  rng: Generator
  start_qpos: Tensor
  start_qvel: Tensor
  encoder_bias_rad: Tensor
  tiles: Tiles | None = None

  @property
  def num_envs(self) -> int:
    """N."""
    return self.backend.num_envs

  def uniform(self, low: float, high: float, *shape: int) -> Tensor:
    """Uniform draws in [low, high), (N, *shape)."""
    draw = torch.empty(self.num_envs, *shape, device=self.backend.device)
    return draw.uniform_(low, high, generator=self.rng)
