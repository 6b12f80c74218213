"""Observations: frames written once per control step, and read without side effect."""

from collections.abc import Iterator, Mapping
from itertools import accumulate

import torch
from torch import Generator, Tensor

from mjrl.envs.state import State
from mjrl.envs.task import Observation

Groups = Mapping[str, Mapping[str, Observation]]


class Observer:
  """The observation groups of N envs: a frame per control step, and as many kept as rows ask for.

  What has been written is an array of columns, the past: group after group and row after row, each
  row's frames from the oldest to the newest.  A group's part of it is its observation, unless a row
  is delayed: then that row's newest frames are left out.  Writing picks every column of the new
  past from the old one and the new frame, so it costs the same few operations for any table.
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
    device = sample.twist_b.device
    # Rows that differ in noise and history alone are one value, computed once.
    self._values = {value_of(row): row for _, _, row in _walk(groups)}
    widths = {value: _evaluate(row, sample).shape[1] for value, row in self._values.items()}
    starts = dict(zip(widths, accumulate(widths.values(), initial=0), strict=False))
    self._columns = {v: slice(starts[v], starts[v] + width) for v, width in widths.items()}

    self._layouts: dict[str, dict[str, tuple[int, int]]] = {group: {} for group in groups}
    noisy: list[int] = []  # columns of a clean frame that get noise, a copy for each row
    amplitude: list[float] = []
    older: list[int] = []  # column of the past -> column of the old past; -1 where it is new
    newest: list[int] = []  # column of the past -> column of the frame: the clean, then the noisy
    shown: dict[str, list[int]] = {group: [] for group in groups}  # columns of an observation
    clean_width = sum(widths.values())
    for group, key, row in _walk(groups):
      width, start = widths[value_of(row)], starts[value_of(row)]
      frames = row.frames(history)
      kept = frames + _delay_steps(f"{group}.{key}", row, dt_s)
      columns = list(range(start, start + width))
      if row.noise:
        noisy += columns
        amplitude += [row.noise * row.scale] * width
        columns = list(range(clean_width + len(noisy) - width, clean_width + len(noisy)))
      first = len(older)
      shown[group] += range(first, first + width * frames)
      older += [*range(first + width, first + width * kept), *[-1] * width]
      newest += columns * kept
      self._layouts[group][key] = (width, frames)
    past_width = len(older)
    new = [past_width + column for column in newest]  # the frame stands behind the old past
    picked = [n if o < 0 else o for o, n in zip(older, new, strict=True)]
    self._picked = torch.tensor(picked, device=device)
    self._fresh = torch.tensor(newest, device=device)
    self._noisy = torch.tensor(noisy, dtype=torch.int64, device=device)
    self._amplitude = torch.tensor(amplitude, device=device)
    self._shown = {group: _selection(columns, device) for group, columns in shown.items()}
    self._newest = self._frame(sample)
    self._past = self._newest.index_select(1, self._fresh)

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
    frame = self._newest = self._frame(s)
    if restarted is None:
      self._past = torch.cat((self._past, frame), 1).index_select(1, self._picked)
    else:
      fresh = frame.index_select(1, self._fresh)
      self._past = torch.where(restarted[:, None], fresh, self._past)

  def total(self) -> Tensor:
    """Sum of the newest frame, (N,): not finite where any number of it is not."""
    return self._newest.sum(1)

  def bad_columns(self) -> Tensor:
    """Which columns of the newest frame are not finite in some env, (columns,) bool."""
    return ~self._newest.isfinite().all(0)

  def first_of(self, bad: Tensor) -> str:
    """The first row that has one of the columns of `bad_columns`, or "".  Reads from the device."""
    for value, columns in self._columns.items():
      if bad[columns].any():
        return next(
          f"{group}.{key}" for group, key, row in _walk(self.groups) if value_of(row) == value
        )
    return ""

  def read(self) -> dict[str, Tensor]:
    """Group to its observation, (N, width)."""
    past = self._past
    return {
      group: past[:, columns] if isinstance(columns, slice) else past.index_select(1, columns)
      for group, columns in self._shown.items()
    }

  def save(self) -> Tensor:
    """The frames that `load` takes."""
    return self._past.clone()

  def load(self, past: Tensor) -> None:
    """Take up what `save` gave."""
    self._past = past.to(self._past.device, copy=True)

  def _frame(self, s: State) -> Tensor:
    """Every value clean, and behind them a noisy copy of those that some row wants noisy."""
    clean = torch.cat([_evaluate(row, s) for row in self._values.values()], 1)
    noisy = clean.index_select(1, self._noisy)
    draw = torch.empty_like(noisy).uniform_(-1, 1, generator=self._rng)
    return torch.cat((clean, noisy.addcmul_(draw, self._amplitude)), 1)


def _walk(groups: Groups) -> Iterator[tuple[str, str, Observation]]:
  for group, rows in groups.items():
    for key, row in rows.items():
      yield group, key, row


def value_of(row: Observation) -> tuple[object, ...]:
  """What a row computes, whatever noise and history it gets; rows of the same are one value."""
  return row.fn, tuple(sorted(row.params.items())), row.clip, row.scale


def _evaluate(row: Observation, s: State) -> Tensor:
  value = row.fn(s, **row.params)
  if row.clip is not None:
    value = value.clamp(*row.clip)
  return value if row.scale == 1 else value * row.scale


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
