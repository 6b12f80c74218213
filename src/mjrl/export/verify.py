"""Whether an export is whole, and whether it, or another implementation, does what it recorded."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mjrl.export import player
from mjrl.export.folder import LAYOUT
from mjrl.export.layout import SCHEMA
from mjrl.export.reference import OUTPUTS, compare, replay
from mjrl.export.reference import SCHEMA as REFERENCE_SCHEMA

REFERENCE = "reference.json"
WRONG = 1


def verify(folder: Path, recorded: Path | None) -> int:
  """Check an export, or what another implementation made of its reference.

  Args:
    folder: the export.
    recorded: a JSON file, `{"frames": [...]}`, with a frame for each of the reference's, in order:
      one or more of `observation`, `action` and `targets_rad`, lists of numbers.  None runs
      actor.onnx and the player's controller instead.

  Returns:
    The exit code: 0, or 1 if a number is not the reference's.

  Raises:
    ValueError: the folder is no export of this version, a file of it was changed, or the recording
      is none.
  """
  layout, reference = _read_export(folder)
  if recorded is None:
    network = player.Network(folder / "actor.onnx", layout)
    found = replay(reference, player.Controller(layout, network))
    who = "actor.onnx with player.py"
  else:
    found, who = _frames(recorded), str(recorded)
  errors, wrong = compare(layout, reference, found)
  print(f"{who} against the {len(reference['frames'])} frames of {folder / REFERENCE}")
  for name in OUTPUTS:
    if name in errors:
      allowed = reference["tolerances"][name]
      print(f"  {name}: largest difference {errors[name]:.2g}, allowed {allowed:g}")
    else:
      print(f"  {name}: not recorded")
  print(
    "\n".join(
      ["it does not do the same:", *(f"  {line}" for line in wrong)]
      if wrong
      else ["it does the same"]
    )
  )
  return WRONG if wrong else 0


def _read_export(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
  if not (folder / LAYOUT).is_file():
    raise FileNotFoundError(f"no {LAYOUT} in {folder}: name the folder of an export")
  layout = _read(folder / LAYOUT, SCHEMA)
  reference = _read(folder / REFERENCE, REFERENCE_SCHEMA)
  expected = {LAYOUT: reference["layout_sha256"], **layout["files"]}
  for name, sha256 in expected.items():
    path = folder / name
    if not path.is_file():
      raise FileNotFoundError(f"{path} is missing: export again")
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
      raise ValueError(f"{path} is not the file that was exported: export again")
  return layout, reference


def _read(path: Path, schema: str) -> dict[str, Any]:
  content = _json(path)
  found = content.get("schema") if isinstance(content, Mapping) else None
  if found != schema:
    raise ValueError(f"{path} has schema {found!r}; this version of mjrl reads {schema!r}")
  return dict(content)


def _frames(path: Path) -> Sequence[Mapping[str, Any]]:
  content = _json(path)
  frames = content.get("frames") if isinstance(content, Mapping) else None
  if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
    raise ValueError(f'{path} must hold {{"frames": [...]}}, a list of objects')
  return frames


def _json(path: Path) -> Any:
  text = path.read_text(encoding="utf-8")  # outside: a file that is not there says so itself
  try:
    return json.loads(text)
  except ValueError as error:
    raise ValueError(f"{path} is not JSON: {error}") from error
