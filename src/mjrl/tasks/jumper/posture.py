"""jumper.posture: walk as jumper.tripod does, and hold the body as asked while walking or standing.

Ours, against the reference: control at 50 Hz with a physics step of 5 ms, and the tripod's fixed
clock with the speeds that it allows (docs/jumper.md says why).
"""

from dataclasses import replace
from math import radians

from mjrl.envs.posture import PostureCommand, PostureLadder, PostureRange, PostureRung
from mjrl.envs.task import Task, obs, reward, term
from mjrl.envs.terms import metrics, observations, rewards
from mjrl.tasks.jumper.recipes import posture_recipes
from mjrl.tasks.jumper.tripod import TRIPOD
from mjrl.tasks.jumper.walking import clock_rewards, walk

WALKING = PostureRange(
  twist_rad=(-radians(15), radians(15)),
  pitch_rad=(-radians(15), radians(15)),
  roll_rad=(-radians(15), radians(15)),
  height_m=(0.07, 0.15),
)
PARKED = replace(
  WALKING,
  twist_rad=(-radians(30), radians(30)),
  pitch_rad=(-radians(20), radians(20)),
)
TILT_RAD, HEIGHT_M = radians(15), 0.04
"""What the kernels' widths are fractions of: the walking ranges."""


def task() -> Task:
  """The page."""
  tripod = walk(
    "jumper.posture",
    gait=TRIPOD,
    gait_rewards=clock_rewards(enough_n=5.0, max_contact_s=1.0),
    linear_m_s=0.5,
    angular_rad_s=0.75,
    standing_pose_rad=(0.60, 0.60),  # a posture is far from HOME
  )
  posture = {"posture": obs(observations.posture)}
  level = {"upright", "track_linear_velocity", "soft_landing"}
  linear = tripod.rewards["track_linear_velocity"]
  assert tripod.command is not None
  return replace(
    tripod,
    command=replace(tripod.command, standing=0.3),
    commands={
      "posture": PostureCommand(parked=PARKED, walking=WALKING, hold_s=(3.0, 8.0), neutral=0.2)
    },
    ladders={"posture": _ladder()},
    observations={group: {**rows, **posture} for group, rows in tripod.observations.items()},
    rewards={
      "track_linear_velocity": replace(linear, fn=rewards.track_planar_velocity),
      **{name: row for name, row in tripod.rewards.items() if name not in level},
      "track_twist": reward(+1.0, rewards.track_twist, std_rad=0.5 * TILT_RAD),
      "track_tilt": reward(+1.0, rewards.track_tilt, std_rad=0.5 * TILT_RAD),
      "track_height": reward(+1.0, rewards.track_height, std_m=0.5 * HEIGHT_M),
    },
    metrics={
      **tripod.metrics,
      "twist_error_rad": term(metrics.twist_error),
      "tilt_error_rad": term(metrics.tilt_error),
      "height_error_m": term(metrics.height_error),
    },
    recipes=posture_recipes(TRIPOD),
  )


def _ladder() -> PostureLadder:
  """Half, two thirds and all of the ranges, and a last rung that asks for precision."""
  rungs = [(1 / 2, 1 / 4), (2 / 3, 1 / 3), (1.0, 1 / 2), (1.0, 1 / 4)]
  return PostureLadder(
    rungs=tuple(
      PostureRung(
        fraction=fraction,
        twist_std_rad=width * TILT_RAD,
        tilt_std_rad=width * TILT_RAD,
        height_std_m=width * HEIGHT_M,
      )
      for fraction, width in rungs
    ),
    twist="track_twist",
    tilt="track_tilt",
    height="track_height",
    bar_base_rad=radians(1.5),
    bar_base_m=0.002,
    bar_slope=0.15,
    dwell_steps=2400,
    min_holds=64,
    smoothing=0.05,
  )
