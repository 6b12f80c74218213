"""warp on the CPU against native:cpu: the same code as on a GPU, but for the streams.

All tests share one model and one size of the constraint buffer: each other one would be compiled.
"""

import mujoco
import pytest
import torch

from mjrl import tasks
from mjrl.envs.scenery import add_ground
from mjrl.envs.scenes import DEFAULT, SCENES
from mjrl.sim.native import NativeBackend
from mjrl.sim.warp import WarpBackend
from mjrl.sim.warp_sizes import Sizes, choose_sizes, measure

N, SUBSTEPS = 6, 4
STANCE, FLIGHT, FALLEN = [0, 1], [2, 3], [4, 5]
ROOM = {"nconmax": 24, "njmax": 80}
# Largest difference from native, of any env, after one control step: m, rad, s, N, N m.
TOLERANCE = {
  "qpos": 3e-6,
  "qvel": 1e-3,
  "xpos": 1e-6,
  "cvel": 2e-3,
  "sensordata": 1e-2,
  "actuator_force": 2e-4,
}


@pytest.fixture(scope="module")
def model():
  """The robot on its ground, with delayed servos and a touch sensor, which no task has yet."""
  task = tasks.build("jumper.tripod")
  spec = mujoco.MjSpec.from_file(str(task.robot.mjcf))
  spec.option.timestep = task.physics_dt_s
  add_ground(spec, SCENES[DEFAULT])
  for actuator in spec.actuators:
    actuator.nsample, actuator.delay = 3, 0.01
  site = mujoco.mjtObj.mjOBJ_SITE
  spec.add_sensor(name="touch", type=mujoco.mjtSensor.mjSENS_TOUCH, objtype=site, objname="LM")
  return spec.compile()


@pytest.fixture(scope="module")
def start(model):
  """Positions and velocities: two robots that stand, two in the air, two that lie and slide."""
  rng = torch.Generator().manual_seed(0)
  home = torch.tensor(model.key_qpos[0], dtype=torch.float32)
  qpos = home + 0.02 * torch.randn(N, model.nq, generator=rng)
  qpos[:, :7] = home[:7]
  qpos[STANCE, 2] -= 0.004
  qpos[FLIGHT, 2] += 0.1
  qpos[FALLEN, 2] = torch.tensor([0.08, 0.1])
  qpos[FALLEN, 3:7] = torch.tensor([[0.6, 0.8, 0.0, 0.0], [0.0, 0.6, 0.8, 0.0]])
  qvel = 0.3 * torch.randn(N, model.nv, generator=rng)
  return qpos, qvel


@pytest.fixture(scope="module")
def controls(model):
  """Controls of eight control steps."""
  rng = torch.Generator().manual_seed(1)
  home = torch.tensor(model.key_ctrl[0], dtype=torch.float32)
  return home + 0.3 * torch.randn(8, N, model.nu, generator=rng)


@pytest.fixture
def warp(model, start):
  return begin(WarpBackend(model, N, "cpu", **ROOM), start)


@pytest.fixture
def native(model, start):
  return begin(NativeBackend(model, N, 2), start)


def begin(backend, start):
  for field in TOLERANCE:
    backend.read(field)
  backend.reset(only(*range(N)), *start)
  return backend


def only(*envs):
  mask = torch.zeros(N, dtype=torch.bool)
  mask[list(envs)] = True
  return mask


def run(backend, controls):
  for ctrl in controls:
    backend.set_ctrl(ctrl)
    backend.step(SUBSTEPS)
  return backend


def rows(backend):
  """Everything that is read, and everything that is kept."""
  return {field: backend.read(field).clone() for field in TOLERANCE} | backend.save()


def same(a, b, envs=slice(None)):
  return [name for name in a if not torch.equal(a[name][envs], b[name][envs])]


def differences(one, other, envs=slice(None), order=slice(None)):
  """Fields in which some env is further apart than the tolerance, with the distance of each."""
  apart = {}
  for field, tolerance in TOLERANCE.items():
    gap = (one.read(field)[order] - other.read(field))[envs].abs().flatten(1).max(1).values
    if not (gap <= tolerance).all():
      apart[field] = gap.tolist()
  return apart


@pytest.mark.parametrize("envs", [STANCE, FLIGHT, FALLEN], ids=["stance", "flight", "fallen"])
def test_a_control_step_is_native_s_in_each_env(warp, native, controls, envs):
  # Guards: an engine that is another robot; sensors that are wiped, lag a substep, or add up.
  assert differences(warp, native, envs) == {}
  touched = False
  for ctrl in controls[:2]:
    run(warp, [ctrl])
    run(native, [ctrl])
    assert differences(warp, native, envs) == {}
    touched |= bool((native.read("sensordata")[envs, -1] > 0).any())
  assert touched == (envs == STANCE)  # the test sees what it is about


def test_contacts_are_those_of_native(model, warp, native, controls):
  # Guards: feet that are said to be in the air while they carry the robot.
  feet, seen = feet_of(model), []
  for ctrl in controls:
    counts = [run(b, [ctrl]).read("sensordata")[:4, feet] for b in (warp, native)]
    assert torch.equal(*counts)
    seen.append(counts[0])
  assert len(feet) == 6 and (torch.stack(seen) > 0).any() and (torch.stack(seen) == 0).any()


def test_envs_in_another_order_are_told_apart(warp, native, controls):
  # Guards: the tests above passing because all envs are alike.
  order = [1, 0, 3, 2, 5, 4]
  run(warp, controls[:1])
  run(native, controls[:1])
  apart = differences(warp, native, order=order)
  assert apart.keys() == TOLERANCE.keys()
  for field, gaps in apart.items():
    assert min(gaps) > 20 * TOLERANCE[field], field


def test_a_second_of_stepping_has_native_s_statistics(warp, native, model):
  # Guards: friction, damping or gains that differ a little: one step would hardly show it.
  rng = torch.Generator().manual_seed(2)
  home = torch.tensor(model.key_ctrl[0], dtype=torch.float32)
  phase = 2 * torch.pi * torch.rand(N, model.nu, generator=rng)
  totals = []
  for backend in (warp, native):
    total = torch.zeros(3, N)
    for k in range(50):
      run(backend, [home + 0.2 * torch.sin(phase + 0.4 * k)])
      torque, feet = backend.read("actuator_force"), backend.read("sensordata")[:, feet_of(model)]
      height = backend.read("qpos")[:, 2]
      total += torch.stack((height, torque.square().mean(1), (feet > 0).float().mean(1)))
    totals.append(total[:, :4].sum(1))  # of those that do not lie
  height, power, contact = (totals[0] / totals[1] - 1).abs().tolist()
  assert height < 1e-4 and power < 1e-3 and contact < 0.01
  assert 0.2 < totals[1][2] / (4 * 50) < 0.9  # feet come down, and lift


def feet_of(model):
  """Columns of the sensors that count the contacts of each foot."""
  names = [model.sensor(k).name for k in range(model.nsensor)]
  return [int(model.sensor(name).adr[0]) for name in names if name.endswith("_contact")]


def test_a_recording_is_the_procedure(model, warp, start, controls):
  # Guards: a recorded step that lacks a kernel, or writes to an array that has been replaced.
  direct = begin(WarpBackend(model, N, "cpu", **ROOM), start)
  direct._graphs.obstacle = "a test"
  assert warp.graphs == "on" and direct.graphs == "off: a test"
  for k, ctrl in enumerate(controls):
    for backend in (warp, direct):
      if k == 4:
        backend.read("xmat")
        backend.set_model(only(1, 5), "geom_friction", backend.get_model("geom_friction") * 0.5)
      if k == 6:
        backend.reset(only(2), *start)
        backend.set_state(only(3), qvel=backend.read("qvel") + 0.1)
      run(backend, [ctrl])
    assert same(rows(warp), rows(direct)) == [], k
    assert torch.equal(warp.read("xmat"), direct.read("xmat")), k


def test_resetting_some_leaves_the_others_to_the_bit(model, start, controls, warp):
  # Guards: a reset that touches its neighbours, or leaves something of the old episode.
  plain = rows(run(begin(WarpBackend(model, N, "cpu", **ROOM), start), controls))
  run(warp, controls[:4])
  other = start[0].roll(1, 0), start[1].roll(1, 0)
  before = rows(warp)
  warp.reset(only(1, 3), *other)
  assert same(before, rows(warp), [0, 2, 4, 5]) == []
  after = rows(run(warp, controls[4:]))
  assert same(plain, after, [0, 2, 4, 5]) == []
  fresh = rows(run(begin(WarpBackend(model, N, "cpu", **ROOM), other), controls[4:]))
  for kept in (after, fresh):  # the time of the episode starts anew, too
    assert kept["state.time"][[1, 3]].tolist() == pytest.approx([0.08] * 2)
  assert same(after, fresh, [1, 3]) == []


def test_fields_are_current_after_a_reset(warp, native, start, controls):
  # Guards: a first observation made of the last episode's sensors.
  for backend in (warp, native):
    run(backend, controls[:2])
    backend.reset(only(0, 2, 5), *start)
  assert differences(warp, native, [0, 2, 5]) == {}
  assert differences(warp, native) == {}  # and the others keep what they had


def test_a_state_written_between_steps_is_taken_up(warp, native, controls):
  # Guards: a push that the engine, going on from what it has computed, never sees.
  for backend in (warp, native):
    run(backend, controls[:1])
    backend.set_state(only(2), qvel=backend.read("qvel") + 1)
    lifted = backend.read("qpos").clone()
    lifted[:, 2] += 0.1
    backend.set_state(only(0), qpos=lifted)
    run(backend, controls[1:2])
  assert differences(warp, native) == {}


@pytest.mark.parametrize("field", ["body_mass", "body_ipos", "dof_armature"])
def test_constants_follow_a_model_field_in_each_env(warp, native, model, controls, field):
  # Guards: inverse weights of the old mass (mjlab#541), those of env 0 for all, and a mass matrix
  # that is taken up a step late.
  run(warp, controls[:1])
  run(native, controls[:1])
  default = native.default(field)
  scale = torch.linspace(1.1, 2.0, N).view(-1, *[1] * default.dim())
  value = default * scale if field != "body_ipos" else default + 0.01 * scale
  mask = only(0, 2, 4, 5)
  for backend in (warp, native):
    backend.set_model(mask, field, value)
  derived = [name for name in warp._per_env if name != field]
  assert {"body_subtreemass", "body_invweight0", "dof_invweight0", "actuator_acc0"} <= set(derived)
  for name in (field, *derived):
    got, expected = warp.get_model(name), native.get_model(name)
    torch.testing.assert_close(got, expected, rtol=2e-4, atol=1e-7, msg=name)
    assert torch.equal(got[~mask], warp.default(name).expand(N, *got.shape[1:])[~mask]), name
  moved = (warp.get_model("dof_invweight0") - warp.default("dof_invweight0")).abs().amax(1)
  assert (moved[mask] > 1e-3).all()
  run(warp, controls[1:2])
  run(native, controls[1:2])
  assert differences(warp, native) == {}


def test_a_model_field_without_constants_is_per_env(warp, native, controls):
  # Guards: a randomised value that never reaches the engine, or reaches every env.
  for backend in (warp, native):
    run(backend, controls[:1])
    for field, factor in (("geom_friction", 0.1), ("actuator_gainprm", 0.5), ("actuator_delay", 0)):
      default = backend.default(field)
      backend.set_model(only(0, 5), field, default.expand(N, *default.shape) * factor)
      expected = torch.where(only(0, 5).view(-1, *[1] * default.dim()), default * factor, default)
      assert torch.equal(backend.get_model(field), expected)
      assert torch.equal(backend.default(field), default)
    run(backend, controls[1:3])
  assert differences(warp, native) == {}
  plain = run(
    begin(NativeBackend(warp.model, N, 1), (native.read("qpos"), native.read("qvel"))), []
  )
  assert plain.get_model("geom_friction").unique(dim=0).shape[0] == 1


@pytest.mark.parametrize("bad", ["state", "control"])
def test_a_bad_number_is_flagged_stays_in_its_env_and_is_gone_with_a_reset(
  model, start, controls, warp, bad
):
  # Guards: one NaN that ends a run, spreads, or comes back (mjlab#912).
  plain = begin(WarpBackend(model, N, "cpu", **ROOM), start)
  for backend in (plain, warp):
    run(backend, controls[:2])
    assert not backend.take_diverged().any()
  ctrl = controls[2].clone()
  if bad == "state":
    warp.set_state(only(3), qvel=torch.full((N, model.nv), torch.nan))
  else:
    ctrl[3, 4] = torch.inf  # which the servo's torque limit would make harmless
  run(warp, [ctrl])
  run(plain, controls[2:3])
  assert warp.take_diverged().tolist() == only(3).tolist()
  assert not warp.take_diverged().any()  # taken
  warp.reset(only(3), *start)
  others = [0, 1, 2, 4, 5]
  assert same(rows(plain), rows(warp), others) == []
  assert same(rows(run(plain, controls[3:])), rows(run(warp, controls[3:])), others) == []
  fresh = run(begin(WarpBackend(model, N, "cpu", **ROOM), start), controls[3:])
  assert same(rows(fresh), rows(warp), [3]) == []
  assert not warp.take_diverged().any()


def test_save_and_load_go_on_to_the_bit(model, start, controls, warp):
  # Guards: a resumed run that differs for want of warm starts, delays or randomised values.
  mass = warp.get_model("body_mass") * torch.linspace(0.8, 1.2, N)[:, None]
  warp.set_model(only(*range(N)), "body_mass", mass)
  run(warp, controls[:3])
  saved = warp.save()
  expected = rows(run(warp, controls[3:]))
  other = begin(WarpBackend(model, N, "cpu", **ROOM), [s.flip(0) for s in start])
  run(other, controls[:2])
  other.load({name: value.clone() for name, value in saved.items()})
  assert torch.equal(other.get_model("body_mass"), mass)
  assert same(expected, rows(run(other, controls[3:]))) == []
  warp.load(saved)  # and a save is not changed by what comes after it
  assert same(expected, rows(run(warp, controls[3:]))) == []


def test_what_did_not_fit_is_counted_with_its_cure(model, start, controls, warp, capfd):
  # Guards: contacts that are lost without a word, the worst failure that this engine has.
  run(warp, controls[:2])
  assert warp.take_lost() == {}
  small = begin(WarpBackend(model, N, "cpu", nconmax=2, njmax=ROOM["njmax"]), start)
  run(small, controls[:3])
  assert small.take_lost() == {("contacts", "--nconmax"): 3 * N}  # the buffer is shared
  assert small.take_lost() == {}
  sunk = start[0].clone()
  sunk[4, 2] = -0.1
  warp.reset(only(4), sunk, start[1])
  run(warp, controls[:1])
  assert warp.take_lost()["constraints", "--njmax"] == 1
  warp.set_state(only(4), qpos=start[0] + 1, qvel=0 * start[1])  # in the air
  run(warp, controls[1:3])
  assert warp.take_lost() == {}
  assert "overflow" not in capfd.readouterr().out  # kernels that print stop a GPU


def test_sizes_are_measured_with_room_to_spare(model):
  # Guards: a guess that is too small for a robot that lies on its back.
  need = measure(model, "cpu", Sizes(1, ROOM["njmax"]))
  assert 6 <= need.nconmax < 40 and 30 <= need.njmax < 80
  sizes, why = choose_sizes(model, "cpu", 24, 96)
  assert sizes == (24, 96) and why == "24 contacts and 96 constraint rows per env (given)"


def test_what_the_engine_cannot_do_is_refused(model, warp):
  # Guards: another integrator than the one that was asked for, and typos found deep inside.
  with pytest.raises(ValueError, match=r"'qpo' is not an mjData field .*'qpos'"):
    warp.read("qpo")
  with pytest.raises(ValueError, match=r"'geom_frictio' is not a model field .*'geom_friction'"):
    warp.set_model(only(1), "geom_frictio", torch.zeros(N))
  other = mujoco.MjSpec.from_string("<mujoco><option integrator='RK4'/></mujoco>").compile()
  with pytest.raises(ValueError, match="use one of euler, implicit, implicitfast"):
    WarpBackend(other, 1, "cpu", **ROOM)
  with pytest.raises(ValueError, match="num_envs is 0"):
    WarpBackend(model, 0, "cpu", **ROOM)
