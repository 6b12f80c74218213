import pytest
import torch

from mjrl.envs.footfalls import Footfalls
from mjrl.envs.state import State


def test_each_foot_has_its_own_time_and_landings():
  # Guards: a foot's numbers under another's name, a rate per env-step in place of per second, and
  # what an iteration counted in the next one's.
  falls = Footfalls(("LF", "RF"), "cpu", dt_s=0.02)
  down = torch.tensor([[1.0, 0.0], [1.0, 1.0]])  # of two envs
  landed = torch.tensor([[False, False], [True, False]])
  for _ in range(4):
    falls.add(State({"foot_contacts": down, "touchdown": landed}))
  assert falls.drain() == {
    "LF/duty": 1.0,
    "LF/landings_1_s": pytest.approx(4 / (8 * 0.02)),
    "RF/duty": 0.5,
    "RF/landings_1_s": 0.0,
  }
  assert falls.drain() == {}


def test_processes_count_together():
  # Guards: the first process's feet in the log of a run of several.
  falls = Footfalls(("LF",), "cpu", dt_s=0.5)
  falls.add(State({"foot_contacts": torch.ones(1, 1), "touchdown": torch.ones(1, 1).bool()}))

  def pool(sums):  # another process has seen as many steps, in the air
    return sums + torch.tensor([0.0, 0.0, 1.0])

  assert falls.drain(pool) == {"LF/duty": 0.5, "LF/landings_1_s": 1.0}


def test_an_env_counts_the_feet_of_its_robot(calm, make_env):
  # Guards: feet that are counted in no env, or of which a robot that stands lands all the time.
  env = make_env(calm)
  for _ in range(60):
    env.step(torch.zeros(4, len(env.robot.gait_joints)))
  log = env.end_iteration(0)
  assert [log[f"Feet/{foot}/duty"] > 0.7 for foot in env.robot.feet] == [True] * 6
  assert all(log[f"Feet/{foot}/landings_1_s"] < 5 for foot in env.robot.feet)
