"""A scene of the list as MJCF: ground, light and sky."""

import mujoco
import numpy as np
from numpy.typing import NDArray

from mjrl.envs.scenes import Look, Scene

_BUMPS_REACH_M = 12.0  # to each side; flat beyond
_BUMPS_CELL_M = 0.06
_ROLE = mujoco.mjtTextureRole.mjTEXROLE_RGB


def add_ground(spec: mujoco.MjSpec, scene: Scene) -> None:
  """Ground, endless, with a sun and a sky."""
  _add_material(spec, scene.look)
  add_sky(spec, scene.look)
  spec.worldbody.add_light(
    name="sun",
    type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    pos=[0, 0, 3],
    dir=list(scene.look.sun),
    castshadow=True,
    diffuse=[0.6] * 3,
    specular=[0.2] * 3,
  )
  if scene.bumps_m:
    _add_bumps(spec, scene.bumps_m)
  _add_geom(
    spec,
    name="far_ground" if scene.bumps_m else "ground",
    type=mujoco.mjtGeom.mjGEOM_PLANE,
    size=[0, 0, 0.05],
    pos=[0, 0, -scene.bumps_m / 2],
  )


def add_sky(spec: mujoco.MjSpec, look: Look) -> None:
  """Sky, haze at the horizon, and light from everywhere."""
  spec.add_texture(
    name="sky",
    type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
    builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
    rgb1=list(look.zenith),
    rgb2=list(look.horizon),
    width=256,
    height=1536,
  )
  spec.visual.rgba.haze = [*look.horizon, 1]
  spec.visual.headlight.ambient = [look.ambient] * 3
  spec.visual.headlight.diffuse = [0.25] * 3
  spec.visual.headlight.specular = [0.05] * 3


def _add_material(spec: mujoco.MjSpec, look: Look) -> None:
  first, second = look.ground
  checker = look.pattern == "checker"
  builtin, mark = mujoco.mjtBuiltin, mujoco.mjtMark
  spec.add_texture(
    name="ground",
    type=mujoco.mjtTexture.mjTEXTURE_2D,
    builtin=builtin.mjBUILTIN_CHECKER if checker else builtin.mjBUILTIN_FLAT,
    mark=mark.mjMARK_NONE if checker else mark.mjMARK_EDGE,
    rgb1=list(first),
    rgb2=list(second),
    markrgb=list(second),
    width=512 if checker else 128,
    height=512 if checker else 128,
  )
  # A checker has two squares to a side, so that either repeats every 10 cm.
  repeat = 5 if checker else 10
  material = spec.add_material(
    name="ground", texrepeat=[repeat, repeat], texuniform=True, reflectance=0.05
  )
  material.textures[_ROLE] = "ground"


def _add_bumps(spec: mujoco.MjSpec, height_m: float) -> None:
  cells = round(2 * _BUMPS_REACH_M / _BUMPS_CELL_M)
  spec.add_hfield(
    name="bumps",
    nrow=cells,
    ncol=cells,
    size=[_BUMPS_REACH_M, _BUMPS_REACH_M, height_m, 0.05],
    userdata=bumps(cells).ravel().tolist(),
  )
  _add_geom(
    spec,
    name="ground",
    type=mujoco.mjtGeom.mjGEOM_HFIELD,
    hfieldname="bumps",
    pos=[0, 0, -height_m / 2],
  )


def bumps(cells: int) -> NDArray[np.float64]:
  """Heights from 0 to 1, (cells, cells), the same always: hills of about four cells."""
  noise = np.random.Generator(np.random.PCG64(0)).random((cells, cells))
  for axis in (0, 1):
    for shift in (1, 2):
      noise = (noise + np.roll(noise, shift, axis)) / 2
  noise = (noise - noise.min()) / (noise.max() - noise.min())
  return np.round(noise, 4)  # so that they survive being written as text


def _add_geom(spec: mujoco.MjSpec, **what: object) -> None:
  spec.worldbody.add_geom(
    material="ground",
    contype=1,
    conaffinity=1,
    condim=1,  # so that friction is the feet's own: they have priority, other parts slide
    **what,
  )
