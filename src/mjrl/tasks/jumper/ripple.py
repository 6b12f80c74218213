"""jumper.ripple: walk on five feet while one swings, by a clock of 25/6 Hz."""

from mjrl.envs.gaits import Gait
from mjrl.envs.task import Task
from mjrl.tasks.jumper.walking import clock_rewards, walk

RIPPLE = Gait(
  name="ripple",
  swing_steps=2,
  groups=(("LF",), ("RM",), ("LR",), ("RF",), ("LM",), ("RR",)),
  mirror=(-1, -1),  # mirrored, a ripple is itself half a cycle later
)


def task() -> Task:
  """The page."""
  return walk(
    "jumper.ripple",
    gait=RIPPLE,
    gait_rewards=clock_rewards(enough_n=3.0, max_contact_s=1.5),
    linear_m_s=0.4,  # 0.08 m per step of 25/6 Hz / a duty factor of 5/6
    angular_rad_s=0.6,
    standing_pose_rad=(0.10, 0.05),
  )
