"""native:cpu against a plain loop of mj_step, to the bit."""

import copy
import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest
import torch

from mjrl import tasks
from mjrl.envs.scene import compile_scene
from mjrl.envs.terms import events
from mjrl.envs.world import World
from mjrl.sim.native import NativeBackend

N, SUBSTEPS, STEPS = 5, 4, 6
FIELDS = ("qpos", "qvel", "sensordata", "actuator_force", "xpos", "cvel")


@pytest.fixture(scope="module")
def task():
  return tasks.build("jumper.tripod")


@pytest.fixture(scope="module")
def model(task):
  return compile_scene(task)


@pytest.fixture(scope="module")
def start(model):
  """Positions and velocities of N robots about HOME, half of them on the ground."""
  rng = torch.Generator().manual_seed(0)
  home = torch.tensor(model.key_qpos[0], dtype=torch.float32)
  qpos = home + 0.1 * torch.randn(N, model.nq, generator=rng)
  qpos[:, :3] = home[:3]
  qpos[::2, 2] += 0.05
  qpos[:, 3:7] = torch.nn.functional.normalize(qpos[:, 3:7], dim=1)
  return qpos, 0.5 * torch.randn(N, model.nv, generator=rng)


@pytest.fixture(scope="module")
def controls(model):
  """Controls of STEPS control steps of N robots."""
  rng = torch.Generator().manual_seed(1)
  home = torch.tensor(model.key_ctrl[0], dtype=torch.float32)
  return home + 0.4 * torch.randn(STEPS, N, model.nu, generator=rng)


def make(model, start, threads=2):
  backend = NativeBackend(model, len(start[0]), threads)
  for field in FIELDS:
    backend.read(field)
  backend.reset(torch.ones(len(start[0]), dtype=torch.bool), *start)
  return backend


def run(backend, controls):
  for ctrl in controls:
    backend.set_ctrl(ctrl)
    backend.step(SUBSTEPS)
  return backend


def rows(backend):
  return {field: backend.read(field).clone() for field in FIELDS} | {
    "state": backend.save()["state"]
  }


def only(*envs):
  mask = torch.zeros(N, dtype=torch.bool)
  mask[list(envs)] = True
  return mask


def same(a, b, envs=slice(None)):
  return [field for field in a if not torch.equal(a[field][envs], b[field][envs])]


class Loop:
  """One robot stepped as MuJoCo's documentation does it."""

  def __init__(self, model, qpos, qvel):
    self.model, self.data = model, mujoco.MjData(model)
    self.data.qpos, self.data.qvel = qpos, qvel
    mujoco.mj_forward(model, self.data)

  def step(self, ctrl):
    self.data.ctrl = ctrl
    for _ in range(SUBSTEPS):
      mujoco.mj_step(self.model, self.data)

  def fields(self):
    """Position and velocity stages at the new state, the rest of the last substep."""
    ahead = copy.copy(self.data)
    mujoco.mj_step1(self.model, ahead)
    sensors = self.data.sensordata.copy()
    for k in range(self.model.nsensor):
      if self.model.sensor_needstage[k] != mujoco.mjtStage.mjSTAGE_ACC:
        columns = slice(
          self.model.sensor_adr[k], self.model.sensor_adr[k] + self.model.sensor_dim[k]
        )
        sensors[columns] = ahead.sensordata[columns]
    return {
      "qpos": self.data.qpos,
      "qvel": self.data.qvel,
      "sensordata": sensors,
      "actuator_force": self.data.actuator_force,
      "xpos": ahead.xpos,
      "cvel": ahead.cvel,
    }


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bit_equal_with_a_loop_of_mj_step(model, start, controls, threads):
  # Guards: warm starts, controls or contacts leaking between envs, results that depend on the
  # number of threads, and sensors that lag a substep behind the state.
  backend = make(model, start, threads)
  loops = [Loop(model, *pair) for pair in zip(*start, strict=True)]
  for ctrl in controls:
    backend.set_ctrl(ctrl)
    backend.step(SUBSTEPS)
    for env, loop in enumerate(loops):
      loop.step(ctrl[env])
      for field, expected in loop.fields().items():
        got = backend.read(field)[env].numpy()
        assert np.array_equal(got, expected.astype(np.float32)), (env, field)
  state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
  for env, loop in enumerate(loops):  # in double precision, warm starts included
    mujoco.mj_getState(model, loop.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    assert np.array_equal(backend.save()["state"][env].numpy(), state)


def test_the_sensors_of_the_last_substep_are_told_apart(model, start, controls):
  # Guards: the test above passing because both stages happen to be equal.
  loop = Loop(model, start[0][0], start[1][0])
  loop.step(controls[0][0])
  assert not np.array_equal(loop.fields()["sensordata"], loop.data.sensordata)
  assert not np.array_equal(loop.fields()["xpos"], loop.data.xpos)


def test_permuting_the_envs_permutes_the_results(model, start, controls):
  # Guards: an env whose result depends on where it stands in the batch.
  order = torch.tensor([3, 0, 4, 2, 1])
  plain = rows(run(make(model, start), controls))
  moved = rows(run(make(model, [s[order] for s in start]), controls[:, order]))
  assert same({k: v[order] for k, v in plain.items()}, moved) == []


def test_resetting_some_leaves_the_others(model, start, controls):
  # Guards: a reset that touches its neighbours, or that leaves something of the old episode.
  half = STEPS // 2
  plain = rows(run(make(model, start), controls))
  backend = run(make(model, start), controls[:half])
  backend.reset(only(1, 3), start[0].flip(0), start[1].flip(0))
  after = rows(run(backend, controls[half:]))
  assert same(plain, after, [0, 2, 4]) == []
  fresh = run(make(model, [s.flip(0) for s in start]), controls[half:])
  after.pop("state")  # holds the time, which is the envs' own
  assert same(after, rows(fresh), [1, 3]) == []


def test_fields_are_current_after_a_reset(model, start):
  # Guards: a first observation made of the last episode's sensors.
  backend = make(model, start)
  for env, pair in enumerate(zip(*start, strict=True)):
    data = Loop(model, *pair).data
    for field in FIELDS:
      expected = getattr(data, field).astype(np.float32)
      assert np.array_equal(backend.read(field)[env].numpy(), expected), field


def test_a_velocity_written_between_steps_is_taken_up(model, start, controls):
  # Guards: a push that the engine, going on from what it has computed, never sees.
  backend = run(make(model, start), controls[:1])
  loops = [Loop(model, *pair) for pair in zip(*start, strict=True)]
  for env, loop in enumerate(loops):
    loop.step(controls[0][env])
  pushed = backend.read("qvel") + 1
  backend.set_state(only(2), qvel=pushed)
  loops[2].data.qvel = pushed[2]
  run(backend, controls[1:2])
  for env, loop in enumerate(loops):
    loop.step(controls[1][env])
    expected = loop.fields()["sensordata"].astype(np.float32)
    assert np.array_equal(backend.read("sensordata")[env].numpy(), expected), env


def test_a_model_field_is_per_env(model, start):
  # Guards: a randomised value that never reaches the engine, or reaches every env.
  backend = make(model, start)
  default = backend.default("geom_friction")
  value = default * torch.arange(1.0, N + 1)[:, None, None]
  assert torch.equal(backend.get_model("geom_friction"), default.expand(N, -1, -1))
  backend.set_model(only(1, 4), "geom_friction", value)
  expected = torch.where(only(1, 4)[:, None, None], value, default)
  assert torch.equal(backend.get_model("geom_friction"), expected)
  assert torch.equal(backend.default("geom_friction"), default)


def test_a_model_field_written_between_steps_acts_at_once(model, start, controls):
  # Guards: a step that goes on from a mass matrix of the old mass.
  backend = run(make(model, start), controls[:1])
  mass = backend.get_model("body_mass") * 1.5
  backend.set_model(only(2), "body_mass", mass)
  run(backend, controls[1:2])
  for env in range(N):
    loop = Loop(model, start[0][env], start[1][env])
    loop.step(controls[0][env])
    if env == 2:
      state = copy.copy(loop.data)
      loop.model = copy.copy(model)
      loop.model.body_mass = mass[env]
      mujoco.mj_setConst(loop.model, state)
    loop.step(controls[1][env])
    for field, expected in loop.fields().items():
      got = backend.read(field)[env].numpy()
      assert np.array_equal(got, expected.astype(np.float32)), (env, field)


def test_constants_that_depend_on_a_mass_follow(task, model, start):
  # Guards: subtree masses and inverse weights of the old mass (mjlab#541, mujoco#1607).
  backend = make(model, start)
  calf, grams = model.body("LM_calf").id, float(np.float32(0.3))
  mass = backend.get_model("body_mass")
  mass[2, calf] = grams
  backend.set_model(only(2), "body_mass", mass)

  spec = mujoco.MjSpec.from_file(str(task.robot.mjcf))
  bare = spec.compile()
  spec.body("LM_calf").mass = grams
  heavy = spec.compile()
  bodies, base = range(bare.nbody), "base_link"
  same_id = [model.body(bare.body(b).name).id for b in bodies]
  for field in ("body_mass", "body_subtreemass", "body_invweight0", "dof_invweight0", "dof_M0"):
    got = backend.get_model(field)
    changed = torch.tensor(getattr(heavy, field), dtype=torch.float32)
    plain = torch.tensor(getattr(bare, field), dtype=torch.float32)
    if field.startswith("body"):
      got = got[:, same_id]
    torch.testing.assert_close(got[2], changed, rtol=1e-5, atol=1e-9, msg=field)
    torch.testing.assert_close(got[1], plain, rtol=1e-5, atol=1e-9, msg=field)
    assert not torch.allclose(changed, plain, rtol=1e-3), field
  assert bare.body(base).subtreemass != heavy.body(base).subtreemass


def test_a_thousand_draws_do_not_accumulate(task, model):
  # Guards: mass = m * s * s * s ... (mjlab#38, IsaacLab#7311).
  backend = NativeBackend(model, 2, 1)
  world = World(
    backend=backend,
    robot=task.robot,
    rng=torch.Generator().manual_seed(0),
    start_qpos=torch.zeros(2, model.nq),
    start_qvel=torch.zeros(2, model.nv),
    encoder_bias_rad=torch.zeros(2, len(task.robot.joints)),
  )
  mask = torch.tensor([True, False])
  for _ in range(1000):
    events.mass_scale(world, mask, factor=(1.1, 1.1))
  for field in ("body_mass", "body_inertia"):  # the inertia goes with the mass (UniLab#94)
    default = backend.default(field)
    assert torch.equal(backend.get_model(field), torch.stack([default * 1.1, default])), field


def test_a_bad_number_is_flagged_and_stays_in_its_env(model, start, controls):
  # Guards: one NaN that ends a run or spreads (mjlab#912), or that is reset without a word.
  plain = rows(run(make(model, start), controls))
  backend = run(make(model, start), controls[:2])
  assert not backend.take_diverged().any()
  qvel = backend.read("qvel").clone()
  qvel[3, 7] = float("nan")
  backend.set_state(only(3), qvel=qvel)
  run(backend, controls[2:3])
  assert backend.take_diverged().tolist() == only(3).tolist()
  assert not backend.take_diverged().any()  # taken
  after = rows(run(backend, controls[3:]))
  assert same(plain, after, [0, 1, 2, 4]) == []


@pytest.mark.parametrize("quiet_steps", [0, 2])
def test_an_env_that_diverges_again_is_flagged_again(model, start, controls, quiet_steps):
  # Guards: counters that start anew with the reset hiding the next bad number.
  backend = make(model, start)
  for _ in range(3):
    qvel = torch.full((N, model.nv), float("nan"))
    backend.set_state(only(3), qvel=qvel)
    run(backend, controls[:1])
    assert backend.take_diverged().tolist() == only(3).tolist()
    backend.reset(only(3), *start)
    for ctrl in controls[:quiet_steps]:
      run(backend, [ctrl])
      assert not backend.take_diverged().any()


def test_an_infinite_control_is_flagged(model, start, controls):
  # Guards: a policy that gives NaN and a robot that quietly stands still.
  backend = make(model, start)
  ctrl = controls[0].clone()
  ctrl[1, 4] = float("nan")
  run(backend, [ctrl])
  assert backend.take_diverged().tolist() == only(1).tolist()


def test_save_and_load_go_on_to_the_bit(model, start, controls):
  # Guards: a resumed run that differs, because warm starts or randomised values were left out.
  backend = make(model, start)
  mass = backend.get_model("body_mass") * torch.linspace(0.8, 1.2, N)[:, None]
  friction = backend.get_model("geom_friction") * 0.5
  backend.set_model(torch.ones(N, dtype=torch.bool), "body_mass", mass)
  backend.set_model(only(1), "geom_friction", friction)
  run(backend, controls[:3])
  saved = backend.save()
  expected = rows(run(backend, controls[3:]))

  other = make(model, [s.flip(0) for s in start], threads=1)
  run(other, controls[:1])
  other.load({name: value.clone() for name, value in saved.items()})
  assert torch.equal(other.get_model("body_mass"), mass)
  assert torch.equal(other.get_model("geom_friction")[1], friction[1])
  assert same(expected, rows(run(other, controls[3:]))) == []
  backend.load(saved)  # and a save is not changed by what comes after it
  assert same(expected, rows(run(backend, controls[3:]))) == []


def test_constraints_that_do_not_fit_are_counted(monkeypatch, tmp_path):
  # Guards: feet that sink in for want of memory, on a line of MUJOCO_LOG.TXT that nobody reads.
  monkeypatch.chdir(tmp_path)  # where the engine puts that file
  balls = "".join(f"<body pos='{x} 0 0.09'><freejoint/><geom size='0.1'/></body>" for x in range(8))
  model = mujoco.MjModel.from_xml_string(
    "<mujoco><size memory='20K'/><worldbody><geom type='plane' size='9 9 1'/>"
    f"{balls}</worldbody></mujoco>"
  )
  backend = NativeBackend(model, 3, 1)
  qpos = torch.tensor(model.qpos0, dtype=torch.float32).repeat(3, 1)
  qpos[[0, 2], 2::7] += 1  # in the air
  mask = torch.ones(3, dtype=torch.bool)
  for _ in range(2):
    backend.reset(mask, qpos, torch.zeros(3, model.nv))
    backend.step(2)
    assert not backend.take_diverged().any()
    (((what, cure), count),) = backend.take_lost().items()
    assert (what, count) == ("constraints", 1) and "<size memory=" in cure
    assert backend.take_lost() == {}


def test_an_unknown_field_names_the_nearest(model, start):
  # Guards: a typo that ends deep inside the engine.
  with pytest.raises(ValueError, match=r"'qpo' is not an mjData field .*'qpos'"):
    make(model, start).read("qpo")


@pytest.mark.parametrize(("num_envs", "threads"), [(0, 1), (1, 0)])
def test_no_envs_or_threads_is_refused(model, num_envs, threads):
  # Guards: 0, which the engine would read as "all CPUs".
  with pytest.raises(ValueError, match="must both be at least 1"):
    NativeBackend(model, num_envs, threads)


def test_a_field_is_the_same_float32_tensor_every_time(model, start, controls):
  # Guards: views made once that go stale, and float64 in the networks.
  backend = make(model, start)
  first = {field: backend.read(field) for field in FIELDS}
  run(backend, controls[:2])
  for field, tensor in first.items():
    assert backend.read(field) is tensor and tensor.dtype == torch.float32
  first["qpos"].fill_(7)  # a copy: writing to it changes nothing in the simulation
  run(backend, controls[2:3])
  assert backend.read("qpos").abs().max() < 7


def test_reading_another_field_in_the_middle_changes_nothing(model, start, controls):
  # Guards: a measurement that changes what is measured (a forward pass overwrites warm starts and
  # the last substep's forces).
  plain = make(model, start)
  watched = make(model, start)
  for backend in (plain, watched):
    run(backend, controls[:3])
  loop = Loop(model, start[0][0], start[1][0])
  for ctrl in controls[:3]:
    loop.step(ctrl[0])
  torque = watched.read("qfrc_actuator")[0].numpy()
  assert same(rows(plain), rows(watched)) == []
  assert np.array_equal(torque, loop.data.qfrc_actuator.astype(np.float32))
  for backend in (plain, watched):
    run(backend, controls[3:])
  assert same(rows(plain), rows(watched)) == []


def test_the_default_is_a_copy(model, start):
  # Guards: a draw that writes into the model it starts from.
  backend = make(model, start)
  before = model.body_mass.copy()
  backend.default("body_mass").fill_(7)
  assert np.array_equal(model.body_mass, before)


def test_native_needs_neither_warp_nor_cuda():
  # Guards: a laptop on which training on the CPU fails for want of a GPU library (mujoco#3171).
  code = (
    "import sys, mjrl.sim.native, torch; print('warp' in sys.modules, torch.cuda.is_initialized())"
  )
  env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
  out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
  assert out.stdout.split() == ["False", "False"], out.stderr
