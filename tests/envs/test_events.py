"""Events: what they draw reaches the engine, env by env."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.task import at_reset, at_startup, every
from mjrl.envs.terms import events

N = 4


def with_events(task, **more):
  return replace(task, events={"start": task.events["start"], **more})


def quiet(env, steps):
  for _ in range(steps):
    step = env.step(torch.zeros(env.num_envs, 20))
  return step


def everyone(env):
  return torch.ones(env.num_envs, dtype=torch.bool)


def differ(values):
  """Whether no two envs have the same."""
  return len(values.flatten(1).unique(dim=0)) == len(values)


def test_starts_are_drawn_within_their_ranges(calm, make_env):
  # Guards: robots in the ground, all on one spot, all heading the same way, or joints off HOME.
  params = calm.events["start"].params
  env = make_env(calm, num_envs=500)
  qpos, qvel = env.world.start_qpos, env.world.start_qvel
  assert 0.48 < qpos[:, :2].abs().max() <= params["spread_m"]
  lift = qpos[:, 2] - calm.robot.home_height_m
  assert 0.01 - 1e-6 <= lift.min() < 0.012 and 0.048 < lift.max() <= 0.05 + 1e-6
  yaw = 2 * torch.atan2(qpos[:, 6], qpos[:, 3])
  assert yaw.min() < -3 and yaw.max() > 3
  assert qpos[:, 4:6].eq(0).all() and qvel.eq(0).all()
  home = torch.tensor([calm.robot.home_rad[j] for j in calm.robot.joints])
  torch.testing.assert_close(qpos[:, 7:], home.expand(500, -1))
  torch.testing.assert_close(env.backend.read("qpos"), qpos)


def test_friction_reaches_the_feet_and_nothing_else(calm, make_env):
  # Guards: friction of the ground, which the feet's overrides; one value for all robots.
  env = make_env(
    with_events(calm, friction=at_startup(events.foot_friction, sliding=(0.5, 1.5))), num_envs=50
  )
  model = env.backend.model
  feet = [model.geom(f"{foot}_foot").id for foot in calm.robot.feet]
  others = [g for g in range(model.ngeom) if g not in feet]
  friction, default = env.backend.get_model("geom_friction"), env.backend.default("geom_friction")
  assert differ(friction[:, feet[:1], 0])
  assert friction[:, feet, 0].eq(friction[:, feet[:1], 0]).all()  # one for all feet of a robot
  assert 0.5 <= friction[:, feet, 0].min() < 0.6 and 1.4 < friction[:, feet, 0].max() <= 1.5
  assert torch.equal(friction[:, others], default[others].expand(50, -1, -1))
  assert torch.equal(friction[:, feet, 1:], default[feet, 1:].expand(50, -1, -1))


def test_friction_acts(calm, make_env):
  # Guards: a number in the model that the contacts do not use.
  ice = with_events(calm, friction=at_startup(events.foot_friction, sliding=(0.01, 0.01)))
  rough = with_events(calm, friction=at_startup(events.foot_friction, sliding=(1.5, 1.5)))
  speeds = []
  for task in (ice, rough):
    env = make_env(task)
    quiet(env, 30)
    qvel = env.backend.read("qvel").clone()
    qvel[:, 0] = 0.5
    env.backend.set_state(everyone(env), qvel=qvel)
    s = quiet(env, 10).state
    speeds.append(torch.linalg.vector_norm(s.lin_vel_b[:, :2], dim=1))
  assert (speeds[0] > 5 * speeds[1]).all(), speeds


def test_the_centre_of_mass_moves_within_its_box(calm, make_env):
  # Guards: an offset of the whole model, one that adds up, or one of a sign only.
  box = {"x_m": 0.025, "y_m": 0.02, "z_m": 0.03}
  env = make_env(with_events(calm, com=at_startup(events.base_com, **box)), num_envs=300)
  base = env.backend.model.body("base_link").id
  moved = env.backend.get_model("body_ipos") - env.backend.default("body_ipos")
  reach = torch.tensor(list(box.values()))
  assert (moved[:, base].abs() <= reach + 1e-7).all()
  assert (moved[:, base].amax(0) > 0.9 * reach).all() and (
    moved[:, base].amin(0) < -0.9 * reach
  ).all()
  others = [b for b in range(env.backend.model.nbody) if b != base]
  assert moved[:, others].eq(0).all()
  for _ in range(3):
    events.base_com(env.world, everyone(env), **box)
  moved = env.backend.get_model("body_ipos") - env.backend.default("body_ipos")
  assert (moved[:, base].abs() <= reach + 1e-7).all()


def test_a_moved_centre_of_mass_tips_the_load(calm, make_env):
  # Guards: a centre of mass that is moved where the engine does not look.
  env = make_env(with_events(calm))
  base = env.backend.model.body("base_link").id
  com = env.backend.get_model("body_ipos")
  com[1, base, 0] += 0.05
  env.backend.set_model(torch.tensor([False, True, False, False]), "body_ipos", com)
  s = quiet(env, 60).state
  front = s.foot_load_n[:, :2].sum(1)  # LF and RF
  others = front[[0, 2, 3]]
  assert front[1] > 1.1 * others.max() and others.max() < 1.03 * others.min(), front


def test_encoder_bias_is_one_per_joint(calm, make_env):
  # Guards: a bias for the whole robot, which a policy would see and correct.
  env = make_env(
    with_events(calm, bias=at_startup(events.encoder_bias, bias_rad=0.015)), num_envs=50
  )
  bias = env.world.encoder_bias_rad
  assert 0.0145 < bias.abs().max() <= 0.015 and len(bias.unique()) == 50 * 22
  kept = bias.clone()
  events.encoder_bias(env.world, torch.arange(50) == 3, bias_rad=0.015)
  assert torch.equal(bias[:3], kept[:3]) and not torch.equal(bias[3], kept[3])


def test_mass_scales_with_inertia_and_weighs(calm, make_env):
  # Guards: a mass that changes without its inertia (UniLab#94), or that nothing feels.
  env = make_env(with_events(calm, mass=at_startup(events.mass_scale, factor=(0.5, 2.0))))
  mass, inertia = env.backend.get_model("body_mass"), env.backend.get_model("body_inertia")
  scale = mass[:, 1] / env.backend.default("body_mass")[1]
  assert len(scale.unique()) == N and 0.5 <= scale.min() and scale.max() <= 2
  torch.testing.assert_close(mass, env.backend.default("body_mass") * scale[:, None])
  torch.testing.assert_close(inertia, env.backend.default("body_inertia") * scale[:, None, None])
  s = quiet(env, 100).state
  weight = 2.54296 * 9.81 * scale
  torch.testing.assert_close(-s.foot_force_w[:, :, 2].sum(1), weight, rtol=0.1, atol=0)


def test_gains_are_one_per_joint_and_pull(calm, make_env):
  # Guards: a stiffness that changes without its bias (a servo that drifts away from its target), or
  # a damping that takes the stiffness's place.
  row = at_startup(events.gain_scale, stiffness=(0.8, 1.2), damping=(0.5, 1.5))
  env = make_env(with_events(calm, gains=row))
  gain, bias = (env.backend.get_model(f"actuator_{k}prm") for k in ("gain", "bias"))
  assert torch.equal(gain[:, :, 0], -bias[:, :, 1])
  stiffness, damping = gain[:, :, 0] / 10.0, -bias[:, :, 2] / 0.5
  for values, low, high in ((stiffness, 0.8, 1.2), (damping, 0.5, 1.5)):
    assert len(values.unique()) > 80 and low <= values.min() and values.max() <= high
  assert not torch.allclose(stiffness, damping, atol=0.02)
  action = torch.full((N, 20), 0.2)  # 0.05 rad: far from the torque limit
  env.step(action)
  s = env.step(action).state
  assert differ(s.joint_torque_n_m)
  for _ in range(10):
    events.gain_scale(env.world, everyone(env), **row.params)
  assert env.backend.get_model("actuator_gainprm")[:, :, 0].max() <= 12.0


def test_a_masked_draw_leaves_the_others(calm, make_env):
  # Guards: the reset of one robot changing the mass of all.
  env = make_env(with_events(calm))
  mask = torch.tensor([False, True, False, False])
  rows = {
    "geom_friction": (events.foot_friction, {"sliding": (0.1, 0.2)}),
    "body_ipos": (events.base_com, {"x_m": 0.02, "y_m": 0.02, "z_m": 0.02}),
    "body_mass": (events.mass_scale, {"factor": (1.1, 1.3)}),
    "actuator_gainprm": (events.gain_scale, {"stiffness": (0.8, 0.9), "damping": (0.8, 0.9)}),
    "actuator_forcerange": (events.strength_scale, {"factor": (0.8, 0.9)}),
  }
  for field, (fn, params) in rows.items():
    fn(env.world, mask, **params)
    default, value = env.backend.default(field), env.backend.get_model(field)
    for k in range(N):
      assert torch.equal(value[k], default) == (k != 1), (field, k)


def test_a_target_arrives_after_its_delay(calm, make_env):
  # Guards: a delay that is drawn and not compiled, or one in steps instead of seconds.
  def torque(**delay):
    task = replace(calm, control_dt_s=0.005, episode_s=1.0)  # a control step per physics step
    env = make_env(with_events(task, **delay))
    env.backend.read("actuator_force")
    action = torch.zeros(N, 20)
    quiet(env, 6)
    force = []
    for _ in range(8):
      action[:, 8] = 1.0
      force.append(env.step(action).state.joint_torque_n_m.clone())
    return torch.stack(force)

  plain = torque()
  late = torque(delay=at_startup(events.actuator_delay, delay_s=(0.02, 0.02)))
  joint = calm.robot.joints.index(calm.robot.gait_joints[8])
  # What the target does: 0.25 rad at 10 N·m/rad, beyond the servo's limit.
  assert (plain[0, :, joint] - plain[0, :, joint - 1]).abs().max() > 0.5
  before, after = late[3, :, joint], late[4, :, joint]
  assert before.abs().max() < 1.0, late[:, 0, joint]
  assert after.abs().min() > 1.5, late[:, 0, joint]


def test_delays_differ_between_envs(calm, make_env):
  # Guards: the longest delay for every robot.
  row = at_startup(events.actuator_delay, delay_s=(0.0, 0.03))
  env = make_env(with_events(calm, delay=row), num_envs=20)
  delay = env.backend.get_model("actuator_delay")
  assert len(delay.unique()) == 20 and 0 <= delay.min() and delay.max() <= 0.03
  assert delay.eq(delay[:, :1]).all()


PUSH = {"horizontal_m_s": 0.2, "vertical_m_s": 0.1, "tilt_rad_s": 0.3, "yaw_rad_s": 0.4}


def test_a_push_changes_the_base_s_velocity(calm, make_env):
  # Guards: a push of the joints, of everyone, or of nobody.
  env = make_env(with_events(calm), num_envs=300)
  quiet(env, 3)
  velocities = slice(1 + 29, 1 + 29 + 28)  # a state row is time, qpos, qvel, ...
  before = env.backend.save()["state"]
  mask = torch.arange(300) > 0
  events.push(env.world, mask, **PUSH)
  after = env.backend.save()["state"]
  assert torch.equal(after[:, : velocities.start], before[:, : velocities.start])
  kick = (after - before)[:, velocities].float()
  assert kick[0].eq(0).all() and kick[:, 6:].abs().max() < 1e-6
  reach = torch.tensor([0.2, 0.2, 0.1, 0.3, 0.3, 0.4])
  assert (kick[:, :6].abs() <= reach + 1e-6).all()
  for extreme in (kick[:, :6].amax(0), -kick[:, :6].amin(0)):
    assert (extreme > 0.9 * reach).all()


class Counted:
  """An event that only counts."""

  __name__ = "counted"

  def __init__(self):
    self.masks = []

  def __call__(self, world, mask):
    self.masks.append(mask.clone())


def test_interval_events_come_again_in_their_time(calm, make_env):
  # Guards: pushes that never come, come once, come in every step, or hit all robots at once.
  fn = Counted()
  env = make_env(with_events(calm, tick=every((0.1, 0.3), fn)), num_envs=50)
  assert fn.masks == []
  fired = torch.zeros(100, 50, dtype=torch.bool)
  for k in range(100):
    before = len(fn.masks)
    quiet(env, 1)
    if len(fn.masks) > before:
      fired[k] = fn.masks[-1]
  for env_id in range(50):
    times = fired[:, env_id].nonzero().flatten()
    gaps = times.diff()
    assert len(times) >= 5 and gaps.min() >= 5 and gaps.max() <= 15
  assert fired[:15].any(0).all() and len({tuple(f.tolist()) for f in fired.T}) > 40


def test_reset_events_fire_for_those_who_start(calm, make_env):
  # Guards: a reset event that fires once, or for everybody.
  fn = Counted()
  task = replace(with_events(calm, tick=at_reset(fn)), episode_s=0.2)
  env = make_env(task)
  env.episode_steps[1] = 5
  assert [m.tolist() for m in fn.masks] == [[True] * N]
  quiet(env, 10)
  assert [m.tolist() for m in fn.masks[1:]] == [
    [False, True, False, False],
    [True, False, True, True],
  ]


def test_startup_events_fire_once(calm, make_env):
  # Guards: start-up randomisation that never runs (IsaacLab#664), or again with every episode.
  fn = Counted()
  env = make_env(replace(with_events(calm, tick=at_startup(fn)), episode_s=0.1))
  quiet(env, 12)
  assert [m.tolist() for m in fn.masks] == [[True] * N]


@pytest.mark.parametrize(
  ("when", "every_s", "says"),
  [
    ("resets", None, r"'resets': did you mean 'reset'\?"),
    ("interval", None, "every_s belongs to interval events"),
    ("startup", (1.0, 2.0), "every_s belongs to interval events"),
    ("interval", (0.0, 1.0), "two times above 0"),
    ("interval", (2.0, 1.0), "two times above 0"),
  ],
)
def test_an_event_that_can_never_fire_is_refused(calm, when, every_s, says):
  # Guards: a randomisation that is written down and does nothing.
  row = calm.events["start"]
  with pytest.raises(ValueError, match=says):
    replace(row, when=when, every_s=every_s)


def test_parameters_are_checked_when_the_row_is_made():
  # Guards: a TypeError an hour into a run, at the first push.
  with pytest.raises(
    ValueError, match=r"push: unknown parameters \['roll_rad_s'\], missing \['tilt"
  ):
    every(
      (1.0, 2.0), events.push, **{k: v for k, v in PUSH.items() if "tilt" not in k}, roll_rad_s=1.0
    )


def test_the_tasks_events_are_at_work(tripod, make_env):
  # Guards: a table of which nothing reaches the engine.
  env = make_env(tripod)
  default = env.backend.default
  assert differ(env.backend.get_model("geom_friction"))
  assert differ(env.backend.get_model("body_ipos"))
  assert differ(env.world.encoder_bias_rad)
  assert torch.equal(env.backend.get_model("body_mass")[1], default("body_mass"))  # off
