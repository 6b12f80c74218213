"""The process that draws a film: reads frames from its standard input, and encodes them.

Run by `mjrl.view.film`, with MUJOCO_GL set to what can draw here.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from math import ceil, sqrt
from pathlib import Path

import imageio_ffmpeg
import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from mjrl.view.film import Array, Frame, Subject
from mjrl.view.shot import CAMERAS, Shot, View

Picture = NDArray[np.uint8]
_TURN_S = 0.5  # time in which a camera that turns with the robot comes round
_GIF_FPS, _GIF_S, _GIF_PX = 10.0, 4.0, 320
_NICE = 10
_SHADOW_EXTENTS = 4.0  # MuJoCo's 1 shows the rim of the shadowed ground as a band of dots
_INK, _PAPER = (255, 255, 255, 255), (20, 22, 26, 140)
_FONT = Path("mpl-data/fonts/ttf/DejaVuSansMono.ttf")  # of matplotlib, which need not be loaded


class Artist:
  """Draws the robots of a subject, one at a time, off screen."""

  def __init__(
    self, subject: Subject, width: int, height: int, view: View, *, fine: bool = False
  ) -> None:
    """Take a brush.

    Args:
      subject: what is drawn.
      width: px.
      height: px.
      view: where it is seen from.
      fine: smooth edges and mirroring ground, which cost five times as much without a GPU.
    """
    model = subject.model
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    model.vis.quality.offsamples = 8 if fine else 0
    model.vis.quality.shadowsize = 8192 if fine else 2048
    model.vis.map.shadowclip = _SHADOW_EXTENTS
    if not fine:
      model.vis.quality.numslices, model.vis.quality.numstacks = 16, 10
    self._model, self._data = model, mujoco.MjData(model)
    self._base = model.body(subject.base_body).id
    self._view = view
    self._camera = mujoco.MjvCamera()
    self._camera.elevation = view.elevation_deg
    self._camera.distance = view.distance * subject.home_height_m
    self._renderer = mujoco.Renderer(model, height, width)
    self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = fine

  def place(self, qpos: Array) -> float:
    """Put the robot at qpos, (nq,); returns its heading about the world's z axis, rad."""
    self._data.qpos[:] = qpos
    # Poses of bodies, cameras, lights and soft bodies: all that a picture needs.
    mujoco.mj_kinematics(self._model, self._data)
    mujoco.mj_camlight(self._model, self._data)
    mujoco.mj_flex(self._model, self._data)
    forward = self._data.xmat[self._base].reshape(3, 3)[:, 0]
    return float(np.arctan2(forward[1], forward[0]))

  def draw(self, heading_rad: float) -> Picture:
    """A picture, (height, width, 3), of the robot as it was placed.

    Args:
      heading_rad: that the view's azimuth counts from.
    """
    self._camera.lookat[:] = self._data.xpos[self._base]
    self._camera.azimuth = np.degrees(heading_rad) + self._view.azimuth_deg
    self._renderer.update_scene(self._data, self._camera)
    self._bring_suns()
    return self._renderer.render()

  def _bring_suns(self) -> None:
    """Let shadows fall here: MuJoCo draws those in the surroundings of a light alone."""
    scene, extent_m = self._renderer.scene, self._model.stat.extent
    for light in scene.lights[: scene.nlight]:
      if light.type == mujoco.mjtLightType.mjLIGHT_DIRECTIONAL and not light.headlight:
        light.pos[:] = self._data.xpos[self._base] - extent_m * light.dir

  def close(self) -> None:
    """Free what the driver holds: left to the end of Python, some crash."""
    self._renderer.close()


class Editor:
  """Makes a frame a picture: a tile for each robot, with its lines on it."""

  def __init__(self, subject: Subject, shot: Shot) -> None:
    """Lay out the tiles."""
    self._shape = (shot.height, shot.width, 3)
    self._columns = ceil(sqrt(subject.tiles))
    self._rows = ceil(subject.tiles / self._columns)
    self._width, self._height = shot.width // self._columns, shot.height // self._rows
    view = CAMERAS[shot.camera]
    self._artist = Artist(subject, self._width, self._height, view)
    self._headings_rad = [0.0] * subject.tiles
    self._turn = 1 - np.exp(-1 / (shot.fps * _TURN_S)) if view.turns else 0.0
    self._font = font(max(self._height // 32, 9))

  def picture(self, frame: Frame) -> Picture:
    """The whole picture, (height, width, 3)."""
    picture = np.zeros(self._shape, np.uint8)
    for k, (qpos, began, lines) in enumerate(
      zip(frame.qpos, frame.began, frame.lines, strict=True)
    ):
      own_rad = self._artist.place(qpos)
      if began:
        self._headings_rad[k] = own_rad
      off_rad = np.remainder(own_rad - self._headings_rad[k] + np.pi, 2 * np.pi) - np.pi
      self._headings_rad[k] += self._turn * off_rad
      tile = captioned(self._artist.draw(self._headings_rad[k]), lines, self._font)
      x, y = k % self._columns * self._width, k // self._columns * self._height
      picture[y : y + self._height, x : x + self._width] = tile
    return picture

  def close(self) -> None:
    """Let go of what draws."""
    self._artist.close()


def font(size_px: int) -> ImageFont.FreeTypeFont:
  """A font in which columns of numbers stand below one another."""
  spec = find_spec("matplotlib")
  assert spec and spec.submodule_search_locations  # a dependency of mjrl
  return ImageFont.truetype(str(Path(spec.submodule_search_locations[0]) / _FONT), size_px)


def captioned(tile: Picture, lines: Sequence[str], font: ImageFont.FreeTypeFont) -> Picture:
  """The tile with lines of text on it, at the top left."""
  if not lines:
    return tile
  image = Image.fromarray(tile)
  pen = ImageDraw.Draw(image, "RGBA")  # which lays half transparent colours over what is there
  text, margin = "\n".join(lines), int(font.size) // 2
  left, top, right, bottom = pen.multiline_textbbox((2 * margin, 2 * margin), text, font)
  paper = (left - margin, top - margin, right + margin, bottom + margin)
  pen.rounded_rectangle(paper, radius=margin, fill=_PAPER)
  pen.multiline_text((2 * margin, 2 * margin), text, _INK, font)
  return np.asarray(image)


class Encoder:
  """ffmpeg, with what plays everywhere: H.264, yuv420p, its index at the front of the file."""

  def __init__(self, path: Path, shot: Shot) -> None:
    """Begin to write a file of the shot's size and rate at path."""
    asked = (
      f"-f rawvideo -pix_fmt rgb24 -s {shot.width}x{shot.height} -r {shot.fps:g} -i - -an "
      "-c:v libx264 -preset veryfast -crf 21 -vf scale=out_color_matrix=bt709 -pix_fmt yuv420p "
      "-colorspace bt709 -color_primaries bt709 -color_trc bt709 -movflags +faststart -f mp4"
    )
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", *asked.split()]
    self._process = subprocess.Popen([*command, str(path)], stdin=subprocess.PIPE)

  def add(self, picture: Picture) -> None:
    """Add a picture."""
    assert self._process.stdin
    self._process.stdin.write(picture.tobytes())

  def close(self) -> None:
    """Wait until the file is whole.

    Raises:
      OSError: it is not.
    """
    self._process.communicate()
    if self._process.returncode:
      raise OSError(f"ffmpeg ended with {self._process.returncode}")

  def abandon(self) -> None:
    """End, whatever there is of the file."""
    self._process.kill()
    self._process.wait()


def main() -> None:
  """Draw the film that comes in at standard input."""
  source = sys.stdin.buffer
  shot, unfinished, gif, subject, polite = pickle.load(source)
  if polite and hasattr(os, "nice"):  # Windows has none
    os.nice(_NICE)
  editor, encoder = Editor(subject, shot), Encoder(unfinished, shot)
  excerpt: list[Image.Image] = []
  try:
    frames = 0
    while (frame := pickle.load(source)) is not None:
      picture = editor.picture(frame)
      encoder.add(picture)
      if gif and len(excerpt) <= min(frames / shot.fps, _GIF_S) * _GIF_FPS:
        excerpt.append(_reduced(picture))
      frames += 1
    encoder.close()
  except BaseException:  # whoever sent the frames may be gone, in the middle of the film
    encoder.abandon()
    unfinished.unlink(missing_ok=True)
    raise
  finally:
    editor.close()
  os.replace(unfinished, shot.path)
  if gif:
    period_ms = round(1000 / _GIF_FPS)
    excerpt[0].save(gif, append_images=excerpt[1:], save_all=True, duration=period_ms, loop=0)


def _reduced(picture: Picture) -> Image.Image:
  image = Image.fromarray(picture)
  image.thumbnail((_GIF_PX, _GIF_PX))
  return image.quantize(64)


if __name__ == "__main__":
  main()
