"""Events of the run from a configuration: functions of the user's own, by their names."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import Parameter, getmembers, isfunction, signature
from pathlib import Path
from typing import Any

from mjrl.envs.task import RUN_EVENTS, Event, Task, at_run
from mjrl.names import nearest

_KEYS = ("call", "when", "params")


def with_run_events(task: Task, rows: Mapping[str, Any], where: str) -> Task:
  """The task with the events of a configuration behind its own.

  Args:
    task: stays as it is.
    rows: name to `call` ("module:function"), `when` (one of `RUN_EVENTS`) and `params`.
    where: the file, for errors.

  Raises:
    ValueError: a row that could not be called, with what was found in its place.
  """
  events = dict(task.events)
  for name, row in rows.items():
    try:
      if name in events:
        raise ValueError("the task has an event of this name; choose another")
      events[name] = _event(row)
    except ValueError as error:
      raise ValueError(f"{where}: events.{name}: {error}") from None
  return replace(task, events=events) if rows else task


def _event(row: Any) -> Event:
  if not isinstance(row, Mapping):
    raise ValueError(f"a mapping of {', '.join(_KEYS)} is wanted, and it is {row!r}")
  for key in row:
    if key not in _KEYS:
      raise ValueError(f"there is no {key!r}; {nearest(str(key), _KEYS)}")
  for key in ("call", "when"):
    if not isinstance(row.get(key), str):
      raise ValueError(f"{key} is {row.get(key)!r}; it must be a text")
  if row["when"] not in RUN_EVENTS:
    raise ValueError(f"when is {row['when']!r}; {nearest(row['when'], RUN_EVENTS)}")
  params = row.get("params", {})
  if not isinstance(params, Mapping):
    raise ValueError(f"params is {params!r}; it must be a mapping")
  fn = _function(row["call"])
  _check_moment(fn, row["call"])
  return at_run(row["when"], fn, **params)


def _function(call: str) -> Callable[..., Any]:
  """The function that "module:function" names; a module of the current folder will do."""
  module_name, colon, name = call.partition(":")
  if not (module_name and colon and name):
    raise ValueError(f"call is {call!r}; it must be module:function")
  here = str(Path.cwd())
  if here not in sys.path:
    sys.path.insert(0, here)
  try:
    module = import_module(module_name)
  except ModuleNotFoundError as error:
    if error.name is None or f"{module_name}.".startswith(f"{error.name}."):
      raise ValueError(
        f"call is {call!r}: there is no module {error.name!r}, neither in {here} "
        f"({_modules(here)}) nor installed"
      ) from None
    raise  # the module is there, and lacks something itself
  fn = getattr(module, name, None)
  if not callable(fn):
    there = [key for key, _ in getmembers(module, isfunction) if not key.startswith("_")]
    raise ValueError(
      f"call is {call!r}: {module.__file__} has no function {name!r}; {nearest(name, there)}"
    )
  return fn


def _modules(folder: str) -> str:
  return ", ".join(sorted(p.stem for p in Path(folder).glob("*.py"))) or "no .py files are there"


def _check_moment(fn: Callable[..., Any], call: str) -> None:
  """A function of an event takes the moment, and everything else by name behind a star."""
  places = [
    p.name
    for p in signature(fn).parameters.values()
    if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
  ]
  if len(places) != 1:
    raise ValueError(
      f"{call} takes {places or 'nothing'} by position; it must take the moment alone, and "
      "parameters behind a star: def f(moment, *, n)"
    )
