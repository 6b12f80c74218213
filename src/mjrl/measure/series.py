"""The commands that a measured replay holds, one after the other."""

from dataclasses import dataclass

from mjrl.envs.task import STANDING_COMMAND, VelocityCommand


@dataclass(frozen=True, kw_only=True)
class Segment:
  """A command held from a fresh start.

  command  forward m/s, left m/s, yaw rad/s counter-clockwise
  """

  name: str
  command: tuple[float, float, float]

  @property
  def standing(self) -> bool:
    """Whether the robot is asked to stand."""
    return sum(part**2 for part in self.command) ** 0.5 <= STANDING_COMMAND

  @property
  def travelling(self) -> bool:
    """Whether the robot is asked to get somewhere, rather than to stand or to turn on the spot."""
    return (self.command[0] ** 2 + self.command[1] ** 2) ** 0.5 > STANDING_COMMAND


def segment(command: tuple[float, float, float]) -> Segment:
  """The command with the name it goes by in tables and pictures."""
  forward, left, yaw = command
  parts = [
    f"{'forward' if forward > 0 else 'back'} {abs(forward):.3g} m/s" if forward else "",
    f"{'left' if left > 0 else 'right'} {abs(left):.3g} m/s" if left else "",
    f"turn {yaw:+.3g} rad/s" if yaw else "",
  ]
  return Segment(name=", ".join(filter(None, parts)) or "stand", command=command)


def standard_series(ceilings: VelocityCommand) -> tuple[Segment, ...]:
  """Stand; half and full speed forward; two thirds of the fastest turn, left and right.

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
  return tuple(segment(command) for command in dict.fromkeys(commands))
