"""The policy of a checkpoint, alone: what replays and measurements need."""

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from mjrl.envs.env import Env
from mjrl.envs.policy import Policy
from mjrl.learn.rsl import MLPModel, resolve_class
from mjrl.learn.rsl_config import actor_config


class NetworkPolicy:
  """Acts by the mean of a policy network.

  What it remembers is its own: a network in training that acts elsewhere in between, with another
  number of envs, goes on with its memory of training.
  """

  def __init__(self, network: MLPModel) -> None:
    """Remember nothing yet."""
    self._network = network
    self._memory = None

  def __call__(self, observations: Mapping[str, Tensor]) -> Tensor:
    """Observation groups, (N, width) each, to the action, (N, G)."""
    seen = observations["policy"]
    with torch.inference_mode():
      of_others = self._network.get_hidden_state()
      self._network.reset(hidden_state=self._memory)
      action = self._network(TensorDict({"policy": seen}, batch_size=[seen.shape[0]]))
      self._memory = self._network.get_hidden_state()
      self._network.reset(hidden_state=of_others)
    return action

  def reset(self, ended: Tensor | None = None) -> None:
    """Forget the episodes that ended, (N,) bool; None forgets all, and N may be another then."""
    if ended is None or self._memory is None:
      self._memory = None
    elif isinstance(self._memory, tuple):  # of an LSTM
      hidden, cell = self._memory
      self._memory = _forget(hidden, ended), _forget(cell, ended)
    else:
      self._memory = _forget(self._memory, ended)


def load_policy(saved: Mapping[str, Any], env: Env) -> Policy:
  """The deterministic policy of a checkpoint.

  Raises:
    ValueError: its inputs or outputs are not those of the environment.
  """
  return NetworkPolicy(load_network(saved, env))


def load_network(saved: Mapping[str, Any], env: Env) -> MLPModel:
  """The network that the policy of a checkpoint acts by.

  Raises:
    ValueError: its inputs or outputs are not those of the environment.
  """
  observations = {"policy": env.observations()["policy"]}
  network_class, config = resolve_class(actor_config(saved["recipe"]))
  network = network_class(
    TensorDict(observations, batch_size=[env.num_envs]),
    {"actor": ["policy"]},
    "actor",
    len(env.robot.gait_joints),
    **config,
  )
  try:
    network.load_state_dict(saved["actor_state_dict"])
  except RuntimeError as error:
    reason = str(error).splitlines()[-1].strip()
    raise ValueError(
      f"the checkpoint's policy does not fit task {env.task.name}: {reason}"
    ) from error
  return network.eval().to(env.device)


def _forget(state: Tensor, ended: Tensor) -> Tensor:
  """A state, (layers, N, hidden), with that of the masked envs at zero, as episodes begin."""
  return state.masked_fill(ended[:, None], 0.0)
