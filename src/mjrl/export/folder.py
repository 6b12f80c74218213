"""The folder of an export: there whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mjrl.export.layout import SCHEMA

LAYOUT = "layout.json"


def check_replaceable(folder: Path) -> None:
  """Refuse to write where there is something that is not an export.

  Raises:
    ValueError: with what to do.
  """
  if not folder.exists():
    return
  if not folder.is_dir():
    raise ValueError(f"--out {folder} is a file; name a folder")
  if any(folder.iterdir()) and not _is_export(folder):
    raise ValueError(
      f"--out {folder} holds something else than an export, which would be replaced: name a new "
      "folder, an empty one, or one of an earlier export"
    )


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
  """A folder to fill, which takes the place of `folder` once the block is through.

  If the block raises, what was there before stays as it was.
  """
  folder.parent.mkdir(parents=True, exist_ok=True)
  # Beside it, because a rename is whole only within one file system.
  fresh = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
  old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
  fresh.mkdir()
  try:
    yield fresh
    _flush(fresh)
    if folder.exists():
      folder.rename(old)
    try:
      fresh.rename(folder)
    except BaseException:
      if old.exists():
        old.rename(folder)
      raise
    shutil.rmtree(old, ignore_errors=True)
  finally:
    shutil.rmtree(fresh, ignore_errors=True)


def _is_export(folder: Path) -> bool:
  try:
    layout = json.loads((folder / LAYOUT).read_text(encoding="utf-8"))
    return layout["schema"] == SCHEMA
  except (OSError, ValueError, KeyError, TypeError):
    return False


def _flush(folder: Path) -> None:
  """Have every file on the disk before its folder takes its name."""
  for path in folder.rglob("*"):
    if path.is_file():
      with path.open("rb") as file:
        os.fsync(file.fileno())
