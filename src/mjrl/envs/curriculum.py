"""Curricula at work: a command ladder climbed by measured tracking, and numbers that anneal."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mjrl.envs.commands import Commands, Holds
from mjrl.envs.recipe import Anneal
from mjrl.envs.scoring import Rewards
from mjrl.envs.task import CommandLadder, Task


class Ladder:
  """The level of a `CommandLadder`, and the numbers that decide the next."""

  def __init__(self, spec: CommandLadder, task: Task, commands: Commands, rewards: Rewards) -> None:
    """Start on the lowest rung."""
    self.spec = spec
    self._commands, self._rewards = commands, rewards
    self._linear_ceiling = max(abs(v) for v in task.command.forward_m_s)
    self._angular_ceiling = max(abs(v) for v in task.command.yaw_rad_s)
    self._linear_key = _width(rewards.numbers[spec.linear])
    self._angular_key = _width(rewards.numbers[spec.angular])
    self.go_to(0)

  def go_to(self, level: int) -> None:
    """Take up a level, and forget what was measured on another."""
    self.level = level
    self.steps, self.holds = 0, 0
    self.linear_error, self.angular_error = 0.0, 0.0
    rung = self.spec.rungs[level]
    self._commands.set_ranges(rung.linear, rung.angular)
    self._rewards.set_own(self.spec.linear, self._linear_key, rung.linear_std_m_s)
    self._rewards.set_own(self.spec.angular, self._angular_key, rung.angular_std_rad_s)

  @property
  def bars(self) -> tuple[float, float]:
    """Errors to be below: m/s and rad/s."""
    rung, spec = self.spec.rungs[self.level], self.spec
    return (
      spec.bar_base_m_s + spec.bar_slope * rung.linear * self._linear_ceiling,
      spec.bar_base_rad_s + spec.bar_slope_angular * rung.angular * self._angular_ceiling,
    )

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
    self.linear_error += share * (holds.linear_error_m_s - self.linear_error)
    self.angular_error += share * (holds.angular_error_rad_s - self.angular_error)
    self.holds += holds.count
    linear_bar, angular_bar = self.bars
    measured = self.steps >= self.spec.dwell_steps and self.holds >= self.spec.min_holds
    good = self.linear_error < linear_bar and self.angular_error < angular_bar
    if measured and good and self.level + 1 < len(self.spec.rungs):
      self.go_to(self.level + 1)

  def log(self) -> dict[str, float]:
    """The level, what it asks, and each number that decides beside its bar."""
    rung = self.spec.rungs[self.level]
    linear_bar, angular_bar = self.bars
    log = {
      "level": self.level,
      "linear_range_m_s": rung.linear * self._linear_ceiling,
      "angular_range_rad_s": rung.angular * self._angular_ceiling,
      "linear_bar_m_s": linear_bar,
      "angular_bar_rad_s": angular_bar,
    }
    if self.holds:  # else nothing has been measured on this level
      log |= {
        "linear_error_m_s": self.linear_error,
        "angular_error_rad_s": self.angular_error,
      }
    return log

  def save(self) -> dict[str, float]:
    """Plain numbers that `load` takes."""
    return {
      "level": self.level,
      "steps": self.steps,
      "holds": self.holds,
      "linear_error": self.linear_error,
      "angular_error": self.angular_error,
    }

  def load(self, saved: Mapping[str, float]) -> None:
    """Take up what `save` gave."""
    self.go_to(int(saved["level"]))
    self.steps, self.holds = int(saved["steps"]), int(saved["holds"])
    self.linear_error, self.angular_error = saved["linear_error"], saved["angular_error"]


def trained_ranges(task: Task, level: int | None) -> tuple[tuple[float, float], ...]:
  """What commands were drawn from: forward m/s, left m/s, counter-clockwise rad/s.

  Args:
    task: as it is trained, with a command.
    level: that its ladder had reached; None where there is no ladder, or nothing was trained.
  """
  spec = task.command
  linear = angular = 1.0
  if task.curriculum is not None and level is not None:
    rungs = task.curriculum.rungs
    rung = rungs[min(level, len(rungs) - 1)]
    linear, angular = rung.linear, rung.angular
  parts = ((spec.forward_m_s, linear), (spec.left_m_s, linear), (spec.yaw_rad_s, angular))
  return tuple((low * part, high * part) for (low, high), part in parts)


def as_on_last_rung(task: Task) -> Task:
  """The task without its ladder: full command ranges, and the kernels' widths of the last rung."""
  ladder = task.curriculum
  if ladder is None:
    return task
  rung, rewards = ladder.rungs[-1], dict(task.rewards)
  for name, std in ((ladder.linear, rung.linear_std_m_s), (ladder.angular, rung.angular_std_rad_s)):
    row = rewards[name]
    rewards[name] = replace(row, params={**row.params, _width(row.params): std})
  return replace(task, curriculum=None, rewards=rewards)


def _width(numbers: Iterable[str]) -> str:
  """The number of a tracking row that is its kernel's width."""
  return next(name for name in numbers if name.startswith("std_"))


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
