"""Observations: frames written once per control step, and read without side effect."""

from collections.abc import Iterator, Mapping

import torch
from torch import Generator, Tensor

from mjrl.envs.state import State
from mjrl.envs.task import Observation

Groups = Mapping[str, Mapping[str, Observation]]


class Observer:
  """The observation groups of N envs: a frame per control step, and as many kept as rows ask for.

  All groups share one frame and one past, so that a step costs the same few operations however many
  there are.  The past is an array of columns: group after group and row after row, each row's
  frames from the oldest to the newest.  A group's part of it is its observation, unless a row is
  delayed: then that row's newest frames are left out.
  """

  def __init__(
    self, groups: Groups, sample: State, dt_s: float, rng: Generator, history: int | None
  ) -> None:
    """Find the rows' widths from a sample state, which is also the first frame.

    Args:
      groups: the tables.
      sample: any state of the env, to see what each row returns.
      dt_s: of a control step.
      rng: stream of the noise.
      history: frames of every row with more than one, in place of its own; None keeps them.

    Raises:
      ValueError: a delay is not a whole number of control steps.
    """
    self.groups = groups
    self._rng = rng
    self._rows = [row for rows in groups.values() for row in rows.values()]
    self._widths = [row.fn(sample, **row.params).shape[1] for row in self._rows]
    device = sample.twist_b.device

    spread: list[int] = []  # column of the past -> column of a frame
    self._cuts: list[int] = []  # widths of a row's oldest frame and of its others, row after row
    shown: dict[str, list[int]] = {}  # columns of the past that are a group's observation
    self._layouts: dict[str, dict[str, tuple[int, int]]] = {}
    first = 0  # column of the row in a frame
    for (group, key, row), width in zip(_walk(groups), self._widths, strict=True):
      frames = row.history if history is None or row.history == 1 else history
      kept = frames + _delay_steps(f"{group}.{key}", row, dt_s)
      start = len(spread)
      shown.setdefault(group, []).extend(range(start, start + width * frames))
      spread += list(range(first, first + width)) * kept
      self._cuts += [width, width * (kept - 1)]
      self._layouts.setdefault(group, {})[key] = (width, frames)
      first += width
    self._spread = torch.tensor(spread, device=device)
    self._one_frame = len(spread) == first
    self._shown = {group: _selection(columns, device) for group, columns in shown.items()}

    self._noise = self._per_column([row.noise for row in self._rows], device)
    self._noisy_columns = int(self._noise.nonzero().max()) + 1 if self._noise.any() else 0
    self._noise = self._noise[: self._noisy_columns]
    self._scale = self._per_column([row.scale for row in self._rows], device)
    self._scaled = bool((self._scale != 1).any())
    self._past = self._frame(sample).index_select(1, self._spread)

  def layout(self, group: str) -> dict[str, tuple[int, int]]:
    """Row to (width of a frame, frames), in the order of the group's observation."""
    return self._layouts[group]

  def width(self, group: str) -> int:
    """Numbers in the group's observation."""
    return sum(width * frames for width, frames in self._layouts[group].values())

  def write(self, s: State, restarted: Tensor | None = None) -> None:
    """Take the state's frame as the newest; where an episode restarted, as all of the past.

    Args:
      s: the state.
      restarted: (N,) bool, the envs to which the frame is all there is, the others keep theirs;
        None adds the frame in every env.
    """
    frame = self._frame(s)
    if restarted is not None:
      past = frame if self._one_frame else frame.index_select(1, self._spread)
      self._past = torch.where(restarted[:, None], past, self._past)
    elif self._one_frame:
      self._past = frame
    else:
      older = self._past.split(self._cuts, 1)[1::2]
      newest = frame.split(self._widths, 1)
      self._past = torch.cat([part for row in zip(older, newest, strict=True) for part in row], 1)

  def read(self) -> dict[str, Tensor]:
    """Group to its observation, (N, width)."""
    return {
      group: self._past[:, columns]
      if isinstance(columns, slice)
      else self._past.index_select(1, columns)
      for group, columns in self._shown.items()
    }

  def save(self) -> Tensor:
    """The frames that `load` takes."""
    return self._past.clone()

  def load(self, past: Tensor) -> None:
    """Take up what `save` gave."""
    self._past = past.clone()

  def _frame(self, s: State) -> Tensor:
    parts = []
    for row in self._rows:
      value = row.fn(s, **row.params)
      parts.append(value if row.clip is None else value.clamp(*row.clip))
    frame = torch.cat(parts, 1)
    if self._noisy_columns:
      noisy = frame[:, : self._noisy_columns]
      draw = torch.empty(noisy.shape, device=frame.device).uniform_(-1, 1, generator=self._rng)
      noisy.addcmul_(draw, self._noise)
    return frame.mul_(self._scale) if self._scaled else frame

  def _per_column(self, values: list[float], device: torch.device) -> Tensor:
    columns = [v for v, width in zip(values, self._widths, strict=True) for _ in range(width)]
    return torch.tensor(columns, device=device)


def _walk(groups: Groups) -> Iterator[tuple[str, str, Observation]]:
  for group, rows in groups.items():
    for key, row in rows.items():
      yield group, key, row


def _delay_steps(name: str, row: Observation, dt_s: float) -> int:
  steps = row.delay_s / dt_s
  if abs(steps - round(steps)) > 1e-9:
    raise ValueError(
      f"{name}: delay_s {row.delay_s} is not a whole number of control steps of {dt_s} s"
    )
  return round(steps)


def _selection(columns: list[int], device: torch.device) -> slice | Tensor:
  """A slice where the columns stand side by side, which costs no copy."""
  first, last = columns[0], columns[-1]
  if columns == list(range(first, last + 1)):
    return slice(first, last + 1)
  return torch.tensor(columns, device=device)
