"""TensorBoard beside a run: a child process that never fails it and ends with it."""

import subprocess
import sys
from pathlib import Path

from mjrl.ports import LOCAL, PORTS_TRIED, free_port

# The child has Linux end it when the run is killed, since nobody would stop it then: prctl's
# PR_SET_PDEATHSIG (1) with SIGTERM (15).
_CHILD = """
import ctypes, sys
if sys.platform == "linux":
  ctypes.CDLL(None).prctl(1, 15)
from tensorboard.main import run_main
run_main()
"""


class TensorBoard:
  """Shows a run folder's siblings on 127.0.0.1 for as long as the context is open."""

  def __init__(self, folder: Path, port: int | None) -> None:
    """Show the runs beside `folder` on `port` or the next free one; None shows nothing."""
    self._folder, self._port = folder, port
    self._process: subprocess.Popen[bytes] | None = None

  def __enter__(self) -> "TensorBoard":
    """Start it, and say where it is; a failure costs one line."""
    if self._port is None:
      return self
    port = free_port(self._port)
    if port is None:
      last = self._port + PORTS_TRIED - 1
      print(f"TensorBoard: no free port in {self._port}..{last}; going on without")
      return self
    command = [sys.executable, "-c", _CHILD, "--logdir", str(self._folder.parent)]
    command += ["--host", LOCAL, "--port", str(port), "--load_fast", "false"]
    try:
      with (self._folder / "tensorboard.log").open("wb") as log:
        # Its own session: Ctrl-C is for the run, which then ends it.
        self._process = subprocess.Popen(
          command,
          stdout=log,
          stderr=subprocess.STDOUT,
          start_new_session=True,
        )
    except OSError as error:
      print(f"TensorBoard did not start ({error}); going on without")
      return self
    print(f"TensorBoard: http://{LOCAL}:{port}")
    return self

  def __exit__(self, *_: object) -> None:
    """Stop it."""
    if self._process is None:
      return
    self._process.terminate()
    try:
      self._process.wait(timeout=5)
    except subprocess.TimeoutExpired:
      self._process.kill()
