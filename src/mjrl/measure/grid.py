"""The commands of an evaluation: forward speed by yaw rate, up to the task's ceilings."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mjrl.envs.task import Task
from mjrl.measure.series import segment

LEAST_REPEATS = 2  # with one env there is no interval
REPEATS = 8  # of each command, unless the number of envs is given


@dataclass(frozen=True, kw_only=True)
class Grid:
  """Forward speeds, m/s, and yaw rates, rad/s, in rising order; a cell is one of each.

  Cells are counted speed by speed, and in an evaluation the envs cell by cell.
  """

  forward_m_s: tuple[float, ...]
  yaw_rad_s: tuple[float, ...]

  @property
  def commands(self) -> tuple[tuple[float, float, float], ...]:
    """The command of each cell: forward m/s, left m/s, yaw rad/s."""
    return tuple((v, 0.0, w) for v in self.forward_m_s for w in self.yaw_rad_s)

  @property
  def names(self) -> tuple[str, ...]:
    """Of the cells, as they go by in tables."""
    return tuple(segment(command).name for command in self.commands)

  def per_env(self, num_envs: int) -> Tensor:
    """The command of each env, (N, 3)."""
    commands = torch.tensor(self.commands)
    return commands.repeat_interleave(num_envs // len(commands), dim=0)


def standard_grid(task: Task) -> Grid:
  """Both ceilings, half of each, and zero, in speed and in yaw.

  Raises:
    ValueError: the task asks for no velocity.
  """
  if task.command is None:
    raise ValueError(
      f"--evaluate: {task.name} asks for no velocity, of which there could be a grid; replay it "
      "without --evaluate"
    )
  return Grid(
    forward_m_s=_axis(*task.command.forward_m_s), yaw_rad_s=_axis(*task.command.yaw_rad_s)
  )


def envs_for(grid: Grid, asked: int | None) -> int:
  """How many envs an evaluation takes: the same number in each cell.

  Args:
    grid: of commands.
    asked: `--num_envs`; None takes `REPEATS` in each cell.

  Raises:
    ValueError: the cells cannot share them evenly, or have less than two each.
  """
  cells = len(grid.commands)
  if asked is None:
    return cells * REPEATS
  if asked % cells or asked < LEAST_REPEATS * cells:
    fewer, more = (max(asked // cells + k, LEAST_REPEATS) * cells for k in (0, 1))
    raise ValueError(
      f"--num_envs is {asked}, and the {cells} commands of the evaluation take the same number of "
      f"envs each, at least {LEAST_REPEATS}: give {' or '.join(map(str, sorted({fewer, more})))}"
    )
  return asked


def _axis(low: float, high: float) -> tuple[float, ...]:
  """Zero, which standing robots are asked for, and of the others those that the task draws."""
  return tuple(sorted({0.0, *(x for x in (low, low / 2, high / 2, high) if low <= x <= high)}))
