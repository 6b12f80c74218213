"""warp:cuda, on a machine with a GPU: what warp:cpu cannot show."""

from contextlib import contextmanager

import pytest
import torch

from mjrl import tasks
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.sim.cuda import cuda_devices
from mjrl.sim.native import NativeBackend
from mjrl.sim.open import open_backend
from mjrl.sim.resolve import resolve

pytestmark = [
  pytest.mark.gpu,
  pytest.mark.skipif(cuda_devices()[0] == 0, reason=cuda_devices()[1]),
]
N, DEVICE = 64, "cuda:0"
FIELDS = {
  "qpos": 1e-4,
  "sensordata": 0.5,
  "actuator_force": 5e-3,
}  # looser: ten steps, another order of sums


@pytest.fixture(scope="module")
def task():
  return tasks.build("jumper.tripod")


@pytest.fixture
def warp(task):
  resolved = resolve(device=DEVICE, num_envs=N, default_num_envs={})
  return open_backend(resolved, compile_scene(task))


@contextmanager
def no_waiting():
  """Make torch raise where it would wait for the GPU."""
  torch.cuda.synchronize()
  torch.cuda.set_sync_debug_mode("error")
  try:
    yield
  finally:
    torch.cuda.set_sync_debug_mode("default")


def test_a_step_is_recorded(warp):
  # Guards: kernels launched one by one, several times slower, where graphs were promised.
  for _ in range(3):
    warp.step(4)
  assert warp.graphs == "on" and warp._graphs._graphs["4 substeps"] is not None


def test_control_steps_are_native_s(task, warp):
  # Guards: torch and Warp on streams that do not wait for one another: controls of the step before.
  native = NativeBackend(warp.model, N, 2)
  rng = torch.Generator().manual_seed(0)
  home = torch.tensor(warp.model.key_qpos[0], dtype=torch.float32)
  qpos = home.repeat(N, 1)
  qpos[:, 2] += 0.05 * torch.rand(N, generator=rng)
  qpos[:, 7:] += 0.02 * torch.randn(N, warp.model.nu, generator=rng)
  for backend in (warp, native):
    for field in FIELDS:
      backend.read(field)
    everyone = torch.ones(N, dtype=torch.bool, device=backend.device)
    start = qpos.to(backend.device)
    backend.reset(everyone, start, start.new_zeros(N, backend.model.nv))
  for _ in range(10):
    ctrl = home[7:] + 0.2 * torch.randn(N, warp.model.nu, generator=rng)
    for backend in (warp, native):
      backend.set_ctrl(ctrl.to(backend.device))
      backend.step(task.substeps)
    for field, tolerance in FIELDS.items():
      gap = (warp.read(field).cpu() - native.read(field)).abs().amax(1)
      # All but a few: a foot that lands a substep earlier is another robot for a while.
      assert gap.quantile(0.9) < tolerance, field


def test_a_control_step_does_not_wait(task, warp):
  # Guards: a GPU that waits for Python in every step.
  env = Env(task, warp, 0, spread_starts=True)
  action = torch.zeros(N, len(env.robot.gait_joints), device=DEVICE)
  with torch.inference_mode():
    for _ in range(20):
      env.step(action)
    with no_waiting():
      for _ in range(20):
        env.step(action)
  assert env.save()["engine"]["state.qpos"].device.type == "cuda"


def test_a_bad_number_stays_in_its_env(task, warp):
  # Guards: one NaN that ends a run or spreads.
  env = Env(task, warp, 0)
  action = torch.zeros(N, len(env.robot.gait_joints), device=DEVICE)
  bad = torch.full_like(warp.read("qvel"), torch.nan)
  warp.set_state(torch.arange(N, device=DEVICE) == 3, qvel=bad)
  step = env.step(action)
  assert step.terminated.nonzero().flatten().tolist() == [3]
  assert all(group.isfinite().all() for group in env.step(action).observations.values())
  assert env.take_notes()[0].startswith("diverged, and started anew: env 3")
