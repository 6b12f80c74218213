"""From a task to the model that the engine steps: the robot on its ground, at the task's rate."""

from math import ceil
from typing import Any

import mujoco
import numpy as np

from mjrl.envs.task import Task
from mjrl.envs.terms import events
from mjrl.envs.terrain import Terrain
from mjrl.envs.terrain_shapes import Array, tile_centres_m, tiles

_DEEP_M = 0.1  # how far shapes go down into the ground, so that their only faces are those one sees
_COLOR = [0.62, 0.70, 0.66, 1]


def compile_scene(task: Task) -> mujoco.MjModel:
  """The task's robot on its ground.

  Raises:
    ValueError: the MJCF's joints or actuators are not the robot's, in its order.
  """
  spec = mujoco.MjSpec.from_file(str(task.robot.mjcf))
  spec.option.timestep = task.physics_dt_s
  add_ground(spec)
  if task.terrain and task.terrain.rough:
    _add_terrain(spec, task.terrain)
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


def _add_terrain(spec: mujoco.MjSpec, terrain: Terrain) -> None:
  """The grid's shapes, on the flat ground that there is."""
  centres = tile_centres_m(terrain)
  for level, row in enumerate(tiles(terrain)):
    for column, tile in enumerate(row):
      x, y = centres[level, column]
      for box_x, box_y, half_x, half_y, top in tile.boxes:
        half_z = (top + _DEEP_M) / 2
        _add_shape(
          spec,
          type=mujoco.mjtGeom.mjGEOM_BOX,
          pos=[x + box_x, y + box_y, top - half_z],
          size=[half_x, half_y, half_z],
        )
      for ball_x, ball_y, radius, top in tile.mounds:
        _add_shape(
          spec,
          type=mujoco.mjtGeom.mjGEOM_SPHERE,
          pos=[x + ball_x, y + ball_y, top - radius],
          size=[radius, 0, 0],
        )
      for k, side in enumerate(side for ring in tile.rings for side in _sides(ring)):
        mesh = spec.add_mesh(name=f"slope {level} {column} {k}", uservert=side.ravel())
        _add_shape(spec, type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh.name, pos=[x, y, 0])


def _add_shape(spec: mujoco.MjSpec, **geom: Any) -> None:
  spec.worldbody.add_geom(contype=1, conaffinity=1, condim=1, rgba=_COLOR, **geom)


def _sides(ring: Array) -> list[Array]:
  """A ring as its four sides, each convex and cut off along the diagonals: corners, (12, 3)."""
  inner, outer, slope, crest = ring
  run = crest / slope
  profile = [  # seen along a side: distance from the middle, height
    (inner, -_DEEP_M),
    (inner, 0.0),
    (inner + run, crest),
    (outer - run, crest),
    (outer, 0.0),
    (outer, -_DEEP_M),
  ]
  corners = np.array([(out, end * out, z) for out, z in profile for end in (-1, 1)])
  turns = ((1, 0), (0, 1), (-1, 0), (0, -1))  # cosine and sine of quarter turns
  return [corners @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) for c, s in turns]


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
