"""jumper.tripod: walk on three feet while the other three swing, by a clock of 3.125 Hz."""

from mjrl.envs.gaits import Gait
from mjrl.envs.task import Task
from mjrl.tasks.jumper.walking import clock_rewards, walk

TRIPOD = Gait(
  name="tripod",
  swing_steps=8,
  groups=(("LF", "RM", "LR"), ("RF", "LM", "RR")),
  mirror=(-1, -1),  # mirrored, a tripod is itself half a cycle later
)


def task() -> Task:
  """The page."""
  return walk(
    "jumper.tripod",
    gait=TRIPOD,
    gait_rewards=clock_rewards(enough_n=5.0, max_contact_s=1.0),
    linear_m_s=0.5,  # 0.08 m per step of 3.125 Hz / a duty factor of 1/2
    angular_rad_s=0.75,
    standing_pose_rad=(0.20, 0.10),
  )
