"""What can be relied on of a run: labelled lines, for the console and for the page alike.

Every number was measured or written by the run itself; one that was not is shown as missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from mjrl.learn.findings import PAGE
from mjrl.learn.progress import clock
from mjrl.learn.rules import TRACKING
from mjrl.measure.measured import Circumstances
from mjrl.measure.report import NOT_MEASURED, percent
from mjrl.measure.runs.record import RunRecord

Number = float | int | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
  """What came of a run.  None, or nothing in it, is a number that nobody measured.

  tracking  row to what it reached and its weight
  """

  iterations: int | None
  env_steps: Number
  wall_s: Number
  reward_first: Number
  reward_last: Number
  tracking: Mapping[str, tuple[Number, Number]]
  level: Number
  rungs: int | None
  action_std: Number


def outcome(run: RunRecord) -> Outcome:
  """From the summary; of a run without one, from its curves."""
  curves, summary = run.curves, run.summary
  weights = run.about.weights if run.about else {}
  rewards = curves.points("Train/mean_reward")[1]
  rungs = run.about.rungs if run.about else None
  if summary is not None:
    curriculum = summary.get("curriculum", {})
    return Outcome(
      iterations=summary.get("iterations"),
      env_steps=summary.get("env_steps"),
      wall_s=summary.get("wall_s"),
      reward_first=summary.get("reward_first"),
      reward_last=summary.get("reward_last"),
      tracking={
        name: (
          # The last iteration may have ended no episode; the curve then knows the one before.
          term["reached"] if term["reached"] is not None else curves.last(f"Episode_Reward/{name}"),
          term["weight"],
        )
        for name, term in summary.get("tracking", {}).items()
      },
      level=curriculum.get("Curriculum/command/level"),
      rungs=rungs,
      action_std=summary.get("action_std"),
    )
  seconds = [
    sum(curves.points(f"Perf/{half}_time")[1]) for half in ("collection", "learning") if curves.rows
  ]
  return Outcome(
    iterations=curves.iteration + 1 if curves.rows else None,
    env_steps=curves.last("Perf/env_steps"),
    wall_s=sum(seconds) if seconds else None,
    reward_first=rewards[0] if rewards else None,
    reward_last=rewards[-1] if rewards else None,
    tracking={
      name: (curves.last(f"Episode_Reward/{name}"), weight)
      for name, weight in weights.items()
      if name.startswith(TRACKING)
    },
    level=curves.last("Curriculum/command/level"),
    rungs=rungs,
    action_std=curves.last("Policy/mean_std"),
  )


def facts(run: RunRecord) -> dict[str, list[str]]:
  """Label to its lines."""
  found = outcome(run)
  said = {
    "run": [str(run.folder)],
    "state": [_state(run)],
    "task": [_task(run)],
    "departures": departures(run),
    "engine": [_engine(run)],
    "length": [_length(found, run)],
    "checkpoint": _checkpoint(run),
    "reward": _reward(found, run),
    "tracking": _tracking(found) or [NOT_MEASURED],
    "ladder": [_ladder(found, run)],
    "exploration": [_exploration(found, run)],
    "findings": finding_lines(run),
    "trouble": _trouble(run),
  }
  measured = run.measured  # whether it can be read is known once it was tried
  said["replay"] = [_no_replay(run) if measured is None else _replayed(run, measured.circumstances)]
  said["unreadable"] = [f"{name}: {why}" for name, why in run.troubles.items()]
  return {label: lines for label, lines in said.items() if lines}


def departures(run: RunRecord) -> list[str]:
  """Each way in which the run differs from its task's page."""
  if run.summary is not None and "departures" in run.summary:
    return list(run.summary["departures"]) or ["none: as the task says"]
  if run.config is None:
    return [NOT_MEASURED]
  overrides = run.config.get("set", {})
  return [f"{path} = {value} (set)" for path, value in overrides.items()] or [
    "none that run.yaml sets; the summary, which lists them all, is missing"
  ]


def finding_lines(run: RunRecord) -> list[str]:
  """A line for each finding."""
  if run.findings is None:
    why = "run.yaml does not say what to judge by" if run.curves.rows else "there are no curves"
    return [f"{NOT_MEASURED} ({why})"]
  return [
    f"{found['rule']}, from iteration {found['iteration']} on: {found['evidence']}"
    f"{'' if found['at_the_end'] else ' (no longer so at the end)'}; what to do: "
    f"{PAGE}#{found['rule']}"
    for found in run.findings
  ] or ["none" + (f" (of {run.curves.rows} iterations)" if run.curves.rows < 400 else "")]


def ago(when: datetime) -> str:
  """Time since, in words."""
  return f"{clock((datetime.now() - when).total_seconds())} ago"


def number(value: Number, digits: int = 4) -> str:
  """A number to so many digits, or that there is none."""
  return NOT_MEASURED if value is None else f"{value:.{digits}g}"


def tracked(reached: Number, weight: Number) -> str:
  """A tracking row's reward beside its weight."""
  if reached is None or not weight:
    return f"{number(reached, 3)} of {number(weight, 3)}"
  return f"{reached:.3g} of {weight:.3g} ({percent(reached / weight)})"


def _state(run: RunRecord) -> str:
  summary = run.summary or {}
  return {
    "done": "done",
    "stopped": f"stopped by {summary.get('stopped_by')}",
    "failed": f"failed: {summary.get('failed')}",
    "unfinished": "unfinished: there is no summary.json, so it is still at work or was killed; "
    f"last written {run.written:%Y-%m-%d %H:%M:%S}, {ago(run.written)}",
  }[run.state]


def _task(run: RunRecord) -> str:
  robot = run.of_record.get("task", {}).get("robot", {}).get("name", NOT_MEASURED)
  return f"{run.task}, robot {robot}"


def _engine(run: RunRecord) -> str:
  source: Mapping[str, Any] = run.summary or run.config or {}
  versions = run.of_record.get("versions", {})
  parts = [
    str(source.get("backend", NOT_MEASURED)),
    f"{source.get('num_envs', NOT_MEASURED)} envs",
    f"seed {source.get('seed', NOT_MEASURED)}",
    *(f"{name} {versions[name]}" for name in ("mujoco", "torch") if name in versions),
  ]
  if source.get("processes", 1) != 1:
    parts.insert(1, f"{source['processes']} processes")
  return ", ".join(parts)


def _length(found: Outcome, run: RunRecord) -> str:
  of = run.config.get("max_iterations") if run.config else None
  first = max(run.curves.first, 0)
  parts = [
    f"{number(found.iterations, 9)} iterations"
    + (f", from {first} on" if first else "")
    + (f" ({of} asked for)" if of is not None else ""),
    f"{NOT_MEASURED if found.env_steps is None else f'{found.env_steps:,.0f}'} control steps",
    f"wall time {NOT_MEASURED if found.wall_s is None else clock(found.wall_s)}",
  ]
  return "; ".join(parts)


def _checkpoint(run: RunRecord) -> list[str]:
  lines = [str(run.checkpoints[-1])] if run.checkpoints else ["none"]
  best = (run.summary or {}).get("best")
  if run.best and best:
    lines.append(
      "best: {} ({metric} {value:.4g} at iteration {iteration})".format(run.best, **best)
    )
  elif run.best:
    lines.append(f"best: {run.best}")
  return lines


def _reward(found: Outcome, run: RunRecord) -> list[str]:
  lines = [f"{number(found.reward_first)} -> {number(found.reward_last)}"]
  eased = run.about.eased_until if run.about else 0
  if eased > max(run.curves.first, 0):
    values = run.curves.between("Train/mean_reward", eased + 50, eased + 60)
    there = f"; at {eased + 50}: {number(fmean(values))}" if values else ""
    lines.append(f"rewards are eased until iteration {eased} and do not compare across it{there}")
  for name, both in (run.summary or {}).get("eased_rewards", {}).items():
    lines.append(f"still eased at the end: {name} {both['used']:.4g} in place of {both['own']:.4g}")
  return lines


def _tracking(found: Outcome) -> list[str]:
  return [
    f"{name} {tracked(reached, weight)}" for name, (reached, weight) in found.tracking.items()
  ]


def _ladder(found: Outcome, run: RunRecord) -> str:
  if found.rungs == 0:
    return "the task has none"
  top = NOT_MEASURED if found.rungs is None else str(found.rungs - 1)
  parts = [f"level {number(found.level)} of 0..{top}"]
  for name, unit in (("linear", "m/s"), ("angular", "rad/s")):
    tag = f"Curriculum/command/{name}_{{}}_{unit.replace('/', '_')}"
    error, bar = (run.curves.last(tag.format(kind)) for kind in ("error", "bar"))
    parts.append(f"{name} error {number(error, 3)} {unit} (bar {number(bar, 3)})")
  return "; ".join(parts)


def _exploration(found: Outcome, run: RunRecord) -> str:
  began = run.about.init_std if run.about else None
  return f"action std {number(found.action_std, 3)}, began at {number(began, 3)}"


def _trouble(run: RunRecord) -> list[str]:
  """What a run counted of what went wrong; nothing where nothing did."""
  summary = run.summary or {}
  lines = [f"{what}: {count} times" for what, count in summary.get("file_failures", {}).items()]
  lines += [f"{what}: {count} env-steps" for what, count in summary.get("lost", {}).items()]
  if skipped := summary.get("updates_skipped"):
    lines.append(f"updates skipped, whose gradients were not finite: {skipped}")
  return lines


def _no_replay(run: RunRecord) -> str:
  if "measure/measure.json" in run.troubles:
    return f"{NOT_MEASURED} (measure.json cannot be read)"
  return (
    f"{NOT_MEASURED} (a finished run is not a result; measure it: python scripts/play.py "
    f"--task {run.task} --checkpoint {run.folder} --headless --measure)"
  )


def _replayed(run: RunRecord, about: Circumstances) -> str:
  """Of which checkpoint the replay is, and whether that is the newest."""
  newest = run.checkpoints[-1].name if run.checkpoints else NOT_MEASURED
  replayed = Path(about.checkpoint).name if about.checkpoint else f"agent {about.agent}"
  return f"of {replayed}" + ("" if replayed == newest else f", and the newest is {newest}")
