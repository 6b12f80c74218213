"""The files of a scene package, from a folder or an archive: read whole, and checked on the way.

Nothing is unpacked, and nothing is trusted: names, sizes and hashes are looked at first.
"""

import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST = "scene-package.json"
MAX_PACKED, MAX_UNPACKED, MAX_FILES = 64 * 2**20, 192 * 2**20, 256
_UNLISTED = ("README", "README.md", "LICENSE", "LICENSE.md", "LICENSE.txt")


def read_files(path: Path) -> dict[str, bytes]:
  """Name to content of every file in a package.

  Raises:
    FileNotFoundError: there is nothing at the path.
    ValueError: a package that is too large, or a name that could lead out of it.
  """
  if path.is_dir():
    return _read_folder(path)
  if not path.is_file():
    raise FileNotFoundError(f"scene package {path}: there is no such file or folder")
  return _read_archive(path)


def check_listed(files: Mapping[str, bytes], listed: Mapping[str, Any]) -> None:
  """Compare what is there with what the manifest lists.

  Raises:
    ValueError: a file that is missing, not listed, or another than the one listed.
  """
  for name, entry in listed.items():
    _check_name(name)
    if name not in files:
      raise ValueError(f"{name} is listed, and not there")
    if not isinstance(entry, Mapping):
      raise ValueError(f"files: {name} is {entry!r}; it must have bytes and sha256")
    size, digest = len(files[name]), hashlib.sha256(files[name]).hexdigest()
    if entry.get("bytes") != size:
      raise ValueError(f"{name} has {size} bytes, and is listed with {entry.get('bytes')}")
    if entry.get("sha256") != digest:
      raise ValueError(f"{name} is not what it was: its SHA-256 is not the one that is listed")
  unlisted = sorted(set(files) - set(listed) - {MANIFEST, *_UNLISTED})
  if unlisted:
    raise ValueError(f"{unlisted[0]} is there, and not listed")


def _read_folder(path: Path) -> dict[str, bytes]:
  found: list[tuple[str, Path]] = []
  for folder, folders, names in os.walk(path):
    for name in (*folders, *names):
      one = Path(folder, name)
      if one.is_symlink():
        raise ValueError(f"{one.relative_to(path)} is a symbolic link")
    found += [
      (Path(folder, name).relative_to(path).as_posix(), Path(folder, name)) for name in names
    ]
    if len(found) > MAX_FILES:
      raise ValueError(f"it has more than {MAX_FILES} files")
  _check_names([name for name, _ in found])
  _check_size("its files take", sum(one.stat().st_size for _, one in found), MAX_UNPACKED)
  return {name: one.read_bytes() for name, one in found}


def _read_archive(path: Path) -> dict[str, bytes]:
  _check_size("it has", path.stat().st_size, MAX_PACKED)
  try:
    with zipfile.ZipFile(path) as archive:
      entries = archive.infolist()
      if len(entries) > MAX_FILES:
        raise ValueError(f"it has {len(entries)} entries; at most {MAX_FILES} are read")
      for entry in entries:
        _check_entry(entry)
      _check_names([entry.filename.removesuffix("/") for entry in entries])
      _check_size("unpacked, it has", sum(entry.file_size for entry in entries), MAX_UNPACKED)
      # `read` stops at the size that was declared, and checks the sum of what it read.
      return {entry.filename: archive.read(entry) for entry in entries if not entry.is_dir()}
  except (zipfile.BadZipFile, EOFError, OSError) as error:
    raise ValueError(f"it is no whole ZIP archive: {error}") from None


def _check_entry(entry: zipfile.ZipInfo) -> None:
  if entry.flag_bits & 0x1:
    raise ValueError(f"{entry.filename} is encrypted")
  if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
    raise ValueError(f"{entry.filename} is compressed by another method than deflate")
  if stat.S_ISLNK(entry.external_attr >> 16):
    raise ValueError(f"{entry.filename} is a symbolic link")


def _check_names(names: list[str]) -> None:
  seen: dict[str, str] = {}
  for name in names:
    _check_name(name)
    other = seen.setdefault(name.casefold(), name)
    if other != name or names.count(name) > 1:
      raise ValueError(f"{name} and {other} are one file where case does not count")


def _check_name(name: str) -> None:
  """A relative path of POSIX, which leads nowhere else on any system."""
  parts = name.split("/")
  if (
    "\\" in name
    or "\0" in name
    or re.match(r"[A-Za-z]:", name)
    or any(part in ("", ".", "..") for part in parts)
  ):
    raise ValueError(
      f"the name {name!r} could lead out of it: names are relative, of / and without .."
    )


def _check_size(what: str, size: int, most: int) -> None:
  if size > most:
    raise ValueError(f"{what} {size / 2**20:.0f} MiB; at most {most // 2**20} MiB are read")
