"""The network of a checkpoint as one module that keeps nothing from one step to the next."""

import io
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mjrl.learn.rsl import MLPModel, RNNModel

OBSERVATION, ACTION = "obs", "action"


class Actor(nn.Module):
  """forward(obs, *memory) -> (action, *memory).

  obs (batch, width) as in training, before it is normalised; action (batch, G) is the mean.  The
  memory of a recurrent policy comes in and goes out, (layers, batch, hidden): one tensor for a GRU,
  two, hidden and cell, for an LSTM; zeros begin an episode.

  A step of the memory is written out in sums and products: the exporter's LSTM comes with a dozen
  nodes that reshape, differs from run to run in bytes, and small runtimes may not have it.
  """

  def __init__(self, network: MLPModel) -> None:
    """Take the parts of a network of rsl_rl, which are shared with it."""
    super().__init__()
    self.normaliser = network.obs_normalizer
    self.rnn = network.rnn.rnn if isinstance(network, RNNModel) else None
    self.mlp = network.mlp
    assert network.distribution is not None  # actors have one
    self.mean = network.distribution.as_deterministic_output_module()
    self.width = network.obs_dim
    self.eval()

  def forward(self, obs: Tensor, *memory: Tensor) -> tuple[Tensor, ...]:
    """See the class."""
    x = self.normaliser(obs)
    if self.rnn is not None:
      x, memory = self._remember(self.rnn, x, memory)
    return (self.mean(self.mlp(x)), *memory)

  @staticmethod
  def _remember(
    rnn: nn.RNNBase, x: Tensor, memory: tuple[Tensor, ...]
  ) -> tuple[Tensor, tuple[Tensor, ...]]:
    cell = _lstm_cell if isinstance(rnn, nn.LSTM) else _gru_cell
    layers = []
    for k in range(rnn.num_layers):
      of_input = F.linear(x, getattr(rnn, f"weight_ih_l{k}"), getattr(rnn, f"bias_ih_l{k}"))
      state = tuple(part[k] for part in memory)
      of_state = F.linear(state[0], getattr(rnn, f"weight_hh_l{k}"), getattr(rnn, f"bias_hh_l{k}"))
      layers.append(cell(of_input, of_state, state))
      x = layers[-1][0]
    return x, tuple(torch.stack(parts) for parts in zip(*layers, strict=True))

  @property
  def states(self) -> tuple[str, ...]:
    """Names of the tensors of the memory: none, ("h",) or ("h", "c")."""
    if self.rnn is None:
      return ()
    return ("h", "c") if isinstance(self.rnn, nn.LSTM) else ("h",)

  @property
  def inputs(self) -> list[str]:
    """Names of the inputs, in order."""
    return [OBSERVATION, *(f"{name}_in" for name in self.states)]

  @property
  def outputs(self) -> list[str]:
    """Names of the outputs, in order."""
    return [ACTION, *(f"{name}_out" for name in self.states)]

  def start(self, batch: int) -> tuple[Tensor, ...]:
    """The memory with which episodes begin."""
    if self.rnn is None:
      return ()
    shape = (self.rnn.num_layers, batch, self.rnn.hidden_size)
    # A tensor each: the exporter takes the same one twice for one input.
    return tuple(torch.zeros(shape) for _ in self.states)

  def examples(self, batch: int) -> tuple[Tensor, ...]:
    """Inputs of a batch."""
    return (torch.zeros(batch, self.width), *self.start(batch))


def torchscript_bytes(actor: Actor) -> bytes:
  """The actor as TorchScript, whole in memory."""
  buffer = io.BytesIO()
  with warnings.catch_warnings(), torch.inference_mode():
    warnings.simplefilter("ignore")  # TorchScript is old, and says so
    torch.jit.save(torch.jit.trace(actor, actor.examples(2), check_trace=False), buffer)
  return buffer.getvalue()


def load_torchscript(path: Path) -> torch.jit.ScriptModule:
  """An actor that was written as TorchScript."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    return torch.jit.load(str(path))


def _lstm_cell(of_input: Tensor, of_state: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
  """(hidden, cell) after a step; torch's gates are input, forget, cell, output."""
  enter, keep, new, show = (of_input + of_state).chunk(4, 1)
  cell = keep.sigmoid() * state[1] + enter.sigmoid() * new.tanh()
  return show.sigmoid() * cell.tanh(), cell


def _gru_cell(of_input: Tensor, of_state: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
  """(hidden,) after a step; torch's gates are reset, update, new."""
  (r_x, z_x, n_x), (r_h, z_h, n_h) = of_input.chunk(3, 1), of_state.chunk(3, 1)
  keep = (z_x + z_h).sigmoid()
  new = (n_x + (r_x + r_h).sigmoid() * n_h).tanh()
  return ((1 - keep) * new + keep * state[0],)
