"""jumper.flat: walk at a commanded velocity with whatever gait does it best."""

from mjrl.envs.task import Task, reward
from mjrl.envs.terms import rewards
from mjrl.tasks.jumper.walking import walk


def task() -> Task:
  """The page."""
  return walk(
    "jumper.flat",
    gait=None,
    # Of no weight in the task: the recipe eases the start with it.
    gait_rewards={"air_time": reward(0.0, rewards.air_time, min_s=0.06, max_s=0.3)},
    linear_m_s=0.8,
    angular_rad_s=1.0,
    standing_pose_rad=(0.10, 0.05),
  )
