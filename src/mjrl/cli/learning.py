"""The learning numbers that have a flag of their own: short names for what `--set` reaches too."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from mjrl.cli.changes import Layer
from mjrl.cli.flags import TrainFlags
from mjrl.envs.recipe import Recipe

# Flag, as `TrainFlags` has it, to the path of the number that it is.
PATHS: Mapping[str, str] = {
  "ppo_lr": "recipe.learning_rate",
  "ppo_schedule": "recipe.schedule",
  "ppo_optimizer": "recipe.optimizer",
  "ppo_gamma": "recipe.gamma",
  "ppo_lam": "recipe.lam",
  "ppo_clip": "recipe.clip",
  "ppo_entropy_coeff": "recipe.entropy_coef",
  "ppo_epochs": "recipe.epochs",
  "ppo_max_grad_norm": "recipe.max_grad_norm",
  "ppo_max_episode_s": "episode_s",
  "std_dev": "recipe.init_std",
  "learn_std": "recipe.learn_std",
  "mirror_coeff": "recipe.mirror_coef",
}
_MIRROR_COEF = 1.0  # where --mirror is given to a recipe that mirrors nothing


def learning_layers(
  flags: TrainFlags, given: Collection[str], recipe: Recipe, sets: Mapping[str, Any]
) -> list[Layer]:
  """The overrides that the flags stand for, each with its flag as the source.

  Args:
    flags: with settings and configuration applied.
    given: names of those that are not at their default.
    recipe: for the run's number of envs.
    sets: path to value, of every `--set`.

  Raises:
    ValueError: two flags, or a flag and a `--set`, give the same number, or one cannot be met.
  """
  found = {flag: {path: getattr(flags, flag)} for flag, path in PATHS.items() if flag in given}
  if flags.ppo_minibatch_size is not None:
    parts = _mini_batches(flags.ppo_minibatch_size, recipe)
    found["ppo_minibatch_size"] = {"recipe.mini_batches": parts}
  if "mirror" in given:
    found["mirror"] = _mirror(flags, recipe)
  layers = []
  for flag, values in found.items():
    for path in values:
      if path in sets:
        raise ValueError(
          f"{spelled(flag)} and --set {path} are the same number; leave one of them out"
        )
    layers.append(Layer(source=spelled(flag), values=values))
  return layers


def spelled(flag: str) -> str:
  """A flag as it is typed."""
  return "--" + (flag.replace("_", ".", 1) if flag.startswith("ppo_") else flag)


def _mini_batches(size: int, recipe: Recipe) -> int:
  samples = recipe.num_envs * recipe.rollout_steps
  if samples % size:
    near = max((k for k in range(1, size) if samples % k == 0), default=1)
    raise ValueError(
      f"--ppo.minibatch_size is {size}, and an iteration has {samples} samples "
      f"({recipe.num_envs} envs x {recipe.rollout_steps} steps), which it does not divide; "
      f"the next smaller one that does is {near}"
    )
  return samples // size


def _mirror(flags: TrainFlags, recipe: Recipe) -> dict[str, Any]:
  if not flags.mirror:
    if flags.mirror_coeff is not None:
      raise ValueError("--no-mirror and --mirror_coeff contradict each other; leave one out")
    return {"recipe.mirror_augmentation": False, "recipe.mirror_coef": 0.0}
  if flags.mirror_coeff is not None or recipe.mirror_coef > 0:
    return {}
  return {"recipe.mirror_coef": _MIRROR_COEF}


assert PATHS.keys() <= {field.name for field in fields(TrainFlags)}
