"""Where the time of a run goes: spans, timed where the run's parts call one another.

Nothing of this is in the step loop.  A run that is profiled has the methods and the rows below
replaced, on its own objects and once they are built, by ones that look at the clock.
"""

import functools
import math
import time
import timeit
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from mjrl.envs.env import Env
from mjrl.envs.observing import value_of
from mjrl.learn.runner import Runner

# What is timed, as found from the runner, and its name. A span lies within the one in which it is
# called. The functions of the task's rows come on top, see `Profile._attach_rows`.
SEAMS = {
  "_collect": "collection",
  "alg.act": "policy",
  "env.step": "env step",
  "mjrl_env._fire_due": "events",
  "mjrl_env.backend.step": "physics",
  "mjrl_env._terminations": "terminations",
  "mjrl_env.rewards.score": "rewards",
  "mjrl_env._advance_commands": "commands",
  "mjrl_env.observer.write": "observations",
  "mjrl_env.metrics.add": "metrics",
  "mjrl_env._start": "resets",
  "mjrl_env.backend.reset": "physics",
  "alg.process_env_step": "storage",
  "alg.compute_returns": "returns",
  "alg.update": "update",
  "_scalars": "scalars",
  "_mark": "state for resuming",
  "_evaluate": "evaluation",
  "events.fire": "run events",
  "_log": "logging",
  "save_checkpoint": "checkpoint",
}
WARM_UP_ITERATIONS = 1  # in which memory is allocated, kernels are compiled and caches are filled
_REST = "(rest)"


class Span:
  """The times of one part of a run, within the part around it."""

  def __init__(self) -> None:
    """Nothing timed yet."""
    self.children: dict[str, Span] = {}
    self.calls = 0
    self.total_s = self.max_s = self._square = 0.0
    self.min_s = math.inf

  def add(self, elapsed_s: float) -> None:
    """Count a call."""
    self.calls += 1
    self.total_s += elapsed_s
    self._square += elapsed_s * elapsed_s
    self.min_s = min(self.min_s, elapsed_s)
    self.max_s = max(self.max_s, elapsed_s)

  def report(self, name: str, around_s: float) -> dict[str, Any]:
    """What was measured, in plain values; what lies within comes with it, the longest first.

    Args:
      name: of this part.
      around_s: total of the part around it, for the share.
    """
    mean_s = self.total_s / self.calls
    within = sorted(self.children.items(), key=lambda item: -item[1].total_s)
    parts = [child.report(key, self.total_s) for key, child in within]
    if parts:
      rest_s = self.total_s - sum(part["total_s"] for part in parts)
      parts.append({"name": _REST, "total_s": rest_s, "share": rest_s / self.total_s})
    return {
      "name": name,
      "calls": self.calls,
      "mean_s": mean_s,
      "min_s": self.min_s,
      "max_s": self.max_s,
      "std_s": math.sqrt(max(self._square / self.calls - mean_s**2, 0.0)),
      "total_s": self.total_s,
      "share": self.total_s / around_s,
      "within": parts,
    }


class Profile:
  """Times the parts of a run from the end of its warm-up on."""

  def __init__(self, device: str) -> None:
    """Measure what timing itself costs.

    Args:
      device: of the env; on a CUDA device the clock first waits for what was started there.
    """
    self._device, self._clock = device, clock_of(device)
    self._run = self._here = Span()
    self._iterations = 0
    self._began_s: float | None = None
    self._span_cost_s = self._measure_cost_s()

  def attach(self, runner: Runner) -> None:
    """Time the parts of a run that has been built."""
    for path, name in SEAMS.items():
      *owners, method = path.split(".")
      owner = functools.reduce(getattr, owners, runner)
      setattr(owner, method, self.timed(name, getattr(owner, method)))
    self._attach_rows(runner.mjrl_env)
    runner._collect = self._counted(runner._collect)

  def timed(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, whose calls are spans of this name."""
    clock = self._clock

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
      around = self._here
      span = self._here = around.children.setdefault(name, Span())
      began_s = clock()
      try:
        return fn(*args, **kwargs)
      finally:
        span.add(clock() - began_s)
        self._here = around

    return call

  def end(self) -> None:
    """The run is over: what follows is not of it."""
    if self._began_s is not None and not self._run.calls:
      self._run.add(self._clock() - self._began_s)

  def report(self) -> dict[str, Any]:
    """The header's numbers, and the tree under "run": None where the run was its warm-up alone."""
    run = self._run.report("run", self._run.total_s) if self._run.calls else None
    spans = sum(part.get("calls", 0) for _, part in _walk(run)) if run else 0
    return {
      "warm_up_iterations": WARM_UP_ITERATIONS,
      "iterations": max(self._iterations - WARM_UP_ITERATIONS, 0),
      "device": self._device,
      "span_cost_s": self._span_cost_s,
      "spans": spans,
      "cost_s": spans * self._span_cost_s,
      "run": run,
    }

  def _attach_rows(self, env: Env) -> None:
    """Time the task's own functions.

    The env's copies of its tables are changed, not the task: its functions are looked up by who
    they are when an env is built.
    """
    labels: dict[Any, dict[str, list[str]]] = {}
    for group, rows in env.observer.groups.items():
      for key, row in rows.items():
        labels.setdefault(value_of(row), {}).setdefault(key, []).append(group)
    values = env.observer._values
    for value, row in values.items():
      label = ", ".join(f"{key} ({', '.join(groups)})" for key, groups in labels[value].items())
      values[value] = self._timed_row(label, row)
    for rows in (env.rewards.rows, env.metrics.rows):
      rows |= {name: self._timed_row(name, row) for name, row in rows.items()}
    task = env.task
    timed = {name: self._timed_row(name, row) for name, row in task.terminations.items()}
    env.task = replace(task, terminations=timed)
    for when, events in (("reset", env._reset_events), ("interval", env._interval_events)):
      named = {name: event for name, event in task.events.items() if event.when == when}
      events[:] = [self._timed_row(name, event) for name, event in named.items()]

  def _timed_row(self, name: str, row: Any) -> Any:
    return replace(row, fn=self.timed(name, row.fn))

  def _counted(self, collect: Callable[..., Any]) -> Callable[..., Any]:
    """The same method, which begins the profile when the warm-up is over."""

    @functools.wraps(collect)
    def call(*args: Any, **kwargs: Any) -> Any:
      if self._iterations == WARM_UP_ITERATIONS:
        self._run = self._here = Span()
        self._began_s = self._clock()
      self._iterations += 1
      return collect(*args, **kwargs)

    return call

  def _measure_cost_s(self) -> float:
    """What a span takes beside what it times: the least of some tries, since others are at work."""

    def nothing() -> None:
      pass

    calls = 2000
    spans, bare = (
      min(timeit.repeat(fn, number=calls, repeat=5)) for fn in (self.timed("", nothing), nothing)
    )
    return max(spans - bare, 0.0) / calls


def table(report: dict[str, Any]) -> str:
  """A report as text: a header, then a line for each part of the tree."""
  warm_up, run = report["warm_up_iterations"], report["run"]
  if run is None:
    return f"profile: nothing to show, the run has not outlasted its warm-up ({warm_up} iteration)"
  lines = [
    f"profile of {report['iterations']} iterations, after {warm_up} of warm-up, not counted",
    f"timing itself took about {report['cost_s']:.2g} s ({report['cost_s'] / run['total_s']:.1%}; "
    f"{report['span_cost_s'] * 1e6:.1f} us for each of {report['spans']} spans), most of it in the "
    f"{_REST} of the part around a span",
    "a quantity that several rows share counts to the first row that reads it",
  ]
  if report["device"].startswith("cuda"):
    lines.append(f"{report['device']} is waited for at both ends of a span: what else overlaps, ")
    lines[-1] += "here stands in line"
  titles = ("calls", "mean ms", "min ms", "max ms", "std ms", "total s", "of parent")
  parts = list(_walk(run))
  width = max(2 * depth + len(part["name"]) for depth, part in parts)
  lines += ["", " " * width + "".join(f"{title:>11}" for title in titles)]
  for depth, part in parts:
    times = (part.get(key) for key in ("mean_s", "min_s", "max_s", "std_s"))
    cells = [str(part.get("calls", "")), *("" if t is None else f"{t * 1e3:.3f}" for t in times)]
    cells += [f"{part['total_s']:.3f}", f"{part['share']:.1%}"]
    name = "  " * depth + part["name"]
    lines.append(name.ljust(width) + "".join(f"{cell:>11}" for cell in cells))
  return "\n".join(lines)


def _walk(part: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
  yield depth, part
  for within in part.get("within", ()):
    yield from _walk(within, depth + 1)


def clock_of(device: str) -> Callable[[], float]:
  """Seconds, once the device has done what it was asked for."""
  if not device.startswith("cuda"):
    return time.perf_counter

  def clock() -> float:
    torch.cuda.synchronize(device)
    return time.perf_counter()

  return clock
