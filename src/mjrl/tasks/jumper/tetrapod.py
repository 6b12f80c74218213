"""jumper.tetrapod: walk on four feet while two swing, by a clock of 25/6 Hz."""

from mjrl.envs.gaits import Gait
from mjrl.envs.task import Task
from mjrl.tasks.jumper.walking import clock_rewards, walk

TETRAPOD = Gait(
  name="tetrapod",
  swing_steps=4,
  groups=(("LF", "RR"), ("LM", "RM"), ("LR", "RF")),
  mirror=(-1, +1),  # mirrored, the pairs swing in the opposite order
)


def task() -> Task:
  """The page."""
  return walk(
    "jumper.tetrapod",
    gait=TETRAPOD,
    gait_rewards=clock_rewards(enough_n=3.7, max_contact_s=1.0),
    linear_m_s=0.5,  # 0.08 m per step of 25/6 Hz / a duty factor of 2/3
    angular_rad_s=0.75,
    standing_pose_rad=(0.10, 0.05),
  )
