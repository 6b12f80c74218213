"""The files of a measured replay: measure.csv and measure.json."""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from mjrl.envs.posture import POSTURE
from mjrl.learn.atomic import write_bytes
from mjrl.measure.definitions import DEFINITIONS
from mjrl.measure.figures import SegmentFigures
from mjrl.measure.measured import Circumstances, Measured, MeasuredSegment
from mjrl.measure.series import Posture, Segment

SCHEMA = "mjrl/measure/1"
COMMAND = ("forward_m_s", "left_m_s", "yaw_rad_s")
"""Names of a command's components."""


def write_csv(path: Path, measured: Measured) -> None:
  """Env 0, one row per control step: time_s, segment (its number from 0), then the columns."""
  starts = measured.starts
  number = np.repeat(range(len(measured.segments)), np.diff(starts))
  time_s = measured.dt_s * np.arange(1, starts[-1] + 1)
  table = np.column_stack((time_s, number, np.concatenate([p.env0 for p in measured.segments])))
  text = io.StringIO()
  header = ",".join(("time_s", "segment", *measured.columns))
  formats = ["%.9g", "%d", *["%.6g"] * len(measured.columns)]
  np.savetxt(text, table, fmt=formats, delimiter=",", header=header, comments="")
  write_bytes(path, text.getvalue().encode())


def write_json(path: Path, measured: Measured) -> None:
  """Every figure of every segment over all envs, and the circumstances."""
  text = json.dumps(as_plain(measured), indent=2, allow_nan=False, ensure_ascii=False)
  write_bytes(path, (text + "\n").encode())


def as_plain(measured: Measured) -> dict[str, Any]:
  """What measure.json holds."""
  segments = [
    {
      "number": number,
      "command": dict(zip(COMMAND, part.segment.command, strict=True)),
      "start_s": round(start * measured.dt_s, 9),
      "length_s": round(len(part.env0) * measured.dt_s, 9),
      **asdict(part.figures),
    }
    for number, (part, start) in enumerate(zip(measured.segments, measured.starts, strict=False))
  ]
  return {
    "schema": SCHEMA,
    **asdict(measured.circumstances),
    "segments": segments,
    "definitions": DEFINITIONS,
  }


def read_json(path: Path) -> Measured:
  """What `write_json` wrote: every figure; the series behind the pictures are not in that file.

  Raises:
    ValueError: it is damaged, or of another version of mjrl.
  """
  content = json.loads(path.read_text(encoding="utf-8"))
  try:
    if content["schema"] != SCHEMA:
      raise KeyError("schema")
    return Measured(
      circumstances=_built(Circumstances, content),
      joints=(),
      feet=(),
      joint_range_rad={},
      columns=(),
      segments=tuple(map(_segment, content["segments"])),
    )
  except (KeyError, TypeError) as error:
    raise ValueError(f"it is of another version of mjrl: {error}") from None


def _segment(plain: Mapping[str, Any]) -> MeasuredSegment:
  figures = _built(SegmentFigures, plain)
  nothing = np.zeros((figures.steps, 0))
  forward, left, yaw = (plain["command"][name] for name in COMMAND)
  return MeasuredSegment(
    segment=Segment(name=figures.name, command=(forward, left, yaw), posture=_asked(figures)),
    figures=figures,
    env0=nothing,
    velocity_mean=nothing,
    velocity_std=nothing,
  )


def _asked(figures: SegmentFigures) -> Posture | None:
  """The posture that was asked for."""
  body = figures.posture
  if body is None:
    return None
  twist, pitch, roll, height = (getattr(body, name).commanded for name in POSTURE)
  return twist, pitch, roll, height


def _built(hint: Any, plain: Any) -> Any:
  """A plain value as the dataclass, or what is made of dataclasses, that it came from."""
  arms = [arm for arm in get_args(hint) if is_dataclass(arm)]
  if plain is None:
    return None
  if is_dataclass(hint) and isinstance(hint, type):
    hints = get_type_hints(hint)
    return hint(**{f.name: _built(hints[f.name], plain[f.name]) for f in fields(hint)})
  if get_origin(hint) is dict:
    return {key: _built(get_args(hint)[1], value) for key, value in plain.items()}
  if arms:  # one that may be missing
    return _built(arms[0], plain)
  return tuple(plain) if isinstance(plain, list) else plain
