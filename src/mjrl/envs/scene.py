"""From a task to the model that the engine steps: the robot in its scene, at the task's rate."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import mujoco

from mjrl.envs.attach import attach_package
from mjrl.envs.package import read_package
from mjrl.envs.scenery import add_ground, add_sky
from mjrl.envs.scenes import SCENES, STUDIO, is_package
from mjrl.envs.task import Event, Task
from mjrl.envs.terms import events
from mjrl.envs.terrain_geoms import add_terrain

# How far shadows reach from a robot, of which they are as sharp as this is small, and what near and
# far clipping of a picture are multiples of.  For looks alone.
_EXTENT_M, _EXTENT_HEIGHTS = 1.0, 3.0


def compile_scene(task: Task) -> mujoco.MjModel:
  """The task's robot in its scene.

  Raises:
    ValueError: the MJCF's joints or actuators are not the robot's, in its order; or a scene package
      that does not fit.
  """
  spec = mujoco.MjSpec.from_file(str(task.robot.mjcf))
  spec.option.timestep = task.physics_dt_s
  spec.stat.extent = max(_EXTENT_M, _EXTENT_HEIGHTS * task.robot.home_height_m)
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
  if is_package(task.scene):
    add_sky(spec, STUDIO)
    model = attach_package(spec, read_package(Path(task.scene), task.robot.name), task.robot)
  else:
    model = _in_list(spec, task)
  _check_order(task, model)
  return model


def in_scene(task: Task) -> Task:
  """The task without those of its events that its scene rules out.

  A scene that has a friction of its own has no other drawn, and a package is entered where it says.
  """
  package = is_package(task.scene)
  slippery = not package and SCENES[task.scene].foot_friction is not None

  def ruled(event: Event) -> Event:
    if slippery and event.fn is events.foot_friction:
      return replace(event, when="never", every_s=None)
    if package and event.fn is events.start_at_home:
      return replace(event, params={**event.params, "spread_m": 0.0, "yaw_rad": 0.0})
    return event

  if not (package or slippery):
    return task
  return replace(task, events={name: ruled(event) for name, event in task.events.items()})


def _in_list(spec: mujoco.MjSpec, task: Task) -> mujoco.MjModel:
  scene = SCENES[task.scene]
  add_ground(spec, scene)
  if task.terrain and task.terrain.rough:
    add_terrain(spec, task.terrain)
  if scene.foot_friction is not None:
    for foot in task.robot.feet:
      spec.geom(f"{foot}_foot").friction[0] = scene.foot_friction
  return spec.compile()


def _check_order(task: Task, model: mujoco.MjModel) -> None:
  robot = task.robot
  own = model.body_rootid[model.jnt_bodyid] == model.body(robot.base_body).rootid
  actuators = tuple(model.actuator(i).name for i in range(model.nu))
  hinges = tuple(
    model.joint(i).name
    for i in range(model.njnt)
    if own[i] and model.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE
  )
  if actuators != robot.joints or hinges != robot.joints:
    raise ValueError(
      f"{robot.mjcf}: joints {hinges} and actuators {actuators} must both be, in this order, "
      f"{robot.joints}"
    )
