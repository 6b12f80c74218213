"""Configuration files: flags, overrides, events of the run and sweeps, in YAML or JSON.

Everything is checked when the file is read: a key that no command looks at is an error.
"""

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from mjrl import yaml_text
from mjrl.cli.flags import CommonFlags, PlayFlags, TrainFlags
from mjrl.cli.settings import Setting
from mjrl.envs.typed import convert, flat
from mjrl.names import nearest
from mjrl.sim.resolve import check_names

SECTIONS = ("set", "events", "sweep", "record")
_OF_TRAINING = ("events", "sweep")
_NOT_IN_FILES = ("config", "list", "set")


@dataclass(frozen=True, kw_only=True)
class Config:
  """What a file says; empty where there is none.

  name       of the file, as it was given
  flags      name of a flag to its value
  overrides  path to value, see `mjrl.envs.overrides`
  events     of the run: name to its function, moment and parameters
  sweep      flag or path to its values, one run for each
  record     what a run that left this file was
  """

  name: str = ""
  flags: Mapping[str, Any] = field(default_factory=dict)
  overrides: Mapping[str, Any] = field(default_factory=dict)
  events: Mapping[str, Any] = field(default_factory=dict)
  sweep: Mapping[str, list[Any]] = field(default_factory=dict)
  record: Mapping[str, Any] = field(default_factory=dict)

  def settings(self) -> dict[str, Setting]:
    """The flags, each with its source."""
    return {
      name: Setting(value=value, source=f"{name} in {self.name}")
      for name, value in self.flags.items()
    }


def read_config(path: Path | None, flags: type[CommonFlags]) -> Config:
  """Read and check a file.

  Args:
    path: None reads nothing.
    flags: whose flags may stand in it.

  Raises:
    ValueError: with the file, the key, and what is wrong with it.
    FileNotFoundError: there is no such file.
  """
  if path is None:
    return Config()
  content = _read(path)
  sections = {name: _section(path, name, content.get(name, {})) for name in SECTIONS}
  for name in _OF_TRAINING:
    if sections[name] and flags is not TrainFlags:
      raise ValueError(f"{path}: {name} has no effect here, only in train.py; leave it out")
  try:
    return Config(
      name=str(path),
      flags=_flags(flags, {key: content[key] for key in content if key not in SECTIONS}),
      overrides=flat(sections["set"]),
      events=sections["events"],
      sweep={
        name: _choices(flags, name, values) for name, values in flat(sections["sweep"]).items()
      },
      record=sections["record"],
    )
  except ValueError as error:
    raise ValueError(f"{path}: {error}") from None


def flag_value(flags: type[CommonFlags], name: str, value: Any, also: tuple[str, ...] = ()) -> Any:
  """A flag's value, as the command line would have made it.

  Raises:
    ValueError: there is no such flag for files, or it takes another kind of value.
  """
  valid = flag_names(flags)
  if name not in valid:
    if name in _NOT_IN_FILES:
      raise ValueError(f"{name} is for the command line alone")
    other, script = (PlayFlags, "play.py") if flags is TrainFlags else (TrainFlags, "train.py")
    if name in flag_names(other):
      raise ValueError(f"{name} has no effect here: it is a flag of {script} alone")
    raise ValueError(f"there is no key {name!r}; {nearest(name, (*valid, *also))}")
  try:
    value = convert(value, get_type_hints(flags)[name])
    if name == "device":
      check_names("auto", value)
    return value
  except ValueError as error:
    raise ValueError(f"{name}: {error}") from None


def flag_names(flags: type[CommonFlags]) -> list[str]:
  """The flags that may stand in a file."""
  return [f.name for f in fields(flags) if f.name not in _NOT_IN_FILES]


def _flags(flags: type[CommonFlags], values: Mapping[Any, Any]) -> dict[str, Any]:
  found: dict[str, Any] = {}
  for key, value in values.items():
    name = str(key).replace("-", "_")
    if name in found:
      raise ValueError(f"the key {name!r} stands twice")
    found[name] = flag_value(flags, name, value, SECTIONS)
  return found


def _choices(flags: type[CommonFlags], name: str, values: Any) -> list[Any]:
  """The values of a sweep; those of paths are checked with the task, later."""
  if not isinstance(values, list) or not values:
    raise ValueError(f"sweep: {name} must be a list of values, and is {values!r}")
  if name in flag_names(flags):
    for value in values:
      flag_value(flags, name, value)
  return values


def _section(path: Path, name: str, value: Any) -> Mapping[str, Any]:
  if not isinstance(value, Mapping):
    raise ValueError(f"{path}: {name} must be a mapping, and is {value!r}")
  return value


def _read(path: Path) -> Mapping[Any, Any]:
  if path.suffix not in (".yaml", ".yml", ".json"):
    raise ValueError(f"--config {path}: the name must end in .yaml, .yml or .json")
  if not path.is_file():
    raise FileNotFoundError(f"--config {path}: there is no such file")
  try:
    text = path.read_text(encoding="utf-8")
    content = _json(text) if path.suffix == ".json" else yaml_text.load(text)
  except ValueError as error:
    raise ValueError(f"{path}: {error}") from None
  if not isinstance(content, Mapping):
    found = "nothing" if content is None else reprlib.repr(content)
    raise ValueError(
      f"{path} holds {found}; a configuration is a mapping of keys to values: write lines such as "
      "num_envs: 64"
    )
  return content


def _json(text: str) -> Any:
  def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    for key in keys:
      if keys.count(key) > 1:
        raise ValueError(f"the key {key!r} stands twice")
    return dict(pairs)

  try:
    return json.loads(text, object_pairs_hook=once)
  except json.JSONDecodeError as error:
    raise ValueError(f"line {error.lineno}: {error.msg}") from None
