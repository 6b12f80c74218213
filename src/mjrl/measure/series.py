"""The commands that a measured replay holds, one after the other."""

from dataclasses import dataclass
from math import degrees

from mjrl.envs.posture import PostureCommand
from mjrl.envs.task import STANDING_COMMAND, VelocityCommand

Posture = tuple[float, float, float, float]
"""See `mjrl.envs.posture.POSTURE`."""


@dataclass(frozen=True, kw_only=True)
class Segment:
  """A command held from a fresh start.

  command  forward m/s, left m/s, yaw rad/s counter-clockwise
  posture  see `mjrl.envs.posture.POSTURE`; None in a task that asks for none
  """

  name: str
  command: tuple[float, float, float]
  posture: Posture | None = None

  @property
  def standing(self) -> bool:
    """Whether the robot is asked to stand."""
    return sum(part**2 for part in self.command) ** 0.5 <= STANDING_COMMAND

  @property
  def travelling(self) -> bool:
    """Whether the robot is asked to get somewhere, rather than to stand or to turn on the spot."""
    return (self.command[0] ** 2 + self.command[1] ** 2) ** 0.5 > STANDING_COMMAND


def segment(
  command: tuple[float, float, float],
  posture: Posture | None = None,
  home_height_m: float | None = None,
) -> Segment:
  """The command with the name it goes by in tables and pictures.

  Args:
    command: see `Segment`.
    posture: see `Segment`.
    home_height_m: the height that a name leaves out.
  """
  forward, left, yaw = command
  parts = [
    f"{'forward' if forward > 0 else 'back'} {abs(forward):.3g} m/s" if forward else "",
    f"{'left' if left > 0 else 'right'} {abs(left):.3g} m/s" if left else "",
    f"turn {yaw:+.3g} rad/s" if yaw else "",
  ]
  named = [", ".join(filter(None, parts)) or "stand"]
  if posture is not None:
    *angles, height_m = posture
    of_angle: dict[float, list[str]] = {}
    for axis, angle in zip(("twist", "pitch", "roll"), angles, strict=True):
      of_angle.setdefault(angle, []).append(axis)
    named += [f"{'/'.join(axes)} {degrees(a):+.3g}°" for a, axes in of_angle.items() if a]
    named += [f"height {1000 * height_m:.3g} mm"] if height_m != home_height_m else []
  return Segment(name=", ".join(named), command=command, posture=posture)


def standard_series(
  ceilings: VelocityCommand,
  postures: PostureCommand | None = None,
  home_height_m: float = 0.0,
) -> tuple[Segment, ...]:
  """Stand; half and full speed forward; two thirds of the fastest turn, left and right.

  Where a task asks for postures too, these are level, and then come each end of each number's
  range for a standing robot, and half of a walking one's angles, all at once, at half speed.
  A command that the task's ceilings make the same as an earlier one is left out.
  """
  forward = max(ceilings.forward_m_s[1], 0.0)
  right, left = (2 / 3 * yaw for yaw in ceilings.yaw_rad_s)
  commands = [
    (0.0, 0.0, 0.0),
    (forward / 2, 0.0, 0.0),
    (forward, 0.0, 0.0),
    (0.0, 0.0, left),
    (0.0, 0.0, right),
  ]
  if postures is None:
    return tuple(segment(command) for command in dict.fromkeys(commands))
  level = (0.0, 0.0, 0.0, home_height_m)
  asked = [(command, level) for command in commands]
  for number, ends in enumerate(postures.parked.ends().values()):
    asked += [(commands[0], _with(level, {number: end})) for end in reversed(ends)]
  walking = list(postures.walking.ends().values())[:3]
  for end in (1, 0):
    half = {number: ends[end] / 2 for number, ends in enumerate(walking)}
    asked.append((commands[1], _with(level, half)))
  return tuple(segment(*pair, home_height_m) for pair in dict.fromkeys(asked))


def _with(posture: Posture, numbers: dict[int, float]) -> Posture:
  twist, pitch, roll, height = (numbers.get(k, own) for k, own in enumerate(posture))
  return twist, pitch, roll, height
