"""Curricula at work: a command ladder climbed by measured tracking, and numbers that anneal."""

from collections.abc import Mapping
from dataclasses import replace

from mjrl.envs.holds import Holds
from mjrl.envs.ladders import LadderSpec, Widened
from mjrl.envs.recipe import Anneal
from mjrl.envs.scoring import Rewards
from mjrl.envs.task import Task


class Ladder:
  """The level of a command ladder, and the numbers that decide the next."""

  def __init__(self, spec: LadderSpec, command: Widened, rewards: Rewards) -> None:
    """Start on the lowest rung."""
    self.spec = spec
    self._command, self._rewards = command, rewards
    self.go_to(0)

  def go_to(self, level: int) -> None:
    """Take up a level, and forget what was measured on another."""
    self.level = level
    self.tracked = self.spec.tracked(level)
    self.steps, self.holds = 0, 0
    self.errors = dict.fromkeys(self.tracked, 0.0)
    self._command.set_ranges({name: row.fraction for name, row in self.tracked.items()})
    for row in self.tracked.values():
      self._rewards.set_own(row.reward, f"std_{row.unit}", row.std)

  @property
  def ranges(self) -> dict[str, float]:
    """The largest command of each quantity on this level."""
    return {name: row.fraction * self._command.ceilings[name] for name, row in self.tracked.items()}

  @property
  def bars(self) -> dict[str, float]:
    """Errors to be below."""
    ceilings = self._command.ceilings
    return {
      name: row.bar_base + row.bar_slope * row.fraction * ceilings[name]
      for name, row in self.tracked.items()
    }

  @property
  def at_top(self) -> bool:
    """Whether there is no higher level."""
    return self.level + 1 == len(self.spec.rungs)

  def step(self, holds: Holds | None) -> None:
    """Count a control step and the holds that ended in it; climb if it is time."""
    self.steps += 1
    self.take(holds)

  def take(self, holds: Holds | None) -> None:
    """Count holds, of one control step or of several; climb if it is time."""
    if holds is None:
      return
    # A plain mean at first, so that the average is of this level from its first hold on.
    share = max(
      1 - (1 - self.spec.smoothing) ** holds.count, holds.count / (self.holds + holds.count)
    )
    for name, error in holds.errors.items():
      self.errors[name] += share * (error - self.errors[name])
    self.holds += holds.count
    measured = self.steps >= self.spec.dwell_steps and self.holds >= self.spec.min_holds
    good = all(self.errors[name] < bar for name, bar in self.bars.items())
    if measured and good and not self.at_top:
      self.go_to(self.level + 1)

  def log(self) -> dict[str, float]:
    """The level, what it asks, and each number that decides beside its bar."""
    shown = {"range": self.ranges, "bar": self.bars}
    if self.holds:  # else nothing has been measured on this level
      shown["error"] = self.errors
    units = {name: row.unit for name, row in self.tracked.items()}
    return {"level": self.level} | {
      f"{name}_{kind}_{units[name]}": value
      for kind, values in shown.items()
      for name, value in values.items()
    }

  def save(self) -> dict[str, float]:
    """Plain numbers that `load` takes."""
    errors = {f"{name}_error": error for name, error in self.errors.items()}
    return {"level": self.level, "steps": self.steps, "holds": self.holds} | errors

  def load(self, saved: Mapping[str, float]) -> None:
    """Take up what `save` gave."""
    self.go_to(int(saved["level"]))
    self.steps, self.holds = int(saved["steps"]), int(saved["holds"])
    self.errors = {name: saved[f"{name}_error"] for name in self.errors}


def trained_ranges(task: Task, level: int | None) -> tuple[tuple[float, float], ...]:
  """What commands were drawn from: forward m/s, left m/s, counter-clockwise rad/s.

  Args:
    task: as it is trained, with a velocity command.
    level: that its ladder had reached; None where there is no ladder, or nothing was trained.
  """
  spec = task.command
  assert spec is not None  # as is asked of the task
  linear = angular = 1.0
  if task.curriculum is not None and level is not None:
    rungs = task.curriculum.rungs
    rung = rungs[min(level, len(rungs) - 1)]
    linear, angular = rung.linear, rung.angular
  parts = ((spec.forward_m_s, linear), (spec.left_m_s, linear), (spec.yaw_rad_s, angular))
  return tuple((low * part, high * part) for (low, high), part in parts)


def as_on_last_rung(task: Task) -> Task:
  """The task without its ladders.

  Commands have their full ranges, kernels the widths of the last rung, and on rough ground the envs
  are spread over all levels.
  """
  if task.terrain:
    task = replace(task, terrain=replace(task.terrain, curriculum=None))
  rewards = dict(task.rewards)
  for ladder in task.all_ladders.values():
    for tracked in ladder.tracked(len(ladder.rungs) - 1).values():
      row = rewards[tracked.reward]
      params = {**row.params, f"std_{tracked.unit}": tracked.std}
      rewards[tracked.reward] = replace(row, params=params)
  return replace(task, curriculum=None, ladders={}, rewards=rewards)


class Annealing:
  """One number on its way from easy to the task's own."""

  def __init__(self, spec: Anneal, rewards: Rewards) -> None:
    """Start from the initial value of the metric."""
    self.spec = spec
    _, self._row, self._key = spec.path.split(".", 2)
    self._rewards = rewards
    self.average = spec.initial
    self._follow(0)

  def iteration(self, index: int, metrics: Mapping[str, float]) -> None:
    """Follow the metric of iteration `index`, which is done."""
    latest = metrics.get(self.spec.metric, self.average)
    self.average += self.spec.smoothing * (latest - self.average)
    self._follow(index + 1)

  def log(self) -> dict[str, float]:
    """The value, and the average that decides."""
    return {"value": self._rewards.numbers[self._row][self._key], self.spec.metric: self.average}

  def save(self) -> dict[str, float]:
    """Plain numbers that `load` takes."""
    return {"average": self.average, "next_iteration": self._next}

  def load(self, saved: Mapping[str, float]) -> None:
    """Take up what `save` gave."""
    self.average = saved["average"]
    self._follow(int(saved["next_iteration"]))

  def _follow(self, next_iteration: int) -> None:
    spec, self._next = self.spec, next_iteration
    ease = (self.average - spec.done) / (spec.start - spec.done)
    fade = (spec.until_iteration - next_iteration) / spec.fade_iterations
    ease = min(max(ease, 0.0), 1.0) * min(max(fade, 0.0), 1.0)
    self._rewards.set_ease(self._row, self._key, spec.easy, ease)
