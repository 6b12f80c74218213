"""How the walking tasks are learned on each engine."""

from dataclasses import replace

from mjrl.envs.task import Anneal, Recipe

_WARP = Recipe(
  num_envs=4096,
  rollout_steps=24,
  max_iterations=10_000,
  save_every=50,
  actor_hidden=(512, 256, 128, 64),
  critic_hidden=(512, 256, 128, 64),
  activation="elu",
  init_std=1.0,
  min_std=0.05,
  epochs=5,
  mini_batches=4,
  learning_rate=1e-3,
  desired_kl=0.01,
  gamma=0.99,
  lam=0.95,
  clip=0.2,
  value_coef=1.0,
  clip_value_loss=True,
  entropy_coef=0.01,
  max_grad_norm=1.0,
  mirror_augmentation=True,
  mirror_coef=1.0,
  bootstrap="terminal",
  history=None,
  curriculum={},
)

_ITERATIONS = 1200
_EASED_UNTIL = 1000
_FADE = 100

_NATIVE = replace(
  _WARP,
  num_envs=128,
  max_iterations=_ITERATIONS,
  actor_hidden=(128, 128),
  critic_hidden=(128, 128),
  init_std=0.5,
  epochs=4,
  learning_rate=5e-4,
  desired_kl=0.03,
  gamma=0.97,
  clip_value_loss=False,
  entropy_coef=0.003,
  mirror_augmentation=False,
  mirror_coef=0.0,
  history=1,
  curriculum={
    # With three feet wrong, the task's kernel is flat; this one follows the feet that are.
    "gait_width": Anneal(
      path="rewards.gait.width_feet",
      easy=2.0,
      metric="wrong_feet",
      initial=3.0,
      start=2.0,
      done=0.7,
      smoothing=0.1,
      fade_iterations=_FADE,
      until_iteration=_EASED_UNTIL,
    ),
    # Marching on the spot pays well; once there is a gait, speed has to pay more.
    "speed_weight": Anneal(
      path="rewards.track_linear_velocity.weight",
      easy=6.0,
      metric="wrong_feet",
      initial=3.0,
      start=1.3,
      done=1.9,
      smoothing=0.1,
      fade_iterations=_FADE,
      until_iteration=_EASED_UNTIL,
    ),
    # Kernels as wide as the error is, so that there is a slope to follow from standing still.
    "speed_width": Anneal(
      path="rewards.track_linear_velocity.std_m_s",
      easy=0.5,
      metric="linear_error_m_s",
      initial=0.5,
      start=0.5,
      done=0.125,
      smoothing=0.1,
      fade_iterations=_FADE,
      until_iteration=_EASED_UNTIL,
    ),
    "yaw_width": Anneal(
      path="rewards.track_angular_velocity.std_rad_s",
      easy=0.6,
      metric="angular_error_rad_s",
      initial=0.6,
      start=0.6,
      done=0.2,
      smoothing=0.1,
      fade_iterations=_FADE,
      until_iteration=_EASED_UNTIL,
    ),
  },
)

RECIPES = {"native": _NATIVE, "warp": _WARP}
"""Recipes of the tasks with a gait clock."""

RECIPES_WITHOUT_CLOCK = {
  "native": replace(
    _NATIVE,
    curriculum={k: row for k, row in _NATIVE.curriculum.items() if row.metric != "wrong_feet"},
  ),
  "warp": _WARP,
}
"""Recipes of the task without one: the same, less what a clock eases."""
