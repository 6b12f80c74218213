"""An `Env` as rsl_rl sees it."""

import torch
from tensordict import TensorDict
from torch import Tensor

from mjrl.envs.env import Env
from mjrl.learn.rsl import VecEnv


class RslEnv(VecEnv):
  """Hands observations over as a TensorDict, and the terminal ones of time-outs beside them."""

  def __init__(self, env: Env) -> None:
    """Wrap an environment."""
    self.env = env
    self.num_envs = env.num_envs
    self.num_actions = len(env.robot.gait_joints)
    self.max_episode_length = env.task.episode_steps
    self.device = env.device
    self.cfg = {}

  @property
  def episode_length_buf(self) -> Tensor:
    """Control steps since each episode's start, (N,)."""
    return self.env.episode_steps

  @episode_length_buf.setter
  def episode_length_buf(self, value: Tensor) -> None:
    self.env.episode_steps = value

  def get_observations(self) -> TensorDict:
    """The current observations; reading changes nothing."""
    return self._pack(self.env.observations())

  def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict]:
    """One control step.

    The last item holds "time_outs" (N,) bool and, where there are any, "terminal": the observations
    on which those episodes ended.
    """
    step = self.env.step(actions)
    extras: dict = {"time_outs": step.timed_out}
    if step.terminal is not None:
      extras["terminal"] = self._pack(step.terminal)
    return self._pack(step.observations), step.reward, step.terminated | step.timed_out, extras

  def _pack(self, groups: dict[str, Tensor]) -> TensorDict:
    return TensorDict(groups, batch_size=[self.num_envs], device=torch.device(self.device))
