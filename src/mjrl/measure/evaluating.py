"""Evaluating policies: every command of the grid at once, under one condition after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mjrl.envs.describe import describe, differences
from mjrl.envs.task import Task
from mjrl.measure.conditions import Condition, changes, under
from mjrl.measure.evaluated import Evaluated, Evaluation, evaluated
from mjrl.measure.grid import Grid
from mjrl.measure.measuring import circumstances, record
from mjrl.measure.pace import Pace, StatusLine
from mjrl.measure.replay import Replay, open_replay
from mjrl.measure.shown import shown
from mjrl.sim.resolve import Resolved
from mjrl.view.choice import Choice

# What a policy brings along; all else of a task is the world that it is evaluated in.
_OF_THE_POLICY = ("observations", "action", "gait", "control_dt_s")
_OF_LEARNING = ("rewards", "recipes", "curriculum", "metrics", "success", "episode_s")


@dataclass(frozen=True, kw_only=True)
class Contender:
  """Who is evaluated: an agent, in the task that it was trained in."""

  task: Task
  agent: str
  checkpoint: Path | None


def evaluate(
  contenders: Sequence[Contender],
  *,
  resolved: Resolved,
  seed: int,
  grid: Grid,
  conditions: Sequence[Condition],
  steps: int,
  physics_hz: float | None,
  speed: float | None,
  viewer: Choice,
) -> tuple[Evaluation, ...]:
  """Evaluate each contender, on the same robots, starts, noise and pushes as the others.

  Args:
    contenders: in the world of the first.
    resolved: engine and device; as many envs in each cell of the grid.
    seed: of everything that stays random, under every condition.
    grid: of commands.
    conditions: one after the other.
    steps: control steps of each.
    physics_hz: physics rate; None is that of training.
    speed: simulated over real time; see `mjrl.measure.play.play`.
    viewer: to look at it with.

  Raises:
    ValueError: a checkpoint that does not fit its task.
  """
  found: list[list[Evaluated]] = [[] for _ in contenders]
  for number, condition in enumerate(conditions, 1):
    print(f"{number} of {len(conditions)}: {condition.name}, {condition.what}", flush=True)
    for one, of_one in zip(contenders, found, strict=True):
      task = in_world(one.task, contenders[0].task)
      replay = open_replay(
        under(task, condition),
        resolved,
        seed=seed,
        agent=one.agent,
        checkpoint=one.checkpoint,
        command=None,
        posture=None,
        obs_noise=condition.noise,
        physics_hz=physics_hz,
        measure=True,
        pushes=condition.pushes,
      )
      of_one.append(
        _under_condition(replay, grid, condition, changes(task, condition), steps, speed, viewer)
      )
  return tuple(Evaluation(grid=grid, steps=steps, conditions=tuple(of_one)) for of_one in found)


def in_world(task: Task, other: Task) -> Task:
  """Another task's world, for a policy that was trained in this one."""
  return replace(other, **{name: getattr(task, name) for name in _OF_THE_POLICY})


def world_differences(task: Task, other: Task) -> list[str]:
  """How the world of a task is otherwise than another's, a line each."""
  before, after = (describe(one) for one in (task, other))
  for name in (*_OF_THE_POLICY, *_OF_LEARNING):
    del before[name], after[name]
  return differences(before, after)


def _under_condition(
  replay: Replay,
  grid: Grid,
  condition: Condition,
  changed: tuple[str, ...],
  steps: int,
  speed: float | None,
  viewer: Choice,
) -> Evaluated:
  env = replay.env
  mass_kg = env.backend.get_model("body_mass").sum(1).cpu().numpy()
  with shown(replay, viewer, None, speed) as (show, pace):
    status = StatusLine(clock := Pace(pace, env.dt_s), env.dt_s)
    try:
      commands = grid.per_env(env.num_envs)
      recording = record(replay, commands, condition.name, steps, clock, status, show)
    finally:
      status.end()
  return evaluated(recording, grid, condition, circumstances(replay), changed, mass_kg)
