"""Posture commands, what is measured of a body, and how a hold is judged."""

from dataclasses import replace
from math import cos, pi, radians, sin

import pytest
import torch

from mjrl import tasks
from mjrl.envs.curriculum import Ladder, as_on_last_rung
from mjrl.envs.mirror import Mirror
from mjrl.envs.posture import PostureCommand, PostureRange
from mjrl.envs.postures import Posture
from mjrl.envs.scoring import Rewards
from mjrl.envs.terms import rewards
from mjrl.robots.jumper import JUMPER

DT_S = 0.02
HOME_M = JUMPER.home_height_m
LEVEL = [0.0, 0.0, 0.0, HOME_M]
WALKING = PostureRange(
  twist_rad=(-0.2, 0.2), pitch_rad=(-0.1, 0.3), roll_rad=(-0.25, 0.25), height_m=(0.08, 0.15)
)
PARKED = PostureRange(
  twist_rad=(-0.5, 0.6), pitch_rad=(-0.2, 0.4), roll_rad=(-0.25, 0.25), height_m=(0.07, 0.16)
)


@pytest.fixture(scope="module")
def task():
  return tasks.build("jumper.posture")


def spec(**changes):
  given = {"parked": PARKED, "walking": WALKING, "hold_s": (3.0, 8.0), "neutral": 0.2}
  return PostureCommand(**given | changes)


def mask(n, value=True):
  return torch.full((n,), value)


def drawn(make_world, n=2000, **changes):
  posture = Posture(spec(**changes), make_world(n), DT_S)
  posture.draw(mask(n))
  return posture


def turned(axis, angle):
  """The base's x axis in the world and the world's z in the base, after a turn about an axis."""
  c, s = cos(angle), sin(angle)
  return {
    "x": {"forward_w": [1.0, 0.0, 0.0], "up_b": [0.0, s, c]},
    "y": {"forward_w": [c, 0.0, -s], "up_b": [-s, 0.0, c]},
    "z": {"forward_w": [c, s, 0.0], "up_b": [0.0, 0.0, 1.0]},
  }[axis]


@pytest.mark.parametrize(
  ("axis", "expected"), [("z", (0.3, 0, 0)), ("y", (0, 0.3, 0)), ("x", (0, 0, 0.3))]
)
def test_signs_are_those_of_a_turn_about_each_axis(standing, axis, expected):
  # Guards: a nose that goes up when it is asked down, a torso that turns the other way.
  s = standing(1, **turned(axis, 0.3))
  assert s.body_posture[0].tolist() == pytest.approx([*expected, 0.1], abs=1e-6)


def test_a_twist_is_of_the_base_over_its_feet(standing):
  # Guards: the heading of a robot that has turned as a whole, taken for a twist.
  def feet(angle, step_m=0.0):
    c, s = 0.1 * cos(angle), 0.1 * sin(angle)
    return [[5 + c + step_m, 2 + s, 0.0], [5 - c + step_m, 2 - s, 0.0]]

  for yaw in (-3.0, 0.5, 3.1):
    for heading in (yaw, yaw - 0.4):
      s = standing(1, forward_w=[cos(yaw), sin(yaw), 0.0], foot_pos_w=[feet(heading, 0.3)])
      assert s.twist_rad.item() == pytest.approx(yaw - heading, abs=1e-5)


def test_home_is_no_posture(task, make_env):
  # Guards: feet that are measured against another pattern than that of HOME.
  env = make_env(task)
  for _ in range(50):
    state = env.step(torch.zeros(4, 20)).state
  assert state.body_posture[:, :3].abs().max() < 0.03
  assert state.body_posture[:, 3] == pytest.approx([HOME_M] * 4, abs=0.01)


def test_a_share_is_asked_for_no_posture(make_world):
  # Guards: a share of 0 or of the rest; a level robot at the height 0.
  level = (drawn(make_world).value == torch.tensor(LEVEL)).all(1)
  assert 0.17 < level.float().mean() < 0.23


@pytest.mark.parametrize("moving", [False, True])
def test_postures_fill_the_range_of_who_stands_and_of_who_walks(make_world, standing, moving):
  # Guards: a side that is never asked for; a walking robot asked for what only a standing one can;
  # all numbers at their ends at once, where legs do not reach.
  n, of = 3000, WALKING if moving else PARKED
  posture = drawn(make_world, n, neutral=0.0)
  posture.set_ranges({"twist": 0.5, "tilt": 1.0, "height": 0.5})
  s = standing(n, command=[0.3 * moving, 0.0, 0.0], posture=posture.value)
  posture.advance(s, mask(n, False), mask(n, False), True)
  posture.draw(mask(n))
  fraction = torch.tensor([0.5, 1.0, 1.0, 0.5])
  ends = (torch.tensor(list(of.ends().values())).T - torch.tensor(LEVEL)) * fraction
  offset = posture.value - torch.tensor(LEVEL)
  torch.testing.assert_close(offset.amin(0), ends[0], atol=1e-3, rtol=0.12)
  torch.testing.assert_close(offset.amax(0), ends[1], atol=1e-3, rtol=0.12)
  share = torch.where(offset > 0, offset / ends[1], offset / ends[0])
  size = torch.linalg.vector_norm(share, dim=1)
  assert size.max() < 1 + 1e-4 and 0.8 < size.mean() < 1


def test_who_starts_or_stops_walking_gets_another_posture(make_world, standing):
  # Guards: a twist of 30 degrees held into a walk that was never trained with it.
  posture = drawn(make_world, 4, neutral=0.0)
  for moving, changes in ((0, False), (0, False), (1, True), (1, False), (0, True)):
    before = posture.value
    s = standing(4, command=[0.3 * moving, 0.0, 0.0], posture=before)
    posture.advance(s, mask(4, False), mask(4, False), True)
    assert (posture.value != before).all() == changes == (posture.value != before).any()


def judge(make_world, standing, posture_of, *, fell_at=None, asked=(0.2, 0.1, -0.1, 0.12)):
  """What became of one hold of 4 s, with the body at (pitch, height) of `posture_of(t)`."""
  posture = Posture(spec(hold_s=(4.0, 4.0)), make_world(2), DT_S)
  posture.draw(mask(2))
  posture.value = torch.tensor([asked] * 2)
  for k in range(200):
    pitch, height = posture_of(k * DT_S)
    given = turned("y", pitch) | {"base_pos_w": [0.0, 0.0, height]}
    s = standing(2, posture=posture.value, **given)
    fell = mask(2, k == fell_at)
    holds = posture.advance(s, fell, fell, True)
    if holds or k == fell_at:
      return holds
  return None


def test_a_hold_is_judged_by_its_mean_posture(make_world, standing):
  # Guards: a sway in step with the gait, or the way to a posture, taken for a miss of it.
  def sway(t):
    return (0.1 + 0.05 * sin(2 * pi * 3.125 * t), 0.12) if t > 0.49 else (-1.0, 0.0)

  holds = judge(make_world, standing, sway)
  assert holds.count == 2
  assert holds.errors["height"] == pytest.approx(0, abs=1e-3)
  assert holds.errors["twist"] == pytest.approx(0.2, abs=1e-3)
  assert holds.errors["tilt"] == pytest.approx(0.1, abs=3e-3)  # the roll that nobody did


def test_a_fall_is_no_tracking_at_all(make_world, standing):
  # Guards: a ladder climbed by robots that lean as asked until they fall.
  holds = judge(make_world, standing, lambda t: (0.1, 0.12), fell_at=40)
  assert holds.errors["tilt"] == pytest.approx(0.1 * 2**0.5)
  assert holds.errors["height"] == pytest.approx(0.12 - HOME_M, abs=1e-6)


def test_who_is_asked_for_no_posture_is_not_judged(make_world, standing):
  # Guards: a ladder climbed by robots that are level as asked.
  assert judge(make_world, standing, lambda t: (0.0, HOME_M), asked=LEVEL) is None


def test_a_fixed_posture_stays(make_world, standing):
  # Guards: a replay that is asked for something else when the robot starts to walk.
  posture = drawn(make_world, 4, hold_s=(0.1, 0.2))
  fixed = torch.tensor([[0.1, 0.0, 0.2, 0.1]]).repeat(4, 1)
  posture.fix(fixed)
  for k in range(30):
    s = standing(4, command=[0.3 * (k % 2), 0.0, 0.0], posture=fixed)
    posture.advance(s, mask(4, k == 7), mask(4, False), True)
    posture.draw(mask(4, k == 7))
    assert torch.equal(posture.value, fixed)


def test_what_is_saved_goes_on_the_same(make_world, standing):
  # Guards: a resumed run whose holds start anew.
  one, other = (drawn(make_world, 20, hold_s=(0.5, 1.5)) for _ in range(2))
  calm = mask(20, False)

  def step(posture, k):
    s = standing(20, command=[0.3 * (k > 20), 0.0, 0.0], posture=posture.value)
    return posture.advance(s, calm, calm, True)

  for k in range(37):
    step(one, k)
  other.load(one.save())
  other._world.rng.set_state(one._world.rng.get_state())
  found = [(step(one, k), step(other, k)) for k in range(37, 200)]
  assert all(mine == theirs for mine, theirs in found) and any(mine for mine, _ in found)
  assert torch.equal(one.value, other.value)


@pytest.mark.parametrize(
  ("bad", "says"),
  [
    ({"hold_s": (2.0, 1.0)}, r"posture hold_s is \(2.0, 1.0\): two times above 0, the shorter"),
    ({"neutral": 1.2}, r"posture neutral is 1.2: a share, from 0 to 1"),
  ],
)
def test_a_posture_that_cannot_be_drawn_is_refused(bad, says):
  # Guards: a range or a share mistyped on the page, found out by what a robot never does.
  with pytest.raises(ValueError, match=says):
    spec(**bad)


def test_a_range_without_the_level_robot_is_refused(make_world):
  # Guards: neutral envs that are asked for what is outside of the ranges.
  with pytest.raises(ValueError, match=r"posture roll_rad is \(0.1, 0.2\).* angles include 0"):
    PostureRange(twist_rad=(0, 0), pitch_rad=(0, 0), roll_rad=(0.1, 0.2), height_m=(0.1, 0.2))
  low = PostureRange(twist_rad=(0, 0), pitch_rad=(0, 0), roll_rad=(0, 0), height_m=(0.05, 0.1))
  with pytest.raises(ValueError, match=r"parked.height_m is \(0.05, 0.1\): it must include HOME's"):
    drawn(make_world, 4, parked=low)


def test_ranges_and_kernels_follow_the_rung(task, make_world):
  # Guards: a level in the log beside the ranges or the kernels of another.
  table = Rewards(task.rewards, 4, "cpu", DT_S, set())
  command = task.commands["posture"].build(make_world(3000), DT_S)
  ladder = Ladder(task.ladders["posture"], command, table)
  for level, rung in enumerate(task.ladders["posture"].rungs):
    ladder.go_to(level)
    widths = [table.numbers[f"track_{k}"] for k in ("twist", "tilt", "height")]
    assert [next(v for k, v in w.items() if k != "weight") for w in widths] == [
      rung.twist_std_rad,
      rung.tilt_std_rad,
      rung.height_std_m,
    ]
    command.draw(mask(3000))
    assert command.value[:, 2].abs().max() == pytest.approx(rung.fraction * radians(15), rel=0.1)
    assert ladder.log()["tilt_range_rad"] == pytest.approx(rung.fraction * radians(15))
  last = as_on_last_rung(task)
  assert last.rewards["track_tilt"].params == {"std_rad": rung.tilt_std_rad} and not last.ladders


def test_a_robot_that_takes_no_posture_fails_every_bar(task, make_world):
  # Guards: a ladder climbed by standing level.
  command = task.commands["posture"].build(make_world(3000), DT_S)
  ladder = Ladder(task.ladders["posture"], command, Rewards(task.rewards, 4, "cpu", DT_S, set()))
  for level in range(len(task.ladders["posture"].rungs)):
    ladder.go_to(level)
    command._moving = mask(3000)  # with the narrower ranges
    command.draw(mask(3000))
    miss = command.value - torch.tensor(LEVEL)
    miss = miss[(miss != 0).any(1)]
    tilt = torch.linalg.vector_norm(miss[:, 1:3], dim=1).mean()
    assert miss[:, 0].abs().mean() > 1.1 * ladder.bars["twist"]
    assert tilt > 1.1 * ladder.bars["tilt"]
    assert miss[:, 3].abs().mean() > 1.1 * ladder.bars["height"]


def test_a_mirrored_body_has_the_mirrored_posture(task, make_env, standing):
  # Guards: mirrored samples that ask for a lean to the wrong side.
  mirror = Mirror(make_env(task))
  column = 0
  for name, (width, frames) in make_env(task).observer.layout("policy").items():
    if name == "posture":
      break
    column += width * frames
  source, sign = (part[column : column + 4] for part in mirror.groups["policy"])
  yaw, up = 0.3, [0.2, 0.1, 0.95]
  s, image = (
    standing(1, forward_w=[cos(yaw), y * sin(yaw), 0.0], up_b=[up[0], y * up[1], up[2]])
    for y in (1, -1)
  )
  expected = s.body_posture[0, source - column] * sign
  assert (s.body_posture[0, :3].abs() > 0.05).all()
  torch.testing.assert_close(image.body_posture[0], expected)


def test_a_walk_with_the_nose_down_is_no_climb(standing):
  # Guards: a robot paid for its speed only while it keeps level.
  down = turned("y", 0.3)
  v = [0.5 * cos(0.3), 0.0, 0.5 * sin(0.3)]  # 0.5 m/s along the ground, seen from the base
  s = standing(1, lin_vel_b=[v], command=[v[0], 0.0, 0.0], **down)
  assert rewards.track_planar_velocity(s, std_m_s=0.1).item() == pytest.approx(1)
  level = standing(1, lin_vel_b=[[0.3, 0.1, 0.2]], command=[0.5, 0.0, 0.0])
  args = {"std_m_s": 0.4}
  torch.testing.assert_close(
    rewards.track_planar_velocity(level, **args), rewards.track_linear_velocity(level, **args)
  )


def test_each_posture_row_pays_for_its_own_number(standing):
  # Guards: a height in metres that is drowned by angles, or a roll that nobody pays for.
  s = standing(1, posture=[0.1, 0.2, -0.2, 0.13])
  found = [
    rewards.track_twist(s, std_rad=0.1).item(),
    rewards.track_tilt(s, std_rad=0.2).item(),
    rewards.track_height(s, std_m=0.01).item(),
  ]
  e = 2.718281828
  assert found == pytest.approx([e**-1, e**-2, e**-9], rel=1e-4)


def test_an_env_climbs_each_ladder_by_its_own_holds_and_keeps_both(task, make_env):
  # Guards: a posture ladder that nothing moves, that the velocity moves, or that a resumed run
  # starts anew.
  ladder = replace(
    task.ladders["posture"], dwell_steps=100, min_holds=1, bar_base_rad=9.0, bar_base_m=9.0
  )
  hold = replace(task.commands["posture"], hold_s=(1.1, 1.2), neutral=0.0)
  task = replace(task, ladders={"posture": ladder}, commands={"posture": hold})
  env = make_env(task)
  for _ in range(130):
    env.step(torch.zeros(4, 20))
  log = env.end_iteration(0)
  assert log["Curriculum/posture/level"] == 1 and log["Curriculum/command/level"] == 0
  other = make_env(task)
  other.load_curriculum(env.save_curriculum())
  assert other.ladders["posture"].log() == env.ladders["posture"].log()
  widths = [e.rewards.numbers["track_tilt"]["std_rad"] for e in (env, other)]
  assert widths == [ladder.rungs[1].tilt_std_rad] * 2
