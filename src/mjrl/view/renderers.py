"""What can draw pictures without a window: each of MuJoCo's ways, tried in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

RENDERERS = ("egl", "osmesa", "glfw")
PROBE_S = 30.0
_PROBE = """
import os
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
renderer = mujoco.Renderer(model, 16, 16)
renderer.update_scene(mujoco.MjData(model))
print("drawn", renderer.render().shape, flush=True)
os._exit(0)  # some ways of drawing fail over their own end
"""


def obstacles(names: Sequence[str] = RENDERERS, code: str = _PROBE) -> dict[str, str]:
  """Value of MUJOCO_GL to why nothing can be drawn with it; "" where something can."""
  with ThreadPoolExecutor(len(names)) as pool:  # each waits for a process
    return dict(zip(names, pool.map(lambda name: _obstacle(name, code), names), strict=True))


def _obstacle(name: str, code: str) -> str:
  environ = os.environ | {"MUJOCO_GL": name}
  command = [sys.executable, "-W", "ignore", "-c", code]
  try:
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=PROBE_S)
  except subprocess.TimeoutExpired:
    return f"it does not answer within {PROBE_S:g} s"
  if done.stdout.startswith("drawn"):
    return ""
  last = done.stderr.strip().splitlines()[-1:] or [f"it ended with code {done.returncode}"]
  return last[0]
