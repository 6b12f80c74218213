"""Films of robots: handed frame by frame to a process of their own, which draws and encodes.

So a driver that crashes takes no run with it, drawing and simulating use a core each, and nothing
here depends on what MuJoCo was imported with.
"""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import mujoco
import numpy as np
from numpy.typing import NDArray

from mjrl.view.shot import Shot

Array = NDArray[np.float32]
_DONE_S = 600.0  # for what is still to be drawn when the last frame has been handed over
_DIES_S = 10.0  # for a process that reads no more to end, and say why


@dataclass(frozen=True, kw_only=True)
class Subject:
  """What is filmed: the robots of `tiles` envs, which have one model."""

  model: mujoco.MjModel
  base_body: str
  home_height_m: float
  tiles: int


@dataclass(frozen=True, kw_only=True)
class Frame:
  """A moment of K tiles.

  qpos   (K, nq)
  began  (K,) whether an episode has just begun
  lines  of text, of each tile
  """

  qpos: Array
  began: NDArray[np.bool_]
  lines: Sequence[Sequence[str]]


class Film:
  """A film in the making.  Its file appears when it is whole, or not at all.

  frames  so far
  """

  def __init__(
    self,
    shot: Shot,
    subject: Subject,
    library: str,
    *,
    later: bool = False,
    gif: Path | None = None,
  ) -> None:
    """Begin.

    Args:
      shot: what it is to be.
      subject: what is filmed.
      library: see `mjrl.view.offscreen.find_library`.
      later: whether frames are kept for `develop`, and then drawn when nobody else needs the CPU;
        otherwise each is drawn as it comes.
      gif: a short excerpt for where no film can be shown; None makes none.
    """
    self.shot, self.frames = shot, 0
    self._library, self._process = library, None
    self._unfinished = _beside(shot.path)
    self._errors = tempfile.TemporaryFile()  # not a pipe, which would have to be read to go on
    self._kept = tempfile.TemporaryFile() if later else None
    if not later:
      self._start(subprocess.PIPE)
    self._send((shot, self._unfinished, gif, subject, later))

  def add(self, frame: Frame) -> None:
    """Add a frame.

    Raises:
      OSError: it cannot be drawn or written; there will be no film.
    """
    self._send(frame)
    self.frames += 1

  def develop(self) -> None:
    """Begin to draw the frames that were kept, without waiting."""
    assert self._kept
    self._send(None)
    self._kept.seek(0)
    self._start(self._kept)

  @property
  def drawing(self) -> bool:
    """Whether frames are still being drawn."""
    return self._process is not None and self._process.poll() is None

  def close(self, timeout_s: float = _DONE_S) -> Path:
    """Wait until the last frame is drawn; returns the file.

    Raises:
      OSError: there is no film, and why.
    """
    if self._process is None or self._errors.closed:
      raise OSError("no film was made")
    if not self._kept:
      self._send(None)
    try:
      if self._process.stdin:
        self._process.stdin.close()
      failed = self._process.wait(timeout_s)
    except (BrokenPipeError, subprocess.TimeoutExpired) as error:
      failed = error
    said = self._said()
    self.abandon()
    if isinstance(failed, subprocess.TimeoutExpired):
      raise OSError(f"no film was made: it was not drawn within {timeout_s:g} s")
    if failed:
      raise OSError(f"no film was made: {said}")
    return self.shot.path

  def abandon(self) -> None:
    """Leave nothing behind that is not whole."""
    for file in (self._kept, self._errors):
      if file:
        file.close()
    if self._process:
      if self._process.poll() is None:
        self._process.kill()
      self._process.wait()
      if self._process.stdin:
        with suppress(OSError):  # it is gone, with what it had not read
          self._process.stdin.close()
    with suppress(OSError):
      self._unfinished.unlink()

  def _send(self, what: object) -> None:
    pipe = self._kept or (self._process.stdin if self._process else None)
    assert pipe
    try:
      pickle.dump(what, pipe)
    except OSError as error:
      if self._process:
        self._process.wait(_DIES_S)
      said = self._said() or error.strerror
      self.abandon()
      raise OSError(f"no film was made: {said}") from None

  def _start(self, source: int | IO[bytes]) -> None:
    self.shot.path.parent.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, sys.path))
    self._process = subprocess.Popen(
      [sys.executable, "-W", "ignore", "-P", "-m", "mjrl.view.drawing"],
      stdin=source,
      stdout=subprocess.DEVNULL,
      stderr=self._errors,
      start_new_session=True,  # Ctrl-C is for the run, which then ends the film
      env=os.environ | {"MUJOCO_GL": self._library, "PYTHONPATH": path},
    )

  def _said(self) -> str:
    """The last line of what the process complained of."""
    self._errors.seek(0)
    lines = self._errors.read().decode(errors="replace").strip().splitlines()
    code = self._process.poll() if self._process else None
    return lines[-1].strip() if lines else f"the process that draws ended with {code}"


def _beside(path: Path) -> Path:
  """A name in the same folder, since a rename is whole only within one file system."""
  return path.with_name(f".{path.stem}.{os.getpid()}.tmp.mp4")
