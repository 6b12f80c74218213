"""What `play.py --evaluate` and `--compare` plan and refuse, before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mjrl.cli.flags import PlayFlags
from mjrl.cli.prepare import SharedPlan
from mjrl.sim.resolve import Resolved

if TYPE_CHECKING:
  from mjrl.envs.task import Task
  from mjrl.measure.conditions import Condition
  from mjrl.measure.grid import Grid


@dataclass(frozen=True, kw_only=True)
class PlannedEvaluation:
  """An evaluation that has been checked, and not yet been built.

  tasks  of the policy, or of the two that are compared
  """

  tasks: tuple[Task, ...]
  resolved: Resolved
  grid: Grid
  conditions: tuple[Condition, ...]


def check_evaluation(flags: PlayFlags, sources: Mapping[str, str]) -> None:
  """Refuse what goes with no evaluation, or only with one.

  Args:
    flags: settings applied.
    sources: flag to where its value came from.

  Raises:
    ValueError: names the two that exclude one another.
  """
  if not (flags.evaluate or flags.compare):
    if "conditions" in sources:
      raise ValueError("--conditions has no effect without --evaluate or --compare")
    return
  asked = "--compare" if flags.compare is not None else "--evaluate"
  excluded = {
    "measure": (flags.measure, "that measures a series of commands, this a grid of them; give one"),
    "command": (flags.command is not None, "an evaluation has commands of its own"),
    "no-obs-noise": (not flags.obs_noise, "choose with --conditions clean"),
  }
  if flags.compare is not None:
    excluded["checkpoint"] = (flags.checkpoint is not None, "name both policies after --compare")
    excluded["agent"] = (flags.agent != "trained", "two trained policies are compared")
  for name, (given, why) in excluded.items():
    if given:
      source = sources.get(name, "given")
      said = f"--{name}" if source == "given" else source
      raise ValueError(f"{said} does not go with {asked}: {why}")


def plan_evaluation(
  flags: PlayFlags, resolved: Resolved, task: Task, rival: Task | None
) -> PlannedEvaluation:
  """The grid, the conditions and the envs of an evaluation.

  Args:
    flags: settings applied.
    resolved: engine and device.
    task: of the policy, or of the first of two.
    rival: of the second.

  Raises:
    ValueError: a task without a velocity command, envs that the commands cannot share, conditions
      that there are not, a number of steps in which nothing counts, or policies of two rates.
  """
  from mjrl.measure.conditions import choose
  from mjrl.measure.evaluation import LENGTH_S
  from mjrl.measure.grid import envs_for, standard_grid
  from mjrl.measure.measuring import checked_steps

  if rival and rival.control_dt_s != task.control_dt_s:
    raise ValueError(
      f"--compare: the policies act every {task.control_dt_s:g} and {rival.control_dt_s:g} s; only "
      "those of one rate can be compared"
    )
  grid = standard_grid(task)
  num_envs = envs_for(grid, flags.num_envs)
  reasons = dict(resolved.reasons)
  if flags.num_envs is None:
    commands = len(grid.commands)
    reasons["num_envs"] = f"auto: {num_envs // commands} for each of {commands} commands"
  checked_steps(flags.steps, LENGTH_S, task.control_dt_s)
  return PlannedEvaluation(
    tasks=(task, rival) if rival else (task,),
    resolved=replace(resolved, num_envs=num_envs, reasons=reasons),
    grid=grid,
    conditions=choose(task, flags.conditions),
  )


def run_planned(
  plan: PlannedEvaluation,
  flags: PlayFlags,
  shared: SharedPlan,
  checkpoints: Sequence[Path | None],
) -> int:
  """Evaluate the policies of these checkpoints. Returns the exit code."""
  from mjrl.measure.evaluating import Contender
  from mjrl.measure.evaluation import run_evaluation

  return run_evaluation(
    [
      Contender(task=task, agent=flags.agent, checkpoint=checkpoint)
      for task, checkpoint in zip(plan.tasks, checkpoints, strict=True)
    ],
    resolved=plan.resolved,
    seed=shared.seed,
    grid=plan.grid,
    conditions=plan.conditions,
    steps=flags.steps,
    physics_hz=flags.physics_hz,
    speed=flags.speed,
    viewer=shared.viewer,
  )
