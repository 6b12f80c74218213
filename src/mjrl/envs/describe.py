"""A task as plain values: for checkpoints, run files, and to see what differs."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any


def describe(value: Any) -> Any:
  """Dataclasses as dicts, functions as "module:name", tuples as lists, paths as their last part."""
  if is_dataclass(value) and not isinstance(value, type):
    return {f.name: describe(getattr(value, f.name)) for f in fields(value)}
  if isinstance(value, Mapping):
    return {str(key): describe(item) for key, item in value.items()}
  if isinstance(value, list | tuple):
    return [describe(item) for item in value]
  if isinstance(value, Path):
    return value.name
  if callable(value):
    return f"{value.__module__}:{value.__name__}"
  return value


def differences(old: Any, new: Any, path: str = "") -> list[str]:
  """Where two descriptions differ, a line each: "path: old -> new"."""
  if isinstance(old, Mapping) and isinstance(new, Mapping):
    lines = []
    for key in dict.fromkeys([*old, *new]):
      here = f"{path}.{key}" if path else str(key)
      if key not in old:
        lines.append(f"{here}: absent -> {new[key]}")
      elif key not in new:
        lines.append(f"{here}: {old[key]} -> absent")
      else:
        lines += differences(old[key], new[key], here)
    return lines
  return [] if old == new else [f"{path}: {old} -> {new}"]
