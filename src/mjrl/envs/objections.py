"""Overrides that would do nothing, or not what they seem to, and why."""

from collections.abc import Mapping

from mjrl.envs.paths import find
from mjrl.envs.recipe import Anneal, Recipe
from mjrl.envs.scenes import SCENES, is_package
from mjrl.envs.task import Task


def objection(task: Task, changed: Task, engine: str, path: str) -> str:
  """Why the value at a path has no effect, or another than it seems to have; "" if it does.

  Args:
    task: before the overrides.
    changed: after all of them.
    engine: whose recipe "recipe." stands for.
    path: one that was overridden.
  """
  anneals = changed.recipes[engine].curriculum if engine in changed.recipes else {}
  match find(task, engine, path).path.split("."):
    case ["recipe", number] if engine in changed.recipes:
      return _never_read(changed.recipes[engine], number)
    case ["rewards", row, "weight"]:
      return _still_eased(changed, anneals, row)
    case ["rewards", row, *_, key]:
      return _without_weight(changed, anneals, row) or _set_by_ladder(changed, row, key)
    case ["recipe", "curriculum", name, *_] if name in anneals:
      _, row, key = anneals[name].path.split(".", 2)
      return "" if key == "weight" else _without_weight(changed, anneals, row)
    case ["command", "heading_gain_1_s"] if changed.command and changed.command.heading == 0:
      return "has no effect: with command.heading 0, no env is asked for a heading"
    case ["terrain", key, *_] if key != "ground" and changed.terrain and not changed.terrain.rough:
      return "has no effect: the ground is flat; give --terrain rough too"
    case ["terrain", "curriculum", *_] if changed.terrain and changed.terrain.level is not None:
      return f"has no effect: terrain.level {changed.terrain.level} is where all envs stay"
    case ["events", name, *_, key] if name in changed.events:
      off = "" if key == "when" else _switched_off(changed, name)
      return off or _ruled_out(changed, name, key)
    case ["observations", group, row, "history"]:
      kept = changed.recipes[engine].history if engine in changed.recipes else None
      before, after = (t.observations[group][row] for t in (task, changed))
      if before.history != after.history and before.frames(kept) == after.frames(kept):
        return f"has no effect: recipe.history, {kept}, counts for every row that keeps several"
  return ""


def _never_read(recipe: Recipe, number: str) -> str:
  """Why a number of the recipe has no effect beside its others; "" if it has one."""
  if number in ("entropy_coef", "min_std") and not recipe.learn_std:
    return "has no effect: with recipe.learn_std false, the standard deviation stays what it is"
  if number == "desired_kl" and recipe.schedule != "adaptive":
    return f"has no effect: recipe.schedule is {recipe.schedule}, which looks at no divergence"
  return ""


def _moved(anneals: Mapping[str, Anneal], row: str) -> str:
  """The anneal that gives a row a weight of its own, if there is one."""
  path = f"rewards.{row}.weight"
  return next((name for name, anneal in anneals.items() if anneal.path == path and anneal.easy), "")


def _still_eased(task: Task, anneals: Mapping[str, Anneal], row: str) -> str:
  name = _moved(anneals, row)
  if task.rewards[row].weight or not name:
    return ""
  return (
    f"does not take the row out, as recipe.curriculum.{name} starts from {anneals[name].easy:g}; "
    f"set recipe.curriculum.{name}=null too"
  )


def _without_weight(task: Task, anneals: Mapping[str, Anneal], row: str) -> str:
  if task.rewards[row].weight or _moved(anneals, row):
    return ""
  return f"has no effect: the weight of {row} is 0"


def _switched_off(task: Task, name: str) -> str:
  if task.events[name].when != "never":
    return ""
  return f"has no effect: {name} never happens; set events.{name}.when=startup too"


def _ruled_out(task: Task, name: str, key: str) -> str:
  """What the task's scene has to say about an event, see `mjrl.envs.scene.in_scene`."""
  event = task.events[name].fn.__name__
  if is_package(task.scene):
    placed = event == "start_at_home" and key in ("spread_m", "yaw_rad")
    return "has no effect: the scene package says where robots start" if placed else ""
  if event == "foot_friction" and SCENES[task.scene].foot_friction is not None:
    return f"has no effect: scene {task.scene} has a friction of its own"
  return ""


def _set_by_ladder(task: Task, row: str, key: str) -> str:
  for name, ladder in task.all_ladders.items():
    for what, tracked in ladder.tracked(0).items():
      if (row, key) == (tracked.reward, f"std_{tracked.unit}"):
        where = "curriculum" if name == "command" else f"ladders.{name}"
        return f"has no effect: each rung sets it, see {where}.rungs.0.{what}_{key}"
  return ""
