"""How pictures can be drawn here without a window: found by drawing one in another process."""

import subprocess
import sys
from collections.abc import Mapping

PROBE_S = 30.0
_LIBRARIES = {
  "linux": ("egl", "osmesa", "glfw"),
  "darwin": ("cgl", "glfw"),
  "win32": ("wgl",),
}
_OFF = ("disable", "disabled", "off", "false", "0")
# A broken driver ends a process instead of raising, so that MuJoCo is not asked in this one; and it
# settles on a library for good when it is imported.
_PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 16, 16) as renderer:
  renderer.update_scene(data)
  renderer.render()
  from OpenGL import GL
  print((GL.glGetString(GL.GL_RENDERER) or b"").decode())
"""


def find_library(platform: str, environ: Mapping[str, str]) -> tuple[str, str]:
  """The library to draw with: MUJOCO_GL if it is set, else the first that can.

  Args:
    platform: sys.platform.
    environ: os.environ.

  Returns:
    What MUJOCO_GL must be, and the name of what draws, such as that of a GPU.

  Raises:
    ValueError: none can, with what each of them said and what to install.
  """
  asked = environ.get("MUJOCO_GL", "").lower().strip()
  if asked in _OFF:
    raise ValueError(f"no picture can be drawn: MUJOCO_GL is {asked}; unset it")
  choices = (asked,) if asked else _LIBRARIES.get(platform, ("glfw",))
  if not asked and not (environ.get("DISPLAY") or platform != "linux"):
    choices = tuple(name for name in choices if name != "glfw")  # which needs a display there
  said = []
  for name in choices:
    drawn_by, why = probe(name, environ)
    if drawn_by:
      return name, drawn_by
    said.append(f"{name}: {why}")
  install = (
    "; on Debian and Ubuntu, apt install libegl1 libgl1-mesa-dri (EGL, with a GPU or without), or "
    "libosmesa6 (OSMesa, without)"
    if platform == "linux"
    else ""
  )
  given = f" (MUJOCO_GL is {asked})" if asked else ""
  raise ValueError(f"no picture can be drawn here{given}; {'; '.join(said)}{install}")


def probe(library: str, environ: Mapping[str, str], code: str = _PROBE) -> tuple[str, str]:
  """What draws with a library, or "" and why nothing does."""
  environ = {**environ, "MUJOCO_GL": library}
  try:
    done = subprocess.run(
      [sys.executable, "-W", "ignore", "-P", "-c", code],
      capture_output=True,
      text=True,
      timeout=PROBE_S,
      env=environ,
    )
  except subprocess.TimeoutExpired:
    return "", f"it does not answer within {PROBE_S:g} s"
  if done.returncode == 0:
    return done.stdout.strip() or library, ""
  last = [line for line in done.stderr.strip().splitlines() if line.strip()][-1:]
  return "", last[0].strip() if last else f"the test of it ended with {done.returncode}"
