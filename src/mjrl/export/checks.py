"""What would make an export silently wrong, and is looked at before anything is written.

Each check raises a ValueError that names what does not fit.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from mjrl.envs.task import Task
from mjrl.envs.terms.quantities import QUANTITIES
from mjrl.export.actor import Actor
from mjrl.robots.robot import SENSORS

_HOME_RAD = 1e-4
_SAME = 1e-9


def check_measurable(task: Task, unmeasurable: list[str], allowed: bool) -> None:
  """Refuse a row of which nobody knows what it is, and, unless allowed, one without a sensor."""
  rows = task.observations["policy"]
  for name, row in rows.items():
    if row.fn not in QUANTITIES:
      raise ValueError(
        f"{task.name}: the policy reads {name!r}, and what {row.fn.__name__} is has no entry in "
        "QUANTITIES of mjrl/envs/terms/quantities.py: add it there, and to export/player.py"
      )
  if unmeasurable and not allowed:
    needed = [
      f"{name!r} ({SENSORS[QUANTITIES[rows[name].fn].sensor or '']})" for name in unmeasurable
    ]
    raise ValueError(
      f"{task.name}: the policy reads {', '.join(needed)}, which {task.robot.name} cannot measure: "
      "train without, state the sensor in the robot, or export for simulation alone with "
      "--allow-unmeasurable"
    )


def check_widths(layout: Mapping[str, Any], actor: Actor) -> None:
  """The network's inputs and outputs are the layout's, and its terms fill them without a gap."""
  observation, end = layout["observation"], 0
  for term in observation["terms"]:
    if term["offset"] != end:
      raise ValueError(f"layout: term {term['name']!r} is at {term['offset']}, not at {end}")
    if term["width"] != term["frames"] * len(term["parts"]):
      raise ValueError(
        f"layout: term {term['name']!r} is {term['width']} wide, and has {term['frames']} frames "
        f"of {len(term['parts'])}"
      )
    end += term["width"]
  if not end == observation["width"] == actor.width:
    raise ValueError(
      f"layout: the terms are {end} wide together, the observation {observation['width']}, and "
      f"the network takes {actor.width}"
    )
  outputs = actor(*actor.examples(1))[0].shape[1]
  if not outputs == layout["action"]["width"] == len(layout["joints"]["action"]):
    raise ValueError(
      f"layout: the network gives {outputs} numbers, the action has {layout['action']['width']}, "
      f"for {len(layout['joints']['action'])} joints"
    )


def check_joints(layout: Mapping[str, Any], model: mujoco.MjModel) -> None:
  """Every joint order fits the model's, and the gains are the model's."""
  orders, actuators = layout["joints"], [model.actuator(i).name for i in range(model.nu)]
  driven = [model.joint(int(model.actuator(i).trnid[0])).name for i in range(model.nu)]
  for name in ("model", "wire"):
    if not orders[name] == actuators == driven:
      raise ValueError(
        f"layout: joint order {name!r} is {orders[name]}; the model's servos are {actuators}, on "
        f"joints {driven}"
      )
  for name in ("observation", "action"):
    if orders[name] != [joint for joint in actuators if joint in orders[name]]:
      raise ValueError(
        f"layout: joint order {name!r} is {orders[name]}; it must be some of {actuators}, in their "
        "order"
      )
  held = [joint for joint in actuators if joint not in orders["action"]]
  if orders["held_at_home"] != held:
    raise ValueError(f"layout: {orders['held_at_home']} are held at HOME; not driven are {held}")
  for term in layout["observation"]["terms"]:
    per_joint = any(part in actuators for part in term["parts"])
    if per_joint and term["parts"] != orders["observation"]:
      raise ValueError(
        f"layout: term {term['name']!r} has the joints {term['parts']}; observed are "
        f"{orders['observation']}"
      )


def check_servos(layout: Mapping[str, Any], model: mujoco.MjModel) -> None:
  """Gains and torque limits are those that the model's servos have."""
  control = layout["control"]
  kp, kd, limit = (control[k] for k in ("kp_n_m_rad", "kd_n_m_s_rad", "effort_limit_n_m"))
  found = {
    "kp_n_m_rad": (kp, model.actuator_gainprm[:, 0]),
    "kp_n_m_rad, as a bias": (-kp, model.actuator_biasprm[:, 1]),
    "kd_n_m_s_rad": (-kd, model.actuator_biasprm[:, 2]),
    "effort_limit_n_m": (limit, model.actuator_forcerange[:, 1]),
    "effort_limit_n_m, downwards": (-limit, model.actuator_forcerange[:, 0]),
    "gear": (1.0, model.actuator_gear[:, 0]),
  }
  for name, (said, had) in found.items():
    if np.abs(had - said).max() > _SAME:
      raise ValueError(f"layout: {name} is {said:g}; the model's servos have {sorted(set(had))}")
  if abs(control["physics_dt_s"] - model.opt.timestep) > _SAME:
    raise ValueError(
      f"layout: physics_dt_s is {control['physics_dt_s']}; the model's step is "
      f"{model.opt.timestep} s"
    )


def check_pose(layout: Mapping[str, Any], model: mujoco.MjModel) -> None:
  """HOME is the model's, limits are the model's and in order, and HOME lies within them."""
  home, limits, key = layout["home_rad"], layout["joint_limits_rad"], model.key_qpos[0]
  for name, given in (("home_rad", home), ("joint_limits_rad", limits)):
    if list(given) != layout["joints"]["wire"]:
      raise ValueError(f"layout: {name} is of {list(given)}, not of {layout['joints']['wire']}")
  for name, angle in home.items():
    joint = model.joint(name)
    modelled, (low, high) = key[joint.qposadr[0]], limits[name]
    if abs(angle - modelled) > _HOME_RAD:
      raise ValueError(f"layout: HOME of {name} is {angle} rad; the model's is {modelled}")
    if np.abs(joint.range - (low, high)).max() > _SAME:
      raise ValueError(
        f"layout: limits of {name} are {low} to {high} rad; the model's are {joint.range}"
      )
    if not low < high or not low <= angle <= high:
      raise ValueError(
        f"layout: limits of {name} are {low} to {high} rad, the lower first, and HOME, {angle}, "
        "must lie between"
      )
  if abs(layout["home_height_m"] - key[2]) > _HOME_RAD:
    raise ValueError(
      f"layout: the base's height at HOME is {layout['home_height_m']} m; the model's is {key[2]}"
    )


def check_scene(path: Path, model: mujoco.MjModel) -> None:
  """The MJCF at a path compiles to the model that the policy is compared in."""
  try:
    found = mujoco.MjModel.from_xml_path(str(path))
  except ValueError as error:
    raise ValueError(f"{path.name} does not compile: {error}") from error
  for name in dir(model):
    # Where light comes from is rounded, and matters to no policy; addresses are never the same.
    if name.startswith(("_", "light_")):
      continue
    here, there = getattr(model, name), getattr(found, name)
    if isinstance(here, np.ndarray | int | float) and not np.array_equal(here, there):
      raise ValueError(f"{path.name} is not the model of training: {name} is {there}, not {here}")
  for name in dir(model.opt):
    here, there = getattr(model.opt, name), getattr(found.opt, name)
    if isinstance(here, np.ndarray | int | float) and not np.array_equal(here, there):
      raise ValueError(f"{path.name}: option {name} is {there}, not {here}")
