"""A recipe in rsl_rl's words."""

from collections.abc import Mapping
from typing import Any

from mjrl.envs.describe import describe
from mjrl.envs.env import Env
from mjrl.envs.mirror import augmentation
from mjrl.envs.recipe import Recipe


def rsl_config(recipe: Recipe, env: Env) -> dict[str, Any]:
  """The nested dict that rsl_rl's runner takes; a new one each time, since it writes into it."""
  described = describe(recipe)
  mirrored = recipe.mirror_augmentation or recipe.mirror_coef > 0
  actor = actor_config(described)
  actor["distribution_cfg"]["learn_std"] = recipe.learn_std
  return {
    "num_steps_per_env": recipe.rollout_steps,
    "save_interval": recipe.save_every,
    "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
    "check_for_nan": False,  # the environment has looked
    "actor": actor,
    "critic": _network(described) | {"hidden_dims": recipe.critic_hidden},
    "algorithm": {
      "class_name": "mjrl.learn.ppo:Ppo",
      "bootstrap": recipe.bootstrap,
      "min_std": recipe.min_std,
      "num_learning_epochs": recipe.epochs,
      "num_mini_batches": recipe.mini_batches,
      "learning_rate": recipe.learning_rate,
      "optimizer": recipe.optimizer,
      "schedule": "adaptive" if recipe.schedule == "adaptive" else "fixed",
      "desired_kl": recipe.desired_kl,
      "gamma": recipe.gamma,
      "lam": recipe.lam,
      "clip_param": recipe.clip,
      "value_loss_coef": recipe.value_coef,
      "use_clipped_value_loss": recipe.clip_value_loss,
      "entropy_coef": recipe.entropy_coef,
      "max_grad_norm": recipe.max_grad_norm,
      # rsl_rl runs the mirrored forward pass whenever this is set, even at coefficient zero.
      "symmetry_cfg": {
        "data_augmentation_func": augmentation(env),
        "use_data_augmentation": recipe.mirror_augmentation,
        "use_mirror_loss": recipe.mirror_coef > 0,
        "mirror_loss_coeff": recipe.mirror_coef,
      }
      if mirrored
      else None,
    },
  }


def actor_config(recipe: Mapping[str, Any]) -> dict[str, Any]:
  """The policy's network, of a recipe as `describe` gives it: what a checkpoint holds."""
  return _network(recipe) | {
    "hidden_dims": recipe["actor_hidden"],
    "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": recipe["init_std"]},
  }


def _network(recipe: Mapping[str, Any]) -> dict[str, Any]:
  shared = {"activation": recipe["activation"], "obs_normalization": True}
  memory = recipe["memory"]
  if memory is None:
    return {"class_name": "MLPModel"} | shared
  return {
    "class_name": "RNNModel",
    "rnn_type": memory["kind"],
    "rnn_hidden_dim": memory["hidden"],
    "rnn_num_layers": memory["layers"],
  } | shared
