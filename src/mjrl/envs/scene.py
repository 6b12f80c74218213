"""From a task to the model that the engine steps: the robot on its ground, at the task's rate."""

from math import ceil

import mujoco

from mjrl.envs.task import Task
from mjrl.envs.terms import events
from mjrl.envs.terrain_geoms import add_terrain


def compile_scene(task: Task) -> mujoco.MjModel:
  """The task's robot on its ground.

  Raises:
    ValueError: the MJCF's joints or actuators are not the robot's, in its order.
  """
  spec = mujoco.MjSpec.from_file(str(task.robot.mjcf))
  spec.option.timestep = task.physics_dt_s
  add_ground(spec)
  if task.terrain and task.terrain.rough:
    add_terrain(spec, task.terrain)
  longest_s = max(
    (
      e.params["delay_s"][1]
      for e in task.events.values()
      if e.fn is events.actuator_delay and e.when != "never"
    ),
    default=0.0,
  )
  if longest_s:
    for actuator in spec.actuators:
      actuator.nsample = ceil(longest_s / task.physics_dt_s) + 1
      actuator.delay = longest_s  # the engine keeps that many samples; the event sets each env's
  model = spec.compile()
  _check_order(task, model)
  return model


def add_ground(spec: mujoco.MjSpec) -> None:
  """Flat ground, endless, and a light."""
  spec.add_texture(
    name="ground",
    type=mujoco.mjtTexture.mjTEXTURE_2D,
    builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
    rgb1=[0.91, 0.92, 0.93],
    rgb2=[0.84, 0.86, 0.88],
    width=512,
    height=512,
  )
  material = spec.add_material(name="ground", texrepeat=[5, 5], texuniform=True, reflectance=0.05)
  material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "ground"
  spec.worldbody.add_geom(
    name="ground",
    type=mujoco.mjtGeom.mjGEOM_PLANE,
    size=[0, 0, 0.05],
    material="ground",
    contype=1,
    conaffinity=1,
    condim=1,  # so that friction is the feet's own: they have priority, other parts slide
  )
  spec.worldbody.add_light(
    type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, pos=[0, 0, 3], dir=[0.3, 0.4, -1.0]
  )


def _check_order(task: Task, model: mujoco.MjModel) -> None:
  robot = task.robot
  actuators = tuple(model.actuator(i).name for i in range(model.nu))
  hinges = tuple(
    model.joint(i).name
    for i in range(model.njnt)
    if model.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE
  )
  if actuators != robot.joints or hinges != robot.joints:
    raise ValueError(
      f"{robot.mjcf}: joints {hinges} and actuators {actuators} must both be, in this order, "
      f"{robot.joints}"
    )
