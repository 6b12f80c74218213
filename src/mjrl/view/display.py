"""Whether a window can be opened here."""

import subprocess
import sys
from collections.abc import Mapping

PROBE_S = 15.0
_PROBE = """
import glfw, sys
if not glfw.init():
  sys.exit("the display does not answer")
glfw.window_hint(glfw.VISIBLE, False)
window = glfw.create_window(64, 64, "", None, None)
if not window:
  sys.exit("the display has no OpenGL")
glfw.make_context_current(window)
glfw.terminate()
"""


def window_obstacle(platform: str, environ: Mapping[str, str]) -> str:
  """Why no window can open as far as the environment tells; empty if one may.

  Args:
    platform: sys.platform.
    environ: os.environ.
  """
  if platform == "darwin":
    # MuJoCo's window must own the main thread there, which its launcher arranges.
    launched = bool(environ.get("MJPYTHON_BIN"))
    return "" if launched else "on macOS a window needs mjpython: run it instead of python"
  if platform == "win32" or environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
    return ""
  return "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)"


def probe_window(code: str = _PROBE) -> str:
  """Why no window can open, found by opening a hidden one in another process; empty if one can.

  MuJoCo's window waits forever where GLFW does not start, and ends the process where OpenGL is
  missing: neither may happen to a run.
  """
  try:
    done = subprocess.run(
      [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=PROBE_S
    )
  except subprocess.TimeoutExpired:
    return f"the display does not answer within {PROBE_S:g} s"
  if done.returncode == 0:
    return ""
  last = done.stderr.strip().splitlines()[-1:] or [f"the test of it ended with {done.returncode}"]
  return f"no window could be opened: {last[0]}"
