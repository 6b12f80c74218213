"""The moments of a run, and the task's own functions that are called in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mjrl.envs.env import Env, Step
from mjrl.envs.task import RUN_EVENTS, Event


@dataclass(frozen=True, kw_only=True)
class Moment:
  """What an event of the run sees.

  event       which of `RUN_EVENTS` it is
  folder      of the run
  iteration   the last one that is done, -1 before the first
  env_steps   control steps of all envs so far
  env         training's; the evaluation's own where `event` starts with "eval_"
  scalars     name to value, as logged; what "iteration" and "eval_end" put in is logged too
  step        of the evaluation, for "eval_step"
  checkpoint  the file just written, for "checkpoint"; the newest, for "train_end"
  rank        of this process. In a distributed run all events but "checkpoint" come in every
              process, so that a change to the world is made in all; what writes a file does so
              where it is 0. "checkpoint" comes there alone
  """

  event: str
  folder: Path
  iteration: int
  env_steps: int
  env: Env
  scalars: dict[str, float] = field(default_factory=dict)
  step: Step | None = None
  checkpoint: Path | None = None
  rank: int = 0


def check_can_fire(events: Mapping[str, Event], eval_every: int | None) -> None:
  """Refuse an event at a moment that never comes.

  Raises:
    ValueError: an event of evaluations, and nothing is evaluated.
  """
  for name, event in events.items():
    if event.when.startswith("eval_") and eval_every is None:
      raise ValueError(
        f"event {name} is of {event.when}, which never comes: there is no evaluation; "
        "give --eval_every N or leave the event out"
      )


def without_run_events(task: Mapping[str, Any]) -> dict[str, Any]:
  """A task, as `describe` gives it, without its events of the run."""
  world = {name: row for name, row in task["events"].items() if row["when"] not in RUN_EVENTS}
  return {**task, "events": world}


class RunEvents:
  """Calls a task's run events, in the order of its table."""

  def __init__(self, events: Mapping[str, Event]) -> None:
    """Sort them by moment."""
    self._rows: dict[str, Sequence[Event]] = {
      when: [event for event in events.values() if event.when == when] for when in RUN_EVENTS
    }

  def wanted(self, event: str) -> bool:
    """Whether anything happens at this moment."""
    return bool(self._rows[event])

  def fire(self, moment: Moment) -> None:
    """Call what belongs to the moment."""
    for row in self._rows[moment.event]:
      row.fn(moment, **row.params)
