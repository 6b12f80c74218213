"""Files that are there whole or not at all."""

import errno
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_bytes(path: Path, data: bytes) -> None:
  """Write a file, making its folder; a failure on the way leaves what was there before.

  A process that is killed on the way leaves a `.<name>.*.tmp`, which nothing reads.

  Raises:
    OSError: it could not be written; names the file, which Python's own errors of writing do not.
  """
  try:
    _write(path, data)
  except OSError as error:
    raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def write_json(path: Path, value: Any) -> None:
  """Write plain values as `write_bytes` does.

  Raises:
    OSError: it could not be written.
  """
  write_bytes(path, (json.dumps(value, indent=2) + "\n").encode())


def _write(path: Path, data: bytes) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  # In the same folder, because a rename is whole only within one file system.
  handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
  try:
    with os.fdopen(handle, "wb") as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.chmod(name, 0o666 & ~_umask())  # mkstemp's files are private
    os.replace(name, path)
  except BaseException:
    with suppress(OSError):
      os.unlink(name)
    raise
  _sync(path.parent)


def _sync(folder: Path) -> None:
  """Have the new name outlive a power cut too, before anything older is removed for it."""
  with suppress(OSError):  # Windows and some network file systems cannot; the file itself is there
    handle = os.open(folder, os.O_RDONLY)
    try:
      os.fsync(handle)
    finally:
      os.close(handle)


def append_bytes(path: Path, data: bytes) -> None:
  """Append to a file; where the disk is full, it stays what it was.

  Raises:
    OSError: there is no such file, or no room.
  """
  with path.open("r+b", buffering=0) as file:
    end = file.seek(0, os.SEEK_END)
    if file.write(data) != len(data):
      file.truncate(end)
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _umask() -> int:
  mask = os.umask(0)
  os.umask(mask)
  return mask
