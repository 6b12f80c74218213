"""The scenes: how the ground looks, and what it is like to walk on.  Loads no engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mjrl.envs.package import read_package
from mjrl.names import nearest

Rgb = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Look:
  """Colours of ground and sky, and where the sun is.  None of it changes a number.

  pattern  "checker" of squares of 10 cm, or "grid" of lines 10 cm apart
  ground   its two colours
  horizon  of the sky, and what the ground fades into
  zenith   of the sky
  sun      direction in which it shines
  ambient  light from everywhere, 0 to 1
  """

  pattern: Literal["checker", "grid"] = "checker"
  ground: tuple[Rgb, Rgb]
  horizon: Rgb
  zenith: Rgb
  sun: tuple[float, float, float] = (-0.35, -0.5, -1.0)
  ambient: float = 0.35


@dataclass(frozen=True, kw_only=True)
class Scene:
  """A look, and the physics of the ground.

  foot_friction  sliding friction of the feet on it, in place of the robot's own and of what a task
                 draws; None changes nothing
  bumps_m        height of its bumps from the lowest to the highest; 0 is flat
  """

  description: str
  look: Look
  foot_friction: float | None = None
  bumps_m: float = 0.0

  @property
  def physics(self) -> str:
    """How it differs from the flat ground of training in more than its look; "" if it does not."""
    said = []
    if self.foot_friction is not None:
      said.append(f"friction of the feet {self.foot_friction:g}, instead of what the task draws")
    if self.bumps_m:
      said.append(f"fixed bumps of up to {1000 * self.bumps_m:g} mm, instead of flat ground")
    return "; ".join(said)


STUDIO = Look(
  ground=((0.80, 0.82, 0.84), (0.73, 0.755, 0.78)),
  horizon=(0.90, 0.92, 0.94),
  zenith=(0.62, 0.70, 0.78),
)
SCENES: Mapping[str, Scene] = {
  "studio": Scene(description="flat ground, neutral light", look=STUDIO),
  "daylight": Scene(
    description="flat ground of warm stone under a blue sky",
    look=Look(
      ground=((0.72, 0.66, 0.56), (0.66, 0.60, 0.50)),
      horizon=(0.80, 0.89, 0.97),
      zenith=(0.22, 0.46, 0.80),
      sun=(-0.7, -0.4, -1.0),
      ambient=0.3,
    ),
  ),
  "grid": Scene(
    description="flat dark ground, a line every 10 cm",
    look=Look(
      pattern="grid",
      ground=((0.13, 0.145, 0.17), (0.34, 0.38, 0.43)),
      horizon=(0.22, 0.25, 0.29),
      zenith=(0.07, 0.08, 0.10),
      ambient=0.45,
    ),
  ),
  "ice": Scene(
    description="flat ice",
    look=Look(
      ground=((0.80, 0.91, 0.97), (0.73, 0.87, 0.95)),
      horizon=(0.93, 0.97, 1.0),
      zenith=(0.60, 0.78, 0.93),
    ),
    foot_friction=0.15,
  ),
  "rubber": Scene(
    description="flat rubber mat",
    look=Look(
      ground=((0.30, 0.31, 0.33), (0.26, 0.27, 0.29)),
      horizon=(0.78, 0.80, 0.83),
      zenith=(0.50, 0.55, 0.62),
    ),
    foot_friction=2.0,
  ),
  "rough": Scene(
    description="uneven soil, for replays of what was trained on flat ground",
    look=Look(
      ground=((0.55, 0.47, 0.38), (0.50, 0.42, 0.34)),
      horizon=(0.86, 0.88, 0.90),
      zenith=(0.55, 0.66, 0.78),
    ),
    bumps_m=0.012,
  ),
}
DEFAULT = "studio"
PACKAGE_SUFFIXES = (".map", ".scene.zip")


def is_package(name: str) -> bool:
  """Whether a scene's name is the path of a package.

  Raises:
    ValueError: it is neither that nor in the list.
  """
  if name in SCENES:
    return False
  if name.endswith(PACKAGE_SUFFIXES) or Path(name).is_dir():
    return True
  raise ValueError(
    f"there is no scene {name!r}; {nearest(name, SCENES)}, or a scene package: a folder or a file "
    f"whose name ends in {' or '.join(PACKAGE_SUFFIXES)}"
  )


def physics_of(scene: str, robot: str) -> str:
  """How a scene differs from the flat ground of training in more than its look; "" if it does not.

  Raises:
    FileNotFoundError: a scene package that is not there.
    ValueError: a scene package that is not whole, or asks for what mjrl or the robot lacks.
  """
  return read_package(Path(scene), robot).physics if is_package(scene) else SCENES[scene].physics
