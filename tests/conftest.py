import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile

import imageio_ffmpeg
import numpy as np
import pytest

from mjrl.view.offscreen import find_library

ROOM = """
<mujoco model="room">
  <compiler angle="degree" meshdir="assets"/>
  <default><geom friction="0.3 0.1 0.1" condim="4"/><joint damping="7"/></default>
  <asset>
    <mesh name="ramp" file="ramp.obj"/>
    <material name="wood" rgba=".6 .45 .3 1"/>
  </asset>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 .1" material="wood"/>
    <light name="sun" pos="0 0 3" dir="0 0 -1" type="directional"/>
    <geom name="ramp" type="mesh" mesh="ramp" pos="4 2 0"/>
    <body name="crate" pos="3 2 .06" euler="0 0 45">
      <freejoint/>
      <geom name="crate" type="box" size=".06 .06 .06" mass=".1"/>
    </body>
    <body name="door" pos="0 2 0">
      <joint name="hinge" axis="0 0 1" range="-90 90"/>
      <geom name="door" type="box" size=".1 .02 .2"/>
    </body>
    <site name="start" pos="1 -1 0"/>
  </worldbody>
</mujoco>
"""
RAMP = "v 0 0 0\nv .4 0 0\nv .4 .3 0\nv 0 .3 0\nv .4 0 .1\nv .4 .3 .1\n" + "".join(
  f"f {a} {b} {c}\n" for a, b, c in ("123", "134", "125", "436", "236", "156")
)
BALL = """
<mujoco>
  <worldbody>
    <body name="ball"><freejoint/><geom name="ball" type="sphere" size=".04" mass=".02"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def make_package(tmp_path):
  """A package of a room, a crate, a door, a ramp and a ball; what is given changes it.

  name      of its file, or of its folder where it has no suffix
  files     name to content, None to leave one out; they are listed as they are
  manifest  entries that replace the ones here, None to leave one out
  listed    entries of the manifest's files that replace the true ones, None to leave one out
  extra     (name, content) of members that are not listed
  raw       the manifest's text in place of it all
  """

  def make(name="room.map", *, files=None, manifest=None, listed=None, extra=(), raw=None):
    content = {"scene.xml": ROOM, "assets/ramp.obj": RAMP, "props/ball.xml": BALL}
    content = {
      k: v.encode() if isinstance(v, str) else v
      for k, v in (content | (files or {})).items()
      if v is not None
    }
    true = {
      k: {"bytes": len(v), "sha256": hashlib.sha256(v).hexdigest()} for k, v in content.items()
    }
    counts = {"geoms": 4, "bodies": 2, "lights": 1, "textures": 0, "materials": 1, "meshes": 1}
    whole = {
      "schema": "kk-scene-package/1",
      "id": "room",
      "title": "A room",
      "version": "1.0.0",
      "use": "watching",
      "requiredCapabilities": ["rigid"],
      "world": {
        "file": "scene.xml",
        "ground": {"geom": "ground"},
        "counts": counts,
        "attach": {"prefix": "scn_"},
      },
      "props": [
        {"id": "ball", "file": "props/ball.xml", "initPositionRelativeToRobot": [0.5, 0.1, 0.05]},
        {"id": "crate", "position": [3, 2, 0.06]},
      ],
      "spawn": {"position": [2, 2, 0], "yaw": 90},
      "files": {k: v for k, v in (true | (listed or {})).items() if v is not None},
    }
    whole = {k: v for k, v in (whole | (manifest or {})).items() if v is not None}
    text = json.dumps(whole) if raw is None else raw
    members = [("scene-package.json", text), *content.items(), *extra]
    path = tmp_path / name
    if path.suffix:
      with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members:
          archive.writestr(member, data)
    else:
      for member, data in members:
        (path / member).parent.mkdir(parents=True, exist_ok=True)
        (path / member).write_bytes(data.encode() if isinstance(data, str) else data)
    return path

  return make


@pytest.fixture(scope="session")
def library():
  """What draws on this machine; without any, tests of pictures say what to install."""
  return find_library(sys.platform, os.environ)[0]


@pytest.fixture(scope="session")
def read_film():
  """What ffmpeg says of a film, and its pictures, (height, width, 3) each."""

  def read(path):
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo"]
    command += ["-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True)
    about = done.stderr.decode().partition("Stream #")[2].partition("\n")[0]
    (size,) = re.findall(r" (\d+x\d+)[ ,]", about)
    width, height = map(int, size.split("x"))
    pictures = np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3)
    return about, pictures

  return read
