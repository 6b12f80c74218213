"""Sweeps: one run after the other, each in a process and a folder of its own.

Everything is checked before the first run starts. A run that fails is noted, and the next begins.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

from mjrl import yaml_text
from mjrl.cli.changes import said
from mjrl.cli.config import Config, flag_names, flag_value
from mjrl.cli.flags import TrainFlags
from mjrl.cli.planned import PlannedRun
from mjrl.cli.settings import given_flags
from mjrl.cli.sweep_results import outcome, table, write
from mjrl.envs.describe import describe
from mjrl.envs.overrides import plain
from mjrl.envs.paths import find
from mjrl.envs.task import Task
from mjrl.learn.atomic import write_bytes
from mjrl.learn.interrupts import SIGNALS, StopAsked, say
from mjrl.learn.run_folder import new_folder
from mjrl.names import nearest

# Flags that cannot differ between the runs of a sweep, and why; what to do instead.
_NOT_SWEPT = {
  "log_dir": "the table of a sweep lies in it; give --log_dir, and every run has a folder there",
  "dry_run": "it is of the sweep as a whole; give --dry_run",
  "resume": "the newest checkpoint would be that of the run before; sweep checkpoint, a file each",
}


def sweep(
  config: Config,
  argv: Sequence[str],
  *,
  dry_run: bool,
  plan: Callable[[Config], PlannedRun],
  stop: StopAsked,
) -> int:
  """Run every combination of a configuration's sweep.

  Args:
    config: with a sweep.
    argv: the command line; what it says beside `--config` holds for every run.
    dry_run: whether to print the runs and stop.
    plan: checks the configuration of one run.
    stop: asked before each run.

  Returns:
    0 if every run ended well, 1 if one did not, 128 + the number of the signal that stopped it.

  Raises:
    ValueError: one of the runs could not be, or a swept value would not count.
  """
  _check_names(config, argv)
  values = product(*config.sweep.values())
  choices = [dict(zip(config.sweep, chosen, strict=True)) for chosen in values]
  titles = [f"run {k} of {len(choices)}: {said(choice)}" for k, choice in enumerate(choices, 1)]
  configs = [_of_one(config, choice) for choice in choices]
  runs = [_checked(*each, plan) for each in zip(configs, choices, titles, strict=True)]
  for run in runs:
    _check_start(config, run)
  if dry_run:
    print("\n".join([*titles, "dry run: nothing was built"]))
    return 0
  folder = new_folder(runs[0].shared.log_dir / "sweeps")
  rows = [
    {"task": run.shared.task, "seed": run.flags.seed, **choice, "exit_code": None, "folder": None}
    for run, choice in zip(runs, choices, strict=True)
  ]
  write(folder, rows)
  child = _Child()
  for k, (run, one) in enumerate(zip(runs, configs, strict=True)):
    if stop or child.stopped_by:
      break
    path = folder / f"run_{k + 1}.yaml"
    write_bytes(path, yaml_text.dump(_content(one)).encode())
    print(f"\n{titles[k]}", flush=True)
    code = child.run([sys.executable, sys.argv[0], *_without_config(argv), "--config", str(path)])
    rows[k] |= outcome(run.shared.log_dir / run.shared.entry.robot / run.shared.task, path)
    rows[k]["exit_code"] = code
    write(folder, rows)
  print(f"\n{table(rows)}\nwrote {folder / 'results.json'} and {folder / 'results.csv'}")
  if stop or child.stopped_by:
    return stop.exit_code or 128 + child.stopped_by
  return int(any(row["exit_code"] for row in rows))


class _Child:
  """Runs commands, and passes on the signals that ask this process to stop.

  Each command has a process group of its own: a terminal sends Ctrl-C to a whole group, and a
  training that is asked twice ends without saving.
  """

  def __init__(self) -> None:
    self.stopped_by = 0
    self._process: subprocess.Popen[bytes] | None = None

  def run(self, command: Sequence[str]) -> int:
    old = {number: signal.signal(number, self._stop) for number in SIGNALS}
    try:
      self._process = process = subprocess.Popen(command, process_group=0)
      if self.stopped_by:  # in the moment between the two lines above
        process.send_signal(self.stopped_by)
      return process.wait()
    finally:
      self._process = None
      for number, handler in old.items():
        signal.signal(number, handler)

  def _stop(self, number: int, frame: FrameType | None) -> None:
    del frame
    if not self.stopped_by:
      name = signal.Signals(number).name
      say(f"\n{name}: passed on to the run that is at work; the sweep ends with it\n")
    self.stopped_by = number
    if self._process:
      self._process.send_signal(number)


def _check_names(config: Config, argv: Sequence[str]) -> None:
  """Refuse what cannot be swept, or is said elsewhere too, where one of the two would not count."""
  flags = flag_names(TrainFlags)
  of_task = [field.name for field in fields(Task)]
  for name in config.sweep:
    if name in _NOT_SWEPT:
      raise ValueError(f"{config.name}: {name} cannot be swept: {_NOT_SWEPT[name]}")
    if "." not in name and name not in (*flags, *of_task):
      raise ValueError(
        f"{config.name}: nothing to sweep has the name {name!r}; "
        f"{nearest(name, (*flags, *of_task))}"
      )
    if name in config.flags or name in config.overrides:
      raise ValueError(f"{config.name}: {name} is swept and set; leave one out")
    if name in flags and name in given_flags(argv):
      raise ValueError(f"--{name} is given, and {config.name} sweeps it; leave one out")


def _check_start(config: Config, run: PlannedRun) -> None:
  """Refuse a run that would go on from another of the sweep."""
  given = run.flags.checkpoint
  if run.checkpoint is not None and (given is None or given.is_dir()):
    said_so = f"--checkpoint {given}" if given else "--resume"
    raise ValueError(
      f"{config.name}: in a sweep, {said_so} takes the newest checkpoint, which may be that of the "
      f"run before; name a file, such as --checkpoint {run.checkpoint}"
    )


def _of_one(config: Config, choice: Mapping[str, Any]) -> Config:
  """The configuration of one run."""
  names = flag_names(TrainFlags)
  return replace(
    config,
    flags={
      **config.flags,
      **{k: flag_value(TrainFlags, k, v) for k, v in choice.items() if k in names},
    },
    overrides={**config.overrides, **{k: v for k, v in choice.items() if k not in names}},
    sweep={},
  )


def _checked(
  config: Config, choice: Mapping[str, Any], title: str, plan: Callable[[Config], PlannedRun]
) -> PlannedRun:
  try:
    run = plan(config)
    engine, task = run.shared.resolved.backend, run.changed.task
    for path in choice.keys() - set(flag_names(TrainFlags)):
      if choice[path] is None:
        continue
      (wanted,) = plain(task, engine, {path: choice[path]}).values()
      if describe(find(task, engine, path).value) != wanted:
        raise ValueError(f"{path} is swept, and --set has another value for it; leave one out")
  except ValueError as error:
    raise ValueError(f"{title}: {error}") from None
  return run


def _content(config: Config) -> dict[str, Any]:
  """A configuration as its file has it."""
  sections = {"set": config.overrides, "events": config.events}
  return describe({k: str(v) if isinstance(v, Path) else v for k, v in config.flags.items()}) | {
    name: describe(content) for name, content in sections.items() if content
  }


def _without_config(argv: Sequence[str]) -> list[str]:
  """The command line less its --config."""
  kept, words = [], iter(argv)
  for word in words:
    if word == "--config":
      next(words)
    elif not word.startswith("--config="):
      kept.append(word)
  return kept
