"""Who drives: a trained policy, nobody, or chance."""

import torch

from mjrl.envs.env import Env
from mjrl.envs.policy import Memoryless, Policy

AGENTS = ("trained", "zero", "random")


def zero(env: Env) -> Policy:
  """The action that asks for HOME."""
  action = torch.zeros(env.num_envs, len(env.robot.gait_joints), device=env.device)
  return Memoryless(lambda _: action)


def random(env: Env, seed: int) -> Policy:
  """Uniform actions in [-1, 1)."""
  rng = torch.Generator(env.device).manual_seed(seed)
  shape = (env.num_envs, len(env.robot.gait_joints))
  return Memoryless(lambda _: 2 * torch.rand(shape, generator=rng, device=env.device) - 1)
