"""reference.json: recorded control steps against which another implementation can be checked."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mjrl.export import player
from mjrl.export.agreement import place
from mjrl.export.runs import Command, Frame

SCHEMA = "mjrl/reference/1"
OUTPUTS = ("observation", "action", "targets_rad")
TOLERANCES = {"observation": 1e-5, "action": 1e-4, "targets_rad": 1e-4}

_STAND, _WALK, _TURN = 10, 20, 10  # control steps


def commands(layout: Mapping[str, Any]) -> list[Command]:
  """Stand, walk, and turn while going sideways: every rule of the layout is used."""
  forward, left, yaw = walking(layout)
  return [(0.0, 0.0, 0.0)] * _STAND + [(forward, 0.0, 0.0)] * _WALK + [(0.0, left, yaw)] * _TURN


def walking(layout: Mapping[str, Any]) -> Command:
  """Half of the fastest command that was trained, each way."""
  ranges = layout["command"]["trained"]
  forward, left, yaw = (0.5 * ranges[name][1] for name in layout["command"]["parts"])
  return forward, left, yaw


def build_reference(
  layout: Mapping[str, Any],
  layout_sha256: str,
  frames: Sequence[Frame],
  simulation: player.Simulation,
) -> dict[str, Any]:
  """What the robot sensed and was asked for, and what the policy made of it, step by step."""
  steps = []
  for frame in frames:
    simulation.load(frame.state, frame.forces)
    measured = {name: value.tolist() for name, value in simulation.read().items()}
    steps.append(
      {
        "measured": measured,
        "command": _short(frame.command),
        "clock_step": frame.clock_step if layout["gait"] else None,
        "observation": _short(frame.observation),
        "action": _short(frame.action),
        "targets_rad": _short(frame.targets_rad),
      }
    )
  return {
    "schema": SCHEMA,
    "layout_sha256": layout_sha256,
    "task": layout["task"],
    "about": "One run from its start: nothing is remembered before frame 0, whose previous action "
    "is zero and which fills every history. Go through the frames in order; 'measured', 'command' "
    "and, where there is a gait, the 'clock_step' of frame 0 go in, the rest must come out.",
    "tolerances": TOLERANCES,
    "frames": steps,
  }


def as_text(reference: Mapping[str, Any]) -> str:
  """JSON with a line for each frame."""
  rest = {key: value for key, value in reference.items() if key != "frames"}
  head = json.dumps(rest, indent=2, ensure_ascii=False).removesuffix("\n}")
  lines = ",\n".join("    " + json.dumps(frame, allow_nan=False) for frame in reference["frames"])
  return f'{head},\n  "frames": [\n{lines}\n  ]\n}}\n'


def replay(reference: Mapping[str, Any], controller: player.Controller) -> list[dict[str, Any]]:
  """What a controller makes of the frames' inputs."""
  frames = reference["frames"]
  controller.start(frames[0]["clock_step"] or 0)
  found = []
  for frame in frames:
    measured = {name: np.array(value) for name, value in frame["measured"].items()}
    out = controller.step(measured, np.array(frame["command"]))
    found.append({name: value.tolist() for name, value in out._asdict().items()})
  return found


def compare(
  layout: Mapping[str, Any], reference: Mapping[str, Any], found: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, float], list[str]]:
  """Recorded outputs against the reference's.

  Args:
    layout: of the export.
    reference: of the export.
    found: for each frame some of `OUTPUTS`, the same ones in each.

  Returns:
    The largest error of each output that is there, and what is wrong, a line for each output.

  Raises:
    ValueError: the recording has not the form of one.
  """
  wanted = reference["frames"]
  names = [name for name in OUTPUTS if found and name in found[0]]
  if len(found) != len(wanted) or not names:
    raise ValueError(
      f"the recording has {len(found)} frames with {names or 'no outputs'}; it must have "
      f"{len(wanted)}, each with one or more of {', '.join(OUTPUTS)}"
    )
  errors, wrong = dict.fromkeys(names, 0.0), {}
  for k, (mine, theirs) in enumerate(zip(wanted, found, strict=True)):
    for name in names:
      got = _numbers(theirs.get(name), len(mine[name]), f"frame {k}: {name}")
      error = np.abs(got - mine[name])
      at = int(error.argmax())
      errors[name] = max(errors[name], float(error[at]))
      limit = reference["tolerances"][name]
      if not error[at] <= limit and name not in wrong:
        wrong[name] = (
          f"frame {k}: {name}[{at}], {_label(layout, name, at)}, is {got[at]:.6g}, not "
          f"{mine[name][at]:.6g} (allowed: {limit:g}); it is the first that is wrong"
        )
  return errors, list(wrong.values())


def _label(layout: Mapping[str, Any], name: str, at: int) -> str:
  if name == "observation":
    return place(layout, at)
  return layout["joints"]["action" if name == "action" else "wire"][at]


def _numbers(values: Any, count: int, what: str) -> NDArray[np.float64]:
  try:
    got = np.array(values, dtype=np.float64)
  except (TypeError, ValueError):
    got = np.empty(0)
  if got.shape != (count,):
    raise ValueError(f"{what} must be a list of {count} numbers")
  return got


def _short(values: NDArray[Any]) -> list[float]:
  """The shortest decimals that are still the same float32."""
  return [float(str(value)) for value in values.astype(np.float32)]
