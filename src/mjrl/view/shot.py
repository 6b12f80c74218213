"""What a film is to be, checked before anything is built."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mjrl.names import nearest

SECONDS = 10.0
"""Length of a film that nobody gave a length."""
SIZE, FPS, CAMERA = "640x480", 25.0, "follow"
MAX_TILES = 9
"""Robots in one picture, at most."""
_LEAST_PX, _MOST_PX = 64, 3840


class View(NamedTuple):
  """Where a camera is, seen from the robot that it travels with.

  azimuth_deg    of its view against the robot's first heading: 0 looks the way the robot does
  elevation_deg  negative from above
  distance       in heights of the robot's base
  turns          whether it turns with the robot, and not only travels with it
  """

  azimuth_deg: float
  elevation_deg: float
  distance: float
  turns: bool = False


CAMERAS: Mapping[str, View] = {
  "follow": View(140.0, -20.0, 7.5),
  "side": View(90.0, -8.0, 8.0),
  "front": View(180.0, -12.0, 8.0),
  "behind": View(0.0, -25.0, 8.0, turns=True),
  "top": View(0.0, -89.0, 10.0),
}


@dataclass(frozen=True, kw_only=True)
class Shot:
  """A film of a number of robots, each in a tile of its own.

  path           an .mp4, H.264
  width, height  px, of the whole picture
  fps            frames per simulated second, which the film plays in real time
  camera         one of `CAMERAS`
  """

  path: Path
  width: int
  height: int
  fps: float
  camera: str


def shot(path: Path, size: str, fps: float, camera: str, control_hz: float) -> Shot:
  """The film that was asked for.

  Args:
    path: of the file; one that is there is replaced.
    size: "WIDTHxHEIGHT", px.
    fps: frames per second.
    camera: one of `CAMERAS`.
    control_hz: rate at which there is something new to see.

  Raises:
    ValueError: one of them cannot be, with what would do.
  """
  if path.suffix != ".mp4":
    raise ValueError(f"--video {path}: the name must end in .mp4")
  if path.is_dir():
    raise ValueError(f"--video {path} is a folder: name a file")
  width, height = _size(size)
  if not 1 <= fps <= control_hz:
    raise ValueError(
      f"--video_fps is {fps:g}; it must be from 1 to {control_hz:g}, the control rate: "
      "there is nothing to see in between"
    )
  if camera not in CAMERAS:
    raise ValueError(f"--video_camera {camera!r}: {nearest(camera, CAMERAS)}")
  return Shot(path=path.absolute(), width=width, height=height, fps=fps, camera=camera)


def _size(text: str) -> tuple[int, int]:
  words = text.split("x")
  if len(words) != 2 or not all(word.isascii() and word.isdigit() for word in words):
    raise ValueError(f"--video_size {text!r}: it must be WIDTHxHEIGHT, such as {SIZE}")
  width, height = int(words[0]), int(words[1])
  for side in (width, height):
    if side % 2 or not _LEAST_PX <= side <= _MOST_PX:
      raise ValueError(
        f"--video_size {text}: width and height must be even, as H.264 has it, and from "
        f"{_LEAST_PX} to {_MOST_PX}"
      )
  return width, height
