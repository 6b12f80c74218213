"""The policy of a checkpoint, alone: what replays and measurements need."""

from collections.abc import Mapping
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from mjrl.envs.env import Env, Policy
from mjrl.learn.rsl import MLPModel


def load_policy(saved: Mapping[str, Any], env: Env) -> Policy:
  """The deterministic policy of a checkpoint.

  Raises:
    ValueError: its inputs or outputs are not those of the environment.
  """
  recipe = saved["recipe"]
  observations = {"policy": env.observations()["policy"]}
  model = MLPModel(
    TensorDict(observations, batch_size=[env.num_envs]),
    {"actor": ["policy"]},
    "actor",
    len(env.robot.gait_joints),
    hidden_dims=recipe["actor_hidden"],
    activation=recipe["activation"],
    obs_normalization=True,
    distribution_cfg={"class_name": "GaussianDistribution", "init_std": recipe["init_std"]},
  )
  try:
    model.load_state_dict(saved["actor_state_dict"])
  except RuntimeError as error:
    reason = str(error).splitlines()[-1].strip()
    raise ValueError(
      f"the checkpoint's policy does not fit task {env.task.name}: {reason}"
    ) from error
  model.eval().to(env.device)

  def act(groups: Mapping[str, Tensor]) -> Tensor:
    with torch.inference_mode():
      return model(TensorDict({"policy": groups["policy"]}, batch_size=[groups["policy"].shape[0]]))

  return act
