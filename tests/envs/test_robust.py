"""presets/robust.yaml: each of its rows reaches the engine, in every env with another number."""

from pathlib import Path

import pytest
import torch

from mjrl import tasks
from mjrl.cli.changes import Layer, change
from mjrl.cli.config import read_config
from mjrl.cli.flags import PlayFlags, TrainFlags
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.measure.replayed import unused
from mjrl.sim.warp import WarpBackend

PRESET = Path(__file__).parents[2] / "presets/robust.yaml"
ROWS = ("mass", "gains", "strength", "delay", "foot_friction", "base_com", "encoder_bias", "push")
N = 5


def with_preset(task, flags=TrainFlags, **more):
  values = read_config(PRESET, flags).overrides
  return change(task, "native", (Layer(source="the preset", values=values),), **more).task


@pytest.fixture(scope="module")
def robust():
  return with_preset(tasks.build("jumper.tripod"))


@pytest.fixture(params=["native", "warp"])
def env(request, robust, make_env):
  if request.param == "native":
    return make_env(robust, N)
  return Env(robust, WarpBackend(compile_scene(robust), N, "cpu", nconmax=24, njmax=80), 0)


def one_each(values):
  """Whether every env has numbers of its own."""
  return len(values.flatten(1).unique(dim=0)) == N


def within(values, bounds):
  low, high = bounds
  return bool((values >= low - 1e-5).all() and (values <= high + 1e-5).all())


@pytest.mark.parametrize("name", tasks.TASKS)
def test_every_walking_task_takes_the_preset(name):
  # Guards: a row that one page spells differently, so that the same preset does less there.
  task = with_preset(tasks.build(name))
  assert all(task.events[row].when != "never" for row in ROWS)


def test_a_replay_takes_the_preset():
  # Guards: robots of a kind that a policy can be trained on and not measured with.
  task = tasks.build("jumper.tripod")
  given = {"obs_noise": True, "held": False, "physics_hz": None}
  refuse = {"refuse": lambda path, _: unused(task, path, **given)}
  assert with_preset(task, PlayFlags, **refuse).events["mass"].when == "startup"


def test_the_engine_has_other_numbers_in_every_env(env):
  # Guards: a row that is in the table, is drawn, and never arrives; one number for all robots.
  params = {name: event.params for name, event in env.task.events.items()}
  model, default = env.backend.get_model, env.backend.default
  mass = model("body_mass")[:, 1:] / default("body_mass")[1:]
  inertia = model("body_inertia")[:, 1:] / default("body_inertia")[1:]
  stiffness = model("actuator_gainprm")[:, :, 0] / 10.0
  damping = -model("actuator_biasprm")[:, :, 2] / 0.5
  strength = model("actuator_forcerange")[:, :, 1] / 1.7464
  friction = model("geom_friction")[:, env.backend.model.geom("LM_foot").id, 0]
  for value, bounds in (
    (mass, params["mass"]["factor"]),
    (inertia, params["mass"]["factor"]),
    (stiffness, params["gains"]["stiffness"]),
    (damping, params["gains"]["damping"]),
    (strength, params["strength"]["factor"]),
    (model("actuator_delay"), params["delay"]["delay_s"]),
    (friction[:, None], params["foot_friction"]["sliding"]),
  ):
    assert one_each(value) and within(value, bounds)
    assert value.std() > 0.2 * (bounds[1] - bounds[0]) / 12**0.5  # and not all in one place
  assert one_each(model("body_ipos")) and one_each(env.world.encoder_bias_rad)
  assert torch.equal(model("actuator_forcerange")[:, :, 0], -model("actuator_forcerange")[:, :, 1])
  assert torch.equal(model("actuator_biasprm")[:, :, 1], -model("actuator_gainprm")[:, :, 0])


def test_a_weaker_motor_pulls_less(env):
  # Guards: a limit in the model that the engine does not read per env.
  action = torch.zeros(N, 20)
  action[:, 12] = 40.0  # a target far beyond what any motor can pull to
  joint = env.robot.joints.index(env.robot.gait_joints[12])
  for _ in range(3):  # longer than any delay
    torque = env.step(action).state.joint_torque_n_m[:, joint]
  torch.testing.assert_close(
    torque, env.backend.get_model("actuator_forcerange")[:, joint, 1], atol=1e-4, rtol=0
  )
  assert one_each(torque[:, None])


def test_pushes_come_to_every_robot_in_its_own_time(robust, make_env):
  # Guards: pushes that the preset takes out, or that come to all robots at once.
  env = make_env(robust, N)
  env.commands.fix(torch.zeros(N, 3))
  speed = torch.stack(
    [env.step(torch.zeros(N, 20)).state.lin_vel_b[:, :2].norm(dim=1) for _ in range(400)]
  )
  pushed = (speed[41:] - speed[40:-1]) > 0.03  # they have come down by then, and stand
  assert pushed.any(0).all() and len({tuple(times) for times in pushed.T.tolist()}) == N


def test_without_the_preset_robots_are_alike(tripod, make_env):
  # Guards: a row that is called off and still draws: the task is another one, and so is every run.
  model = make_env(tripod, N).backend
  for field in ("body_mass", "actuator_gainprm", "actuator_forcerange", "actuator_delay"):
    shared = model.default(field)
    assert torch.equal(model.get_model(field), shared.expand(N, *shared.shape)), field
  assert model.model.actuator_delay.max() == 0
