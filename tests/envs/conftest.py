from dataclasses import replace

import mujoco
import pytest
import torch

from mjrl import tasks
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.envs.state import State
from mjrl.envs.task import noiseless
from mjrl.envs.world import World
from mjrl.robots.jumper import JUMPER
from mjrl.sim.native import NativeBackend


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
  """As the commands do: two pools of threads that wait for one another are 15 times slower."""
  torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tripod():
  return tasks.build("jumper.tripod")


@pytest.fixture(scope="session")
def calm(tripod):
  """The tripod task without what draws after an episode's start: noise, pushes, new commands."""
  return replace(
    tripod,
    observations={name: noiseless(rows) for name, rows in tripod.observations.items()},
    events={name: event for name, event in tripod.events.items() if event.when != "interval"},
    command=replace(tripod.command, hold_s=(1000.0, 1000.0)),
  )


@pytest.fixture
def make_env():
  """An environment on native:cpu."""

  def make(task, num_envs=4, seed=0, threads=2, **options):
    backend = NativeBackend(compile_scene(task), num_envs, threads)
    return Env(task, backend, seed, **options)

  return make


@pytest.fixture
def make_world():
  """N envs of next to nothing, for what draws and counts but does not step."""

  def make(num_envs, seed=0):
    model = mujoco.MjModel.from_xml_string("<mujoco><size memory='10K'/></mujoco>")
    return World(
      backend=NativeBackend(model, num_envs, 1),
      robot=JUMPER,
      rng=torch.Generator().manual_seed(seed),
      start_qpos=torch.zeros(num_envs, 0),
      start_qvel=torch.zeros(num_envs, 0),
      encoder_bias_rad=torch.zeros(num_envs, 22),
    )

  return make


@pytest.fixture
def actions():
  """(steps, N, G) random actions of a fixed seed."""

  def draw(env, steps, scale=0.5):
    rng = torch.Generator().manual_seed(7)
    return scale * torch.randn(steps, env.num_envs, len(env.robot.gait_joints), generator=rng)

  return draw


@pytest.fixture
def standing():
  """A hand-made State: N robots at HOME, still, level, on both feet, asked to stand.

  Three joints: an arm's, a leg's, and one that the policy does not drive.  Two feet.  A gait of
  four control steps, in which the first foot swings before the second.
  """

  def make(num_envs=1, **given):
    n = num_envs
    fields = {
      "base_pos_w": torch.tensor([[0.0, 0.0, 0.1]]).repeat(n, 1),
      "base_quat_w": torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(n, 1),
      "forward_w": torch.tensor([[1.0, 0.0, 0.0]]).repeat(n, 1),
      "up_b": torch.tensor([[0.0, 0.0, 1.0]]).repeat(n, 1),
      "joint_pos_rad": torch.tensor([[0.1, 0.2, 0.3]]).repeat(n, 1),
      "joint_vel_rad_s": torch.zeros(n, 3),
      "joint_torque_n_m": torch.zeros(n, 3),
      "foot_pos_w": torch.tensor([[[0.1, 0.0, 0.01], [-0.1, 0.0, 0.01]]]).repeat(n, 1, 1),
      "foot_vel_w": torch.zeros(n, 2, 3),
      "foot_contacts": torch.ones(n, 2),
      "foot_force_w": torch.tensor([[[0.0, 0.0, -12.0], [0.0, 0.0, -12.0]]]).repeat(n, 1, 1),
      "self_force": torch.zeros(n, 4),
      "action": torch.zeros(n, 2),
      "last_action": torch.zeros(n, 2),
      "command": torch.zeros(n, 3),
      "clock_steps": torch.zeros(n, dtype=torch.int64),
      "foot_air_substeps": torch.zeros(n, 2, dtype=torch.int32),
      "foot_contact_substeps": torch.full((n, 2), 4, dtype=torch.int32),
      "foot_peak_m": torch.zeros(n, 2),
      "touchdown": torch.zeros(n, 2, dtype=torch.bool),
      "encoder_bias_rad": torch.zeros(n, 3),
      "home_rad": torch.tensor([0.1, 0.2, 0.3]),
      "gait_joints": torch.tensor([0, 1]),
      "is_arm": torch.tensor([1.0, 0.0]),
      "is_leg": torch.tensor([0.0, 1.0]),
      "soft_low_rad": torch.full((3,), -1.0),
      "soft_high_rad": torch.full((3,), 1.0),
      "foot_radius_m": 0.01,
      "substeps": 4,
      "dt_s": 0.02,
      "commanded": torch.tensor([3, 4, 2]),
      "should_contact_table": torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]),
      "phase_table": torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]]),
      "ground": None,
    }
    twist = torch.zeros(n, 6)
    for name, columns in (("ang_vel_b", slice(0, 3)), ("lin_vel_b", slice(3, 6))):
      if name in given:
        twist[:, columns] = torch.tensor(given.pop(name))
    fields |= {"twist_b": twist, "ang_vel_b": twist[:, :3], "lin_vel_b": twist[:, 3:]}
    for name, value in given.items():
      assert name in fields, name
      tensor = torch.as_tensor(value, dtype=fields[name].dtype)
      fields[name] = tensor.expand(fields[name].shape).clone()
    return State(fields)

  return make
