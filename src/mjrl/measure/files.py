"""The files of a measured replay: measure.csv and measure.json."""

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mjrl.learn.atomic import write_bytes
from mjrl.measure.definitions import DEFINITIONS
from mjrl.measure.measured import Measured

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
