"""Scene packages, kk-scene-package/1 and /2: what a manifest and its MJCF may say.

Everything is checked when a package is read, before anything is built; nothing in it is executed.
"""

import json
import math
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from xml.etree import ElementTree
from xml.parsers import expat

from mjrl.envs.package_files import MANIFEST, check_listed, read_files
from mjrl.names import nearest

T = TypeVar("T")

SCHEMAS = ("kk-scene-package/1", "kk-scene-package/2")
CAPABILITIES = ("rigid", "hfield", "flex")
_USES = ("watching", "training")
_FORBIDDEN = ("option", "include", "plugin", "extension", "actuator", "model", "attach", "keyframe")
# The compiler's attribute that says where the files of an element lie.
_FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
COUNTED = ("geoms", "bodies", "lights", "textures", "materials", "meshes")


@dataclass(frozen=True, kw_only=True)
class Prop:
  """A model of its own: its MJCF, and where it is put, m, from where the robot starts."""

  name: str
  file: str
  position: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Package:
  """A scene package that has been checked.

  files        name to content
  world        name of its MJCF
  ground       name of the geom that is the ground
  counts       what there should be of `COUNTED`, of those that are stated
  prefix       that tells its names from the robot's
  spawn_m      where the robot starts: the ground under it
  spawn_site   a site that tells it instead; "" for none
  spawn_rad    the heading that it starts with
  """

  path: Path
  id: str
  title: str
  version: str
  files: Mapping[str, bytes]
  world: str
  ground: str
  counts: Mapping[str, int]
  prefix: str
  props: tuple[Prop, ...]
  spawn_m: tuple[float, float, float]
  spawn_site: str
  spawn_rad: float
  soft: bool

  @property
  def physics(self) -> str:
    """How it differs from the flat ground of training."""
    soft = "; it has soft bodies, which slow a replay about tenfold" if self.soft else ""
    return (
      f"the world of package {self.id} {self.version} ({self.title}), entered where it says; the "
      f"feet keep their friction, everything else has the scene's{soft}"
    )


@lru_cache(maxsize=1)  # it is read to be checked, and again to be built
def read_package(path: Path, robot: str) -> Package:
  """A package, checked.

  Args:
    path: a .map, a .scene.zip or a folder.
    robot: name of the robot that is to enter it, which a package may ask for.

  Raises:
    FileNotFoundError: there is nothing at the path.
    ValueError: whatever it is that is wrong with it.
  """
  try:
    return _read(path, robot)
  except ValueError as error:
    raise ValueError(f"scene package {path}: {error}") from None


def _read(path: Path, robot: str) -> Package:
  files = read_files(path)
  if MANIFEST not in files:
    raise ValueError(f"there is no {MANIFEST} at its root")
  manifest = _parsed(files[MANIFEST])
  schema = manifest.get("schema")
  if schema not in SCHEMAS:
    raise ValueError(f"its schema is {schema!r}; those that are read: {', '.join(SCHEMAS)}")
  if manifest.get("use") not in _USES:
    raise ValueError(f"use is {manifest.get('use')!r}; it must be one of: {', '.join(_USES)}")
  check_listed(files, _mapping(manifest, "files"))
  _check_capabilities(manifest, robot)
  world = _mapping(manifest, "world")
  world_file = _text(world, "file")
  attach = _maybe(world, "attach", Mapping, {})
  spawn = _mapping(manifest, "spawn")
  props = tuple(
    _prop(k, row)
    for k, row in enumerate(_maybe(manifest, "props", list, []))
    if not isinstance(row, Mapping) or "file" in row
  )
  soft = False
  for name in (world_file, *(prop.file for prop in props)):
    soft = _check_mjcf(name, files) or soft
  site = _maybe(spawn, "site", str, "")
  return Package(
    path=path,
    id=_text(manifest, "id"),
    title=_text(manifest, "title"),
    version=_text(manifest, "version"),
    files=files,
    world=world_file,
    ground=_text(_mapping(world, "ground"), "geom"),
    counts={k: n for k, n in _maybe(world, "counts", Mapping, {}).items() if k in COUNTED},
    prefix=_maybe(attach, "prefix", str, "") or "scn_",
    props=props,
    spawn_m=(0.0, 0.0, 0.0) if site else _three(spawn, "position"),
    spawn_site=site,
    spawn_rad=math.radians(_number(spawn.get("yaw", 0.0), "spawn.yaw")),
    soft=soft,
  )


def _parsed(content: bytes) -> Mapping[str, Any]:
  """The manifest; JSON has ways to say a thing twice, and numbers that are none."""

  def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
      if keys.count(key) > 1:
        raise ValueError(f"{MANIFEST}: the key {key!r} stands twice")
    return dict(pairs)

  def no_number(text: str) -> NoReturn:
    raise ValueError(f"{MANIFEST}: {text} is no number")

  try:
    manifest = json.loads(content.decode(), object_pairs_hook=once, parse_constant=no_number)
  except (UnicodeDecodeError, json.JSONDecodeError) as error:
    raise ValueError(f"{MANIFEST}: {error}") from None
  if not isinstance(manifest, dict):
    raise ValueError(f"{MANIFEST} must be a mapping")
  return manifest


def _check_capabilities(manifest: Mapping[str, Any], robot: str) -> None:
  """Refuse what we lack; a package with a robot for display may name that as one."""
  own = manifest.get("robot", {})
  known = (*CAPABILITIES, robot, *(own.values() if isinstance(own, Mapping) else ()))
  for capability in _maybe(manifest, "requiredCapabilities", list, []):
    if capability not in known:
      raise ValueError(
        f"it needs {capability!r}, which mjrl lacks; {nearest(str(capability), CAPABILITIES)}"
      )


def _prop(number: int, row: Any) -> Prop:
  if not isinstance(row, Mapping):
    raise ValueError(f"props: {row!r} must be a mapping")
  name = str(row.get("id", row.get("name", number)))
  position = _three(row, "initPositionRelativeToRobot")
  return Prop(name=name, file=_text(row, "file"), position=position)


def _check_mjcf(name: str, files: Mapping[str, bytes]) -> bool:
  """Check an MJCF; returns whether it has soft bodies.

  Raises:
    ValueError: it is not there, is no XML, or has what could reach beyond the package or the scene.
  """
  if name not in files:
    raise ValueError(f"{name} is named, and not there")
  _check_no_entities(name, files[name])
  root = ElementTree.fromstring(files[name])
  elements = list(root.iter())
  for element in elements:
    if element.tag in _FORBIDDEN:
      raise ValueError(f"{name}: a scene must have no <{element.tag}>")
  compiler = {k: v for element in root.iter("compiler") for k, v in element.attrib.items()}
  here = posixpath.dirname(name)
  for element in elements:
    folder = compiler.get(_FOLDERS.get(element.tag, ""), compiler.get("assetdir", ""))
    for key, value in element.attrib.items():
      if key.startswith("file") and element.tag != "compiler":
        _check_there(name, posixpath.join(here, folder, value), value, files)
  return any(element.tag in ("flex", "flexcomp") for element in elements)


def _check_there(name: str, path: str, said: str, files: Mapping[str, bytes]) -> None:
  # The engine would also look for the same name elsewhere, which is not what was packed.
  if posixpath.normpath(path) not in files or "\\" in said or posixpath.isabs(said):
    raise ValueError(f"{name} names the file {said!r}, which is not in the package")


def _check_no_entities(name: str, content: bytes) -> None:
  def refuse(*_: object) -> NoReturn:
    raise ValueError(f"{name}: a scene's XML must have no DTD and no entities")

  parser = expat.ParserCreate()
  parser.StartDoctypeDeclHandler = refuse
  parser.EntityDeclHandler = refuse
  try:
    parser.Parse(content, True)
  except expat.ExpatError as error:
    raise ValueError(f"{name} is no XML: {error}") from None


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
  value = row.get(key)
  if not isinstance(value, Mapping):
    raise ValueError(f"{key} is {value!r}; it must be a mapping")
  return value


def _maybe(row: Mapping[str, Any], key: str, kind: type[T], default: T) -> T:
  value = row.get(key, default)
  if not isinstance(value, kind):
    raise ValueError(f"{key} is {value!r}; it must be a {kind.__name__.lower()}")
  return value


def _text(row: Mapping[str, Any], key: str) -> str:
  value = row.get(key)
  if not isinstance(value, str) or not value:
    raise ValueError(f"{key} is {value!r}; it must be a text")
  return value


def _number(value: Any, key: str) -> float:
  if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
    raise ValueError(f"{key} is {value!r}; it must be a number")
  return float(value)


def _three(row: Mapping[str, Any], key: str) -> tuple[float, float, float]:
  value = row.get(key)
  if not isinstance(value, list) or len(value) != 3:
    raise ValueError(f"{key} is {value!r}; it must be three numbers")
  x, y, z = (_number(part, key) for part in value)
  return x, y, z
