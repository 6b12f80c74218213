"""Checkpoints: where the newest is, reading one safely, and writing one whole.

Finding imports no torch, so that a command knows what it will load before it builds anything.
"""

import io
import re
import warnings
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

from mjrl.envs.describe import differences
from mjrl.envs.recipe import Recipe
from mjrl.learn.atomic import write_bytes

BEST = "model_best.pt"  # never found by itself: it is loaded where it is named
_NAME = re.compile(r"model_(\d+)\.pt$")
_ANOTHER = "choose another with --checkpoint"


def find(log_dir: Path, robot: str, task: str, given: Path | None) -> Path:
  """The checkpoint that a command should load.  Says which newer ones it skips, and why.

  Args:
    log_dir: root of all runs.
    robot: name of the robot, the first level of the logs.
    task: name of the task, the second.
    given: a checkpoint, a run folder, or a task folder; None for the newest of the task.

  Returns:
    The most recently written one that is whole, ties by iteration.

  Raises:
    FileNotFoundError: there is none, with what to do.
    ValueError: the file that was given is broken.
  """
  if given is not None and given.is_file():
    if why := why_broken(given):
      raise ValueError(f"{given} {why}; {_ANOTHER}")
    return given
  if given is not None and not given.exists():
    raise FileNotFoundError(f"no checkpoint {given}: there is no such file or folder")
  folder = given if given is not None else log_dir / robot / task
  skipped = []
  for path in _newest_first(folder):
    why = why_broken(path)
    if not why:
      for line in skipped:
        print(f"skipped {line}")
      return path
    skipped.append(f"{path}: it {why}")
  if skipped:
    raise FileNotFoundError(f"no whole checkpoint in {folder}: {'; '.join(skipped)}")
  raise FileNotFoundError(
    f"no checkpoint (model_<iteration>.pt) in {folder}: train first, "
    f"python scripts/train.py --task {task}, or name one with --checkpoint"
  )


def _newest_first(folder: Path) -> list[Path]:
  """The checkpoints in a run's folder or its runs' folders, in the order in which to try them."""
  found = []
  for path in (*folder.glob("model_*.pt"), *folder.glob("*/model_*.pt")):
    try:
      written_ns = path.stat().st_mtime_ns
    except FileNotFoundError:  # pruned by its run since
      continue
    if _NAME.search(path.name) and path.is_file():
      found.append((written_ns, iteration_of(path), path))
  return [path for *_, path in sorted(found, reverse=True)]


def why_broken(path: Path) -> str:
  """What is wrong with a checkpoint's file, to follow its name; empty if it is whole.

  Whole is what was written: torch's files are zip archives, with a directory at their end and
  checksums.  Whether it is ours is seen when it is read.
  """
  try:
    with path.open("rb") as file:
      return _why_broken(file)
  except OSError as error:
    return f"cannot be read ({error.strerror})"


def _why_broken(file: IO[bytes]) -> str:
  try:
    with zipfile.ZipFile(file) as archive:
      damaged = archive.testzip()
      ours = any(name.endswith("/data.pkl") for name in archive.namelist())
  except Exception:  # a broken archive makes the reader raise nearly anything
    damaged, ours = None, False
  if damaged is not None:
    return f"is damaged: the checksum of its part {damaged} is wrong"
  return "" if ours else "is cut short or is no checkpoint of mjrl"


def iteration_of(path: Path) -> int:
  """The iteration in a checkpoint's name, or -1."""
  match = _NAME.search(path.name)
  return int(match.group(1)) if match else -1


def write(path: Path, saved: dict[str, Any]) -> None:
  """Write a checkpoint whole or not at all."""
  import torch

  buffer = io.BytesIO()
  torch.save(saved, buffer)
  write_bytes(path, buffer.getvalue())


def prune(written: list[Path], keep: int) -> None:
  """Remove the oldest of a run's checkpoints, and take them off its list.

  Args:
    written: by this run, the oldest first.
    keep: how many of them stay, the newest; at least 1.

  Raises:
    OSError: one could not be removed; it and those after it stay on the list.
  """
  while len(written) > keep:
    written[0].unlink(missing_ok=True)
    del written[0]


def read(path: Path) -> dict[str, Any]:
  """Read a checkpoint without running anything that it holds.

  Raises:
    ValueError: the file is cut short or damaged, or is no checkpoint of ours.
  """
  try:
    saved = unpickle(path)
  except ValueError as error:
    raise ValueError(f"{error}; {_ANOTHER}") from error
  if "actor_state_dict" not in saved or "task" not in saved:
    raise ValueError(f"{path} is no checkpoint of mjrl; {_ANOTHER}")
  return saved


def unpickle(path: Path) -> dict[str, Any]:
  """Tensors and plain values of a file, without running anything that it holds.

  Raises:
    ValueError: the file is cut short or damaged, or holds something else; what to do about it is
      the caller's to say.
  """
  import torch

  data = path.read_bytes()  # a file that cannot be opened says so itself
  if why := _why_broken(io.BytesIO(data)):
    raise ValueError(f"{path} {why}")
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # torch guesses at what is wrong with a foreign file
      saved = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
  except Exception as error:  # a foreign file makes the reader raise nearly anything
    raise ValueError(f"{path} is no checkpoint of mjrl") from error
  if not isinstance(saved, dict):
    raise ValueError(f"{path} is no checkpoint of mjrl")
  return saved


def check_networks(
  path: Path,
  saved: dict[str, Any],
  task: dict[str, Any],
  recipe: dict[str, Any],
  *,
  any_task: bool = False,
) -> None:
  """Refuse a checkpoint whose networks are not those of this task and recipe.

  Args:
    path: for the error.
    saved: what `read` gave.
    task: the task that is to run, as `describe` gives it.
    recipe: likewise its recipe.
    any_task: whether it may be of another task, as long as its networks fit.

  Raises:
    ValueError: with each difference that matters.
  """
  if saved["task"]["name"] != task["name"] and not any_task:
    name = saved["task"]["name"]
    raise ValueError(
      f"{path} is of task {name}, not of {task['name']}; give --task {name}, or another "
      "--checkpoint"
    )
  lacking = [field.name for field in fields(Recipe) if field.name not in saved["recipe"]]
  if lacking:
    raise ValueError(
      f"{path} is of another version of mjrl, whose recipes have no {', '.join(lacking)}: use that "
      "version, or train anew"
    )
  lines = []
  for group, rows in task["observations"].items():
    old, new = _inputs(saved["task"]["observations"].get(group, {})), _inputs(rows)
    lines += differences(old, new, f"observations.{group}")
    if not lines and list(old) != list(new):
      lines.append(f"observations.{group}: the order of the rows")
  old, new = _networks(saved["recipe"]), _networks(recipe)
  lines += differences(old, new, "recipe")
  if (old["memory"] is None) != (new["memory"] is None):
    lines[-1] += " (--recurrent: give it, or leave it out, as when this was trained)"
  if lines:
    raise ValueError(f"{path} does not fit this task: " + "; ".join(lines))


def _inputs(rows: dict[str, Any]) -> dict[str, Any]:
  """The parts of observation rows that a network's inputs depend on."""
  keys = ("fn", "history", "delay_s", "scale", "clip", "params")
  return {name: {key: row[key] for key in keys} for name, row in rows.items()}


def _networks(recipe: dict[str, Any]) -> dict[str, Any]:
  """The parts of a recipe that its networks depend on."""
  keys = ("actor_hidden", "critic_hidden", "activation", "history", "memory")
  return {key: recipe[key] for key in keys}
