"""rsl_rl's PPO with exact time-outs, and updates that no bad number can end."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from mjrl.learn.rsl import PPO


class Ppo(PPO):
  """PPO that values the observation a time-out ended on, and skips updates that are not finite.

  bootstrap  "terminal", or "previous" for rsl_rl's own approximation
  min_std    floor of the action's standard deviation
  """

  def __init__(self, *args: Any, bootstrap: str, min_std: float, **kwargs: Any) -> None:
    """As rsl_rl's PPO."""
    super().__init__(*args, **kwargs)
    self._terminal = bootstrap == "terminal"
    self._min_std = min_std
    self.skipped_updates = 0
    self._skipped_for = ""
    self._step = self.optimizer.step
    self.optimizer.step = self._guarded_step  # type: ignore[method-assign]
    self._kl: list[Tensor] = []
    self._note_kl()

  def process_env_step(
    self, obs: TensorDict, rewards: Tensor, dones: Tensor, extras: dict[str, Any]
  ) -> None:
    """Record a step; a time-out adds the discounted value of where it ended, a failure nothing."""
    if self._terminal:
      if "terminal" in extras:
        value = self._value_of(extras["terminal"])
        # Chosen, not multiplied: an env that diverged in this step may have no value at all.
        rewards = rewards + self.gamma * torch.where(extras["time_outs"], value, 0.0)
      extras = {}
    super().process_env_step(obs, rewards, dones, extras)

  def act(self, obs: TensorDict) -> Tensor:
    """As rsl_rl's, with the action's standard deviation brought back above its floor."""
    self._raise_std()
    return super().act(obs)

  def update(self) -> dict[str, float]:
    """As rsl_rl's, with the action's standard deviation brought back above its floor.

    Beside the losses it gives `kl`, between the policy before the update and within it, a mean over
    the mini-batches; and `explained_variance`: the share of the returns' variance that the critic
    had foreseen, 1 for a perfect one, 0 for one that knows their mean alone.
    """
    foreseen = self._explained_variance()
    losses = super().update()
    self._raise_std()
    kl, self._kl = self._kl, []
    return {
      **losses,
      **({"kl": float(torch.stack(kl).mean())} if kl else {}),
      "explained_variance": foreseen,
    }

  def set_learning_rate(self, rate: float) -> None:
    """Learn at this rate from the next update on, unless the schedule is rsl_rl's adaptive one."""
    self.learning_rate = rate
    for group in self.optimizer.param_groups:
      group["lr"] = rate

  def take_notes(self) -> list[str]:
    """A line if updates were skipped since the last call."""
    reason, self._skipped_for = self._skipped_for, ""
    return [f"updates skipped: {reason}"] if reason else []

  def save_memory(self) -> dict[str, list[Tensor]]:
    """What actor and critic remember, (layers, N, hidden) each; nothing where they have no memory.

    An LSTM has two such tensors, a GRU one.
    """
    saved = {}
    for name, model in (("actor", self.actor), ("critic", self.critic)):
      state = model.get_hidden_state()
      parts = () if state is None else state if isinstance(state, tuple) else (state,)
      saved[name] = [part.clone() for part in parts]
    return saved

  def load_memory(self, saved: Mapping[str, Sequence[Tensor]]) -> None:
    """Take up what `save_memory` gave, of the same networks and number of envs."""
    for name, model in (("actor", self.actor), ("critic", self.critic)):
      parts = [part.to(self.device, copy=True) for part in saved[name]]
      if len(parts) == 2:
        model.reset(hidden_state=(parts[0], parts[1]))
      else:
        model.reset(hidden_state=parts[0] if parts else None)

  def _value_of(self, obs: TensorDict) -> Tensor:
    """What the critic makes of observations that it is not to remember, (N,)."""
    remembered = self.critic.get_hidden_state()
    value = self.critic(obs).detach().squeeze(1)
    self.critic.reset(hidden_state=remembered)
    return value

  def _note_kl(self) -> None:
    """Keep the divergences that rsl_rl works out for its learning rate, and does not tell."""
    divergence = self.actor.get_kl_divergence

    # A plain function: the runner copies the actor, and would copy what a bound method belongs to.
    def noted(*args: Any) -> Tensor:
      kl = divergence(*args)
      self._kl.append(kl.mean())
      return kl

    self.actor.get_kl_divergence = noted  # type: ignore[method-assign]

  def _explained_variance(self) -> float:
    returns, values = self.storage.returns, self.storage.values
    least = torch.finfo(returns.dtype).tiny  # returns that are all alike leave nothing to foresee
    return float(1 - (returns - values).var() / returns.var().clamp(min=least))

  def _raise_std(self) -> None:
    std = self.actor.get_parameter("distribution.std_param").data
    torch.nan_to_num_(std, nan=self._min_std).clamp_(min=self._min_std)

  def _guarded_step(self, closure: Any = None) -> None:
    """Step unless a gradient is not finite: one such step would leave nothing to save."""
    for network, model in (("actor", self.actor), ("critic", self.critic)):
      for name, parameter in model.named_parameters():
        if parameter.grad is not None and not parameter.grad.isfinite().all():
          self.skipped_updates += 1
          self._skipped_for = f"last for the gradient of {network}.{name}"
          return
    self._step(closure)
