"""Under which conditions a policy is evaluated: a row each, of what differs from training."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mjrl.envs.describe import describe, differences
from mjrl.envs.task import Event, Task, at_startup
from mjrl.envs.terms import events
from mjrl.measure.replayed import noisy_rows, recurring_events
from mjrl.names import nearest


@dataclass(frozen=True, kw_only=True)
class Condition:
  """A condition.

  what     in words, in tables and files
  noise    whether observations are as noisy as in training
  pushes   whether training's recurring events come, too
  changed  events that take the place of the task's own of the same function, or are added
  """

  name: str
  what: str
  noise: bool = True
  pushes: bool = False
  changed: tuple[Event, ...] = ()


# Those off nominal lie outside of what the tasks and presets/robust.yaml train with: friction from
# 0.5, mass within 15 %.
CONDITIONS = (
  Condition(name="base", what="noise and robots as in training, no pushes, as with --measure"),
  Condition(name="clean", what="base without observation noise", noise=False),
  Condition(name="pushed", what="base with the pushes of training", pushes=True),
  Condition(
    name="slippery",
    what="base with feet of friction 0.3",
    changed=(at_startup(events.foot_friction, sliding=(0.3, 0.3)),),
  ),
  Condition(
    name="light",
    what="base with 0.75 of mass and inertia",
    changed=(at_startup(events.mass_scale, factor=(0.75, 0.75)),),
  ),
  Condition(
    name="heavy",
    what="base with 1.3 times mass and inertia",
    changed=(at_startup(events.mass_scale, factor=(1.3, 1.3)),),
  ),
)


def choose(task: Task, names: Sequence[str]) -> tuple[Condition, ...]:
  """The conditions of these names, or without any, all that differ in the task.

  Raises:
    ValueError: a name that is none, stands there twice, or whose condition would change nothing.
  """
  if not names:
    return tuple(row for row in CONDITIONS if not _idle(task, row))
  table = {row.name: row for row in CONDITIONS}
  for name in names:
    if name not in table:
      raise ValueError(f"--conditions: there is no condition {name!r}; {nearest(name, table)}")
    if names.count(name) > 1:
      raise ValueError(f"--conditions: {name} stands there twice; leave one out")
    if why := _idle(task, table[name]):
      raise ValueError(f"--conditions {name} has no effect: {why}; leave it out")
  return tuple(table[name] for name in names)


def under(task: Task, condition: Condition) -> Task:
  """The task with the events of a condition; noise and pushes are the replay's to see to."""
  changed = dict(task.events)
  for event in condition.changed:
    own = (name for name, row in task.events.items() if row.fn is event.fn)
    changed[next(own, event.fn.__name__)] = event
  return replace(task, events=changed)


def changes(task: Task, condition: Condition) -> tuple[str, ...]:
  """What its events are otherwise than in the task, a line each."""
  before, after = (describe(one.events) for one in (task, under(task, condition)))
  return tuple(differences(before, after, "events"))


def _idle(task: Task, condition: Condition) -> str:
  """Why a condition changes nothing in a task; "" if it does."""
  if not condition.noise and not noisy_rows(task):
    return f"{task.name} has no observation noise"
  if condition.pushes and not recurring_events(task):
    return f"{task.name} has no pushes"
  return ""
