"""Where runs lie, and which one is meant."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from mjrl.names import nearest

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:_(\d+))?$")
RUN_FILES = ("run.yaml", "summary.json", "scalars.csv", "model_*.pt", "events.out.tfevents*")
"""What a run writes itself, of which any makes a folder a run's."""
_DEPTH = 6  # folders from a root to a run: robot, task, run, and those of a sweep before them


def is_run(folder: Path) -> bool:
  """Whether it is the folder of a run, be it of one that was killed before it wrote anything."""
  if any(next(folder.glob(name), None) for name in RUN_FILES):
    return True
  return bool(_STAMP.match(folder.name)) and next(folder.iterdir(), None) is None


def began(run: Path) -> tuple[datetime, int]:
  """When a run began, by its folder's name, and which one of those of that second."""
  match = _STAMP.match(run.name)
  if match:
    return datetime.strptime(match[1], "%Y-%m-%d_%H-%M-%S"), int(match[2] or 0)
  return datetime.fromtimestamp(run.stat().st_mtime), 0  # of a folder that was renamed


def runs_in(root: Path) -> list[Path]:
  """Every run in a folder of any level, the newest first."""
  found = _walk(root, _DEPTH) if root.is_dir() else iter(())
  return sorted(found, key=lambda run: (began(run), str(run)), reverse=True)


def find_run(log_dir: Path, given: str | None) -> Path:
  """The run that is meant.

  Args:
    log_dir: root of all runs.
    given: the path of a run, of a file in it or of a folder of runs; the name of a run, or how it
      begins; the name of a task. Of several runs, the newest is taken. None for the newest of all.

  Raises:
    FileNotFoundError: there is none.
    ValueError: the name is nobody's, or that of several runs.
  """
  if given is None:
    return _newest(log_dir, "train first, python scripts/train.py --task NAME --headless")
  path = Path(given).expanduser()
  if path.exists():
    here = path if path.is_dir() else path.parent
    for folder in (here, here.parent):  # a file may lie in measure/ or exported/
      if is_run(folder):
        return folder.absolute()
    return _newest(path, "name a run, or a folder that has some")
  runs = runs_in(log_dir)
  of_task = [run for run in runs if run.parent.name == given]
  if of_task:
    return of_task[0]
  named = [run for run in runs if run.name == given] or [
    run for run in runs if run.name.startswith(given)
  ]
  if len(named) > 1:
    raise ValueError(
      f"{given!r} is the name of {len(named)} runs; give the path of one: "
      + ", ".join(map(str, named[:5]))
    )
  if named:
    return named[0]
  if not runs:
    raise FileNotFoundError(f"no run {given!r}, and no other in {log_dir}: is --log_dir right?")
  names = dict.fromkeys(name for run in runs for name in (run.parent.name, run.name))
  raise ValueError(f"no run {given!r} in {log_dir}; {nearest(given, list(names)[:20])}")


def _newest(root: Path, otherwise: str) -> Path:
  runs = runs_in(root)
  if not runs:
    raise FileNotFoundError(f"no run in {root}: {otherwise}")
  return runs[0].absolute()


def _walk(folder: Path, depth: int) -> Iterator[Path]:
  try:
    inside = [path for path in folder.iterdir() if path.is_dir()]
  except OSError:  # somebody else's folder
    return
  if is_run(folder):
    yield folder
  elif depth:
    for path in inside:
      yield from _walk(path, depth - 1)
