"""How the walking tasks are learned on each engine."""

from dataclasses import replace
from functools import partial

from mjrl.envs.gaits import Gait
from mjrl.envs.recipe import Anneal, Recipe

_WARP = Recipe(
  num_envs=4096,
  rollout_steps=24,
  max_iterations=10_000,
  save_every=50,
  actor_hidden=(512, 256, 128, 64),
  critic_hidden=(512, 256, 128, 64),
  activation="elu",
  memory=None,
  init_std=1.0,
  min_std=0.05,
  learn_std=True,
  epochs=5,
  mini_batches=4,
  optimizer="adam",
  learning_rate=1e-3,
  schedule="adaptive",
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

# On a few cores it is iterations that count, not samples: everything here makes one cheaper, or
# makes more of it.
_NATIVE = replace(
  _WARP,
  num_envs=128,
  max_iterations=1500,
  actor_hidden=(128, 128),  # a quarter of the large ones' learning time
  critic_hidden=(128, 128),
  history=1,  # 91 inputs instead of 411
  epochs=4,
  init_std=0.5,
  entropy_coef=0.003,
  desired_kl=0.03,  # at 0.01 the std did not move from where it started
  learning_rate=5e-4,
  gamma=0.97,  # two thirds of a second, two cycles of the gait
  clip_value_loss=False,  # returns are near 5, and a clip of 0.2 may hold the critic back
  mirror_augmentation=False,  # twice the samples, and not fewer iterations
  mirror_coef=0.0,
)


def recipes(gait: Gait | None) -> dict[str, Recipe]:
  """Engine to the recipe of a walking task by this clock, or of one without a clock."""
  eased = _EASED | (_eased_by(gait) if gait else _UNCLOCKED)
  return {"native": replace(_NATIVE, curriculum=eased), "warp": _WARP}


def posture_recipes(gait: Gait) -> dict[str, Recipe]:
  """Engine to the recipe of a task that asks for a posture beside a walk by this clock."""
  tripod = recipes(gait)
  native = tripod["native"]
  return {**tripod, "native": replace(native, curriculum={**native.curriculum, **_POSTURE})}


def _anneal(
  path: str, easy: float, *, metric: str, initial: float, start: float, done: float
) -> Anneal:
  return Anneal(
    path=path,
    easy=easy,
    metric=metric,
    initial=initial,
    start=start,
    done=done,
    smoothing=0.1,
    fade_iterations=200,
    until_iteration=900,
  )


# With small networks and few envs, standing still is learned long before the first step: nothing
# rewards a foot that moves until most of them move together.  So for the first 900 iterations ...
_EASED = {
  # ... the speed kernel is as wide as the error is;
  "speed_width": _anneal(
    "rewards.track_linear_velocity.std_m_s",
    0.5,
    metric="linear_error_m_s",
    initial=0.5,
    start=0.5,
    done=0.125,
  ),
}


def _by_speed(path: str, easy: float, *, start: float, done: float) -> Anneal:
  """Easy while the robot is slow, the task's own once it goes where the command says."""
  return _anneal(path, easy, metric="linear_error_m_s", initial=0.5, start=start, done=done)


# Without a clock nothing says that feet should move, and until they move together each of them
# costs more in style than it brings in speed.
_UNCLOCKED = {
  # ... feet in the air are paid for, as long as they come down again;
  "air_time_weight": _by_speed("rewards.air_time.weight", 6.0, start=0.25, done=0.12),
  # ... and cost little, wherever they go;
  "swing_height_weight": _by_speed("rewards.swing_height.weight", -0.3, start=0.3, done=0.15),
  "clearance_weight": _by_speed("rewards.foot_clearance.weight", -0.5, start=0.3, done=0.15),
  "rate_weight": _by_speed("rewards.action_rate.weight", -0.05, start=0.3, done=0.15),
  "pose_weight": _by_speed("rewards.pose.weight", 0.3, start=0.3, done=0.15),
  # ... speed pays better than all of it.
  "speed_weight": _by_speed("rewards.track_linear_velocity.weight", 8.0, start=0.2, done=0.1),
  "yaw_weight": _by_speed("rewards.track_angular_velocity.weight", 3.0, start=0.2, done=0.1),
}

# Feet out of step, where they are other than in the tripod's recipe.  A robot that stands is out of
# step with three feet of a tripod's clock, and with two of a tetrapod's.  With a ripple's it is
# one, but thirds of the numbers are never reached there: at 12 switches in 12 steps, one step too
# early or late at each is a whole foot, and the robot marched on tiptoe and on the spot.
_WRONG_FEET_SCALE = {"tetrapod": 2 / 3}


# ... and once it goes somewhere, holding the body as asked pays as well: at the task's own weights,
# 350 iterations of walking had not begun to pitch or to roll.  From the first gait on is too early:
# postures came in 150 iterations, and after 900 the robot was as slow as after 250 without them.
_POSTURE = {
  f"{name}_weight": _anneal(
    f"rewards.track_{name}.weight",
    weight,
    metric="linear_error_m_s",
    initial=0.5,
    start=0.11,
    done=0.15,
  )
  for name, weight in (("twist", 3.0), ("tilt", 6.0), ("height", 4.0))
}


def _eased_by(gait: Gait) -> dict[str, Anneal]:
  """What eases the start by the feet that are out of step with the clock."""
  scale = _WRONG_FEET_SCALE.get(gait.name, 1.0)

  def by_wrong_feet(path: str, easy: float, *, start: float, done: float) -> Anneal:
    return _anneal(
      path,
      easy,
      metric="wrong_feet",
      initial=3.0 * scale,
      start=start * scale,
      done=done * scale,
    )

  # Easy while feet are out of step, the task's own once there is a gait.
  until_gait = partial(by_wrong_feet, start=2.0, done=1.0)
  # The task's own until there is a gait, and easy then: it is time to go somewhere.
  once_gait = partial(by_wrong_feet, start=1.3, done=1.9)
  return {
    # ... one foot in step is better than none, and stepping is not yet paid for in style;
    "gait_width": until_gait("rewards.gait.width_feet", 2.0 * scale),
    "swing_height_weight": until_gait("rewards.swing_height.weight", -0.5),
    # ... the gait is worth more the worse it is, so that speed is not bought with it;
    "gait_weight": by_wrong_feet("rewards.gait.weight", 4.0, start=2.0, done=0.5),
    # ... marching on the spot does not pay better than going where the command says;
    "speed_weight": once_gait("rewards.track_linear_velocity.weight", 8.0),
    "yaw_weight": once_gait("rewards.track_angular_velocity.weight", 3.0),
    "yaw_width": once_gait("rewards.track_angular_velocity.std_rad_s", 0.3),
    # ... and standing on six feet, as the robot starts, is not forgotten over walking on some.
    "standing_weight": once_gait("rewards.standing_load.weight", 6.0),
  }
