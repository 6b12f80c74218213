"""The README.md of an export: for whoever wires the policy to a robot."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

_TEMPLATE = Path(__file__).parent / "readme_template.md"
_NONE = "-"


def readme(layout: Mapping[str, Any], torchscript: bool) -> str:
  """The page, with the figures of a layout.

  Args:
    layout: whole, with its checks.
    torchscript: whether there is an actor.pt.
  """
  text = _TEMPLATE.read_text(encoding="utf-8")
  if layout["gait"] is None:
    text = _without(text, "Gait clock")
  if not layout["network"]["memory"]:
    text = _without(text, "Memory")
  fields = _head(layout, torchscript) | _observation(layout) | _action(layout) | _gait(layout)
  return Template(text).substitute(fields | _joints(layout) | _checks(layout))


def _without(text: str, heading: str) -> str:
  return re.sub(rf"^## {heading}\n.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)


def _head(layout: Mapping[str, Any], torchscript: bool) -> dict[str, Any]:
  source, command = layout["source"], layout["command"]
  level = command["level"]
  missing = ", ".join(layout["not_measurable"])
  return {
    "task": layout["task"],
    "robot": layout["robot"],
    **{name: source[name] for name in ("checkpoint", "iteration", "run", "trained_on")},
    "level": "" if level is None else f" (level {level} of 0 to {command['levels'] - 1})",
    "ranges": "\n".join(
      f"- `{name}` {low:g} to {high:g}" for name, (low, high) in command["trained"].items()
    ),
    "warning": f"\n**For simulation alone**: the robot cannot measure {missing}.\n"
    if missing
    else "",
    "torchscript": "\n| `actor.pt` | the same network as TorchScript |" if torchscript else "",
    "speed": f"{layout['checks']['closed_loop']['command'][0]:g}",
  }


def _observation(layout: Mapping[str, Any]) -> dict[str, Any]:
  rows = []
  for term in layout["observation"]["terms"]:
    last = term["offset"] + term["width"] - 1
    clip = _NONE if term["clip"] is None else "{:g} to {:g}".format(*term["clip"])
    cells = (
      f"{term['offset']} to {last}",
      f"`{term['name']}`",
      _parts(layout, term["parts"]),
      term["frames"],
      term["unit"] or _NONE,
      f"{term['scale']:g}",
      clip,
      term["delay_steps"],
      term["meaning"],
    )
    rows.append(_row(cells))
  return {
    "observation_width": layout["observation"]["width"],
    "terms": "\n".join(rows),
    "standing_norm": f"{layout['command']['standing_norm']:g}",
  }


def _action(layout: Mapping[str, Any]) -> dict[str, Any]:
  control, held = layout["control"], layout["joints"]["held_at_home"]
  return {
    "action_width": layout["action"]["width"],
    "scale_rad": f"{layout['action']['scale_rad']:g}",
    "held": f"The others, {', '.join(held)}, stay at HOME." if held else "",
    "kp": f"{control['kp_n_m_rad']:g}",
    "kd": f"{control['kd_n_m_s_rad']:g}",
    "effort": f"{control['effort_limit_n_m']:g}",
    "control_hz": f"{control['control_hz']:g}",
    "physics_hz": f"{1 / control['physics_dt_s']:g}",
    "decimation": control["decimation"],
  }


def _gait(layout: Mapping[str, Any]) -> dict[str, Any]:
  gait = layout["gait"]
  if gait is None:
    return {"clock_too": ""}
  return {
    "clock_too": " and advance the gait clock by one step",
    "gait": gait["name"],
    "cycle_steps": gait["cycle_steps"],
    "last_step": gait["cycle_steps"] - 1,
    "period_s": f"{gait['period_s']:g}",
    "frequency_hz": f"{gait['frequency_hz']:g}",
    "swing_steps": gait["swing_steps"],
    "swing_order": "; then ".join(", ".join(group) for group in gait["swing_order"]),
  }


def _joints(layout: Mapping[str, Any]) -> dict[str, Any]:
  orders, limits = layout["joints"], layout["joint_limits_rad"]
  rows = [
    _row(
      (
        k,
        joint,
        orders["action"].index(joint) if joint in orders["action"] else _NONE,
        f"{layout['home_rad'][joint]:g}",
        "{:g} to {:g}".format(*limits[joint]),
      )
    )
    for k, joint in enumerate(orders["wire"])
  ]
  memory = layout["network"]["memory"]
  return {
    "joints": "\n".join(rows),
    "home_height": f"{layout['home_height_m']:g}",
    "memory": "\n".join(_row((m["input"], m["output"], m["shape"])) for m in memory),
  }


def _checks(layout: Mapping[str, Any]) -> dict[str, Any]:
  loop = layout["checks"]["closed_loop"]
  return {
    "asked": _numbers(loop["command"]),
    "player": _numbers(loop["velocity_player"]),
    "mjrl": _numbers(loop["velocity_mjrl"]),
    "seconds": f"{loop['seconds']:g}",
    "fell": "" if loop["fell_after_s"] is None else " **Then the robot fell.**",
  }


def _parts(layout: Mapping[str, Any], parts: Sequence[str]) -> str:
  if list(parts) == layout["joints"]["observation"]:
    return f"the {len(parts)} driven joints"
  return ", ".join(parts)


def _row(cells: Sequence[Any]) -> str:
  return f"| {' | '.join(map(str, cells))} |"


def _numbers(values: Sequence[float]) -> str:
  return ", ".join(f"{value:.3f}" for value in values)
