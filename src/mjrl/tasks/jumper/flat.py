"""jumper.flat: walk at a commanded velocity with whatever gait does it best."""

from mjrl.envs.task import Task
from mjrl.tasks.jumper.walking import walk


def task() -> Task:
  """The page."""
  return walk(
    "jumper.flat",
    gait=None,
    gait_rewards={},
    linear_m_s=0.8,
    angular_rad_s=1.0,
    standing_pose_rad=(0.10, 0.05),
  )
