"""A scene package around the robot."""

import posixpath
from math import cos, sin

import mujoco
import numpy as np

from mjrl.envs.package import COUNTED, Package
from mjrl.robots.robot import Robot

_FIELDS = {  # of the robot's own parts, which a scene must leave as they are
  "body": ("body_mass", "body_inertia", "body_ipos", "body_pos", "body_quat"),
  "dof": ("dof_damping", "dof_armature", "dof_frictionloss"),
  "jnt": ("jnt_type", "jnt_axis", "jnt_range", "jnt_stiffness"),
  "geom": ("geom_size", "geom_friction", "geom_solref", "geom_solimp", "geom_contype"),
  "actuator": ("actuator_gainprm", "actuator_biasprm", "actuator_forcerange", "actuator_gear"),
}
_OPTIONS = ("timestep", "gravity", "integrator", "solver", "iterations", "cone", "disableflags")


def attach_package(spec: mujoco.MjSpec, package: Package, robot: Robot) -> mujoco.MjModel:
  """The robot in the package's world, which is moved so that the robot starts at the origin.

  So heights count from the ground under the robot's start, as on flat ground, and its events need
  to know nothing of the package.

  Args:
    spec: the robot alone, with all that is to be set of it.
    package: its world.
    robot: whose spec it is.

  Raises:
    ValueError: the package does not compile, is not what its manifest says, or would change the
      robot.
  """
  try:
    return _attach(spec, package, robot)
  except ValueError as error:
    raise ValueError(f"scene package {package.path}: {error}") from None


def _attach(spec: mujoco.MjSpec, package: Package, robot: Robot) -> mujoco.MjModel:
  alone = spec.compile()
  world = _spec(package, package.world)
  own = _compiled(world, package.world)
  _check_counts(own, package)
  start_m = _start_m(own, package)
  yaw = -package.spawn_rad
  turn = np.array([[cos(yaw), -sin(yaw), 0], [sin(yaw), cos(yaw), 0], [0, 0, 1]])
  _add(spec, world, package.prefix, -turn @ start_m, yaw)
  for prop in package.props:
    _add(spec, _spec(package, prop.file), f"{package.prefix}{prop.name}_", prop.position, 0.0)
  model = _compiled(spec, "with the robot in it, the scene")
  _check_robot(alone, model, robot.base_body)
  _check_ground(model, package, robot)
  return model


def _spec(package: Package, name: str) -> mujoco.MjSpec:
  folder = posixpath.dirname(name)
  assets = {posixpath.relpath(path, folder or "."): data for path, data in package.files.items()}
  try:
    return mujoco.MjSpec.from_string(package.files[name].decode(), assets=assets)
  except ValueError as error:
    raise ValueError(f"{name}: {_short(error)}") from None


def _compiled(spec: mujoco.MjSpec, what: str) -> mujoco.MjModel:
  try:
    return spec.compile()
  except ValueError as error:
    raise ValueError(f"{what} does not compile: {_short(error)}") from None


def _short(error: Exception) -> str:
  return " ".join(str(error).removeprefix("Error: ").split())


def _check_counts(model: mujoco.MjModel, package: Package) -> None:
  numbers = (model.ngeom, model.nbody - 1, model.nlight, model.ntex, model.nmat, model.nmesh)
  found: dict[str, int] = dict(zip(COUNTED, numbers, strict=True))
  for name, count in package.counts.items():
    if found[name] != count:
      raise ValueError(f"it has {found[name]} {name}, and its manifest counts {count}")


def _start_m(model: mujoco.MjModel, package: Package) -> np.ndarray:
  if not package.spawn_site:
    return np.array(package.spawn_m)
  sites = [model.site(k).name for k in range(model.nsite)]
  if package.spawn_site not in sites:
    raise ValueError(f"spawn.site is {package.spawn_site!r}; its sites are {', '.join(sites)}")
  data = mujoco.MjData(model)
  mujoco.mj_kinematics(model, data)
  return data.site(package.spawn_site).xpos


def _add(
  spec: mujoco.MjSpec, child: mujoco.MjSpec, prefix: str, position: object, yaw_rad: float
) -> None:
  spec.assets = {**(spec.assets or {}), **child.assets}
  quat = [cos(yaw_rad / 2), 0, 0, sin(yaw_rad / 2)]
  spec.attach(child, frame=spec.worldbody.add_frame(pos=position, quat=quat), prefix=prefix)


def _check_robot(alone: mujoco.MjModel, model: mujoco.MjModel, base_body: str) -> None:
  """The robot's own parts must be the same numbers, in the same order."""
  for kind, fields in _FIELDS.items():
    for field in fields:
      before, after = (getattr(one, field)[_own(one, kind, base_body)] for one in (alone, model))
      if not np.array_equal(before, after):
        raise ValueError(f"it would change the robot: {field} is another of one of its {kind}s")
  for option in _OPTIONS:
    if not np.array_equal(getattr(alone.opt, option), getattr(model.opt, option)):
      raise ValueError(f"it would change the simulation's {option}")


def _own(model: mujoco.MjModel, kind: str, base_body: str) -> np.ndarray:
  """Which of the model's parts of a kind are the robot's, bool."""
  if kind == "actuator":
    return np.ones(model.nu, bool)
  bodies = model.body_rootid == model.body(base_body).id
  return bodies if kind == "body" else bodies[getattr(model, f"{kind}_bodyid")]


def _check_ground(model: mujoco.MjModel, package: Package, robot: Robot) -> None:
  """The ground must be there, be part of the world, and stop the feet."""
  names = {model.geom(k).name for k in range(model.ngeom)}
  name = f"{package.prefix}{package.ground}"
  if name not in names:
    raise ValueError(f"world.ground.geom is {package.ground!r}, and there is no such geom")
  ground = model.geom(name)
  if ground.bodyid[0] != 0:
    raise ValueError(
      f"the ground {package.ground!r} lies in a body; it must be a geom of the worldbody, for "
      "contacts of feet to count"
    )
  for foot in robot.feet:
    geom = model.geom(f"{foot}_foot")
    meets = geom.contype[0] & ground.conaffinity[0] | ground.contype[0] & geom.conaffinity[0]
    if not meets:
      raise ValueError(f"foot {foot} would fall through the ground: their contype do not meet")
