"""Observation groups: frames written once per control step, and read without side effect."""

from collections.abc import Mapping

import torch
from torch import Generator, Tensor

from mjrl.envs.state import State
from mjrl.envs.task import Observation


class Group:
  """The rows of one group for N envs: a frame per control step, and as many kept as rows ask for.

  The past is one array of columns: row after row, each row's frames from the oldest to the newest.
  That is the observation, unless a row is delayed: then its newest frames are left out.
  """

  def __init__(
    self,
    name: str,
    rows: Mapping[str, Observation],
    sample: State,
    dt_s: float,
    rng: Generator,
    history: int | None,
  ) -> None:
    """Find the rows' widths from a sample state, which is also the first frame.

    Args:
      name: of the group, for errors.
      rows: the table.
      sample: any state of the env, to see what each row returns.
      dt_s: of a control step.
      rng: stream of the noise.
      history: frames of every row with more than one, in place of its own; None keeps them.

    Raises:
      ValueError: a delay is not a whole number of control steps.
    """
    self.rows = dict(rows)
    self.widths = {key: row.fn(sample, **row.params).shape[1] for key, row in rows.items()}
    self._frames = {key: _history(row, history) for key, row in rows.items()}
    self._rng = rng
    device = sample.lin_vel_b.device

    spread, older, newest, shown = [], [], [], []  # column maps, see below
    first = 0  # column of the row in a frame
    for key, row in rows.items():
      width, frames = self.widths[key], self._frames[key]
      kept = frames + _delay_steps(name, key, row, dt_s)
      start = len(spread)
      spread += list(range(first, first + width)) * kept
      end = len(spread)
      older += [*range(start + width, end), *range(end - width, end)]
      newest += range(end - width, end)
      shown += range(start, start + width * frames)
      first += width
    self._spread = torch.tensor(spread, device=device)  # column of the past -> column of a frame
    self._older = torch.tensor(older, device=device)  # column -> where its next value stands now
    self._newest = torch.tensor(newest, device=device)  # column of a frame -> column of the past
    self._shown = torch.tensor(shown, device=device)  # column of an observation -> of the past
    self._one_frame, self._all_shown = len(spread) == first, len(shown) == len(spread)

    self._noise = self._per_column({key: row.noise for key, row in rows.items()}, device)
    self._scale = self._per_column({key: row.scale for key, row in rows.items()}, device)
    self._noisy, self._scaled = bool(self._noise.any()), bool((self._scale != 1).any())
    self._past = self._frame(sample).index_select(1, self._spread)

  @property
  def width(self) -> int:
    """Numbers in an observation."""
    return len(self._shown)

  def layout(self) -> dict[str, tuple[int, int]]:
    """Row to (width of a frame, frames), in the order of the observation."""
    return {key: (self.widths[key], self._frames[key]) for key in self.rows}

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
      self._past = self._past.index_select(1, self._older).index_copy_(1, self._newest, frame)

  def read(self) -> Tensor:
    """The observation, (N, width)."""
    return self._past if self._all_shown else self._past.index_select(1, self._shown)

  def save(self) -> Tensor:
    """The frames that `load` takes."""
    return self._past.clone()

  def load(self, past: Tensor) -> None:
    """Take up what `save` gave."""
    self._past = past.clone()

  def _frame(self, s: State) -> Tensor:
    parts = []
    for row in self.rows.values():
      value = row.fn(s, **row.params)
      parts.append(value if row.clip is None else value.clamp(*row.clip))
    frame = torch.cat(parts, 1)
    if self._noisy:
      draw = torch.empty_like(frame).uniform_(-1, 1, generator=self._rng)
      frame.addcmul_(draw, self._noise)
    return frame.mul_(self._scale) if self._scaled else frame

  def _per_column(self, value: Mapping[str, float], device: torch.device) -> Tensor:
    columns = [value[key] for key, width in self.widths.items() for _ in range(width)]
    return torch.tensor(columns, device=device)


def _history(row: Observation, history: int | None) -> int:
  return row.history if history is None or row.history == 1 else history


def _delay_steps(group: str, key: str, row: Observation, dt_s: float) -> int:
  steps = row.delay_s / dt_s
  if abs(steps - round(steps)) > 1e-9:
    raise ValueError(
      f"{group}.{key}: delay_s {row.delay_s} is not a whole number of control steps of {dt_s} s"
    )
  return round(steps)
