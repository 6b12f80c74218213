"""Who drives: a trained policy, nobody, or chance."""

import torch

from mjrl.envs.env import Env, Policy

AGENTS = ("trained", "zero", "random")


def zero(env: Env) -> Policy:
  """The action that asks for HOME."""
  action = torch.zeros(env.num_envs, len(env.robot.gait_joints), device=env.device)
  return lambda _: action


def random(env: Env, seed: int) -> Policy:
  """Uniform actions in [-1, 1)."""
  rng = torch.Generator(env.device).manual_seed(seed)
  shape = (env.num_envs, len(env.robot.gait_joints))
  return lambda _: 2 * torch.rand(shape, generator=rng, device=env.device) - 1
