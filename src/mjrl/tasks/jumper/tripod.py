"""jumper.tripod: walk on three feet while the other three swing, by a clock of 3.125 Hz."""

from mjrl.envs.gaits import Gait
from mjrl.envs.task import Task, reward
from mjrl.envs.terms import rewards
from mjrl.tasks.jumper.walking import walk

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
    gait_rewards={
      "gait": reward(+1.0, rewards.gait, width_feet=0.7, max_air_s=0.5, max_contact_s=1.0),
      "stance_load": reward(+0.5, rewards.stance_load, enough_n=5.0),
      "standing_load": reward(+2.0, rewards.standing_load, enough_n=3.0),
      "stance_gap": reward(-0.5, rewards.stance_gap, max_m=0.05),
    },
    linear_m_s=0.5,  # 0.08 m per step of 3.125 Hz / a duty factor of 1/2
    angular_rad_s=0.75,
    rung_fractions=((0.5, 0.4), (0.7, 2 / 3), (1.0, 1.0)),
    standing_pose_rad=(0.20, 0.10),
  )
