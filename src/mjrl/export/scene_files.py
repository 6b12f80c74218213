"""The robot and its ground as MJCF: robot.xml as it is in mjrl, and scene.xml around it."""

from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import mujoco

from mjrl.envs.scenery import add_ground
from mjrl.envs.scenes import DEFAULT, SCENES
from mjrl.envs.task import Task

ROBOT, SCENE = "robot.xml", "scene.xml"


def scene_files(task: Task) -> dict[str, bytes]:
  """Name in the export to content.

  The robot's file is copied to the byte, because MuJoCo writes MJCF with six digits, and so are the
  files that it refers to.

  Raises:
    ValueError: it refers to a file outside of its own folder.
  """
  folder = task.robot.mjcf.parent
  files = {ROBOT: task.robot.mjcf.read_bytes(), SCENE: _scene(task)}
  for name in _referred(task.robot.mjcf):
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
      raise ValueError(
        f"{task.robot.mjcf} refers to {name}: files of a robot must lie in its folder, {folder}, "
        "so that an export can hold them"
      )
    files[name] = (folder / name).read_bytes()
  return files


def _scene(task: Task) -> bytes:
  """What `compile_scene` adds to the robot, around an include of it."""
  spec = mujoco.MjSpec()
  add_ground(spec, SCENES[DEFAULT])
  root = ElementTree.fromstring(spec.to_xml())
  root.set("model", task.robot.name)
  for tag in ("compiler", "option", "size", "statistic"):  # the robot's own hold
    for element in root.findall(tag):
      root.remove(element)
  root.insert(0, ElementTree.Element("include", file=ROBOT))
  root.insert(1, ElementTree.Element("option", timestep=repr(task.physics_dt_s)))
  ElementTree.indent(root)
  return ElementTree.tostring(root) + b"\n"


def _referred(mjcf: Path) -> list[str]:
  """Files that an MJCF refers to, relative to its folder: included ones, and those of assets."""
  spec = mujoco.MjSpec.from_file(str(mjcf))
  names = _included(mjcf)
  names += [_under(spec.meshdir, m.file) for m in (*spec.meshes, *spec.hfields, *spec.skins)]
  for texture in spec.textures:
    names += [_under(spec.texturedir, file) for file in (texture.file, *texture.cubefiles)]
  return sorted({name for name in names if name})


def _included(mjcf: Path) -> list[str]:
  found = [element.get("file", "") for element in ElementTree.parse(mjcf).iter("include")]
  return found + [inner for name in found for inner in _included(mjcf.parent / name)]


def _under(folder: str, file: str) -> str:
  return str(PurePosixPath(folder) / file) if file else ""
