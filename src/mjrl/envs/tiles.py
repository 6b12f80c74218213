"""Where each env lives on the grid of tiles, and what moves it to another level."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from mjrl.envs.ground import Ground
from mjrl.envs.terrain import Terrain
from mjrl.envs.terrain_shapes import tile_centres_m


class Tiles:
  """The tile of each of N envs.

  ground   under all of them
  level    (N,) int64;  column (N,) int64
  tracked  (N, 3) of the holds that are not yet judged: sums of linear and of angular errors, m/s
           and rad/s, and how many; whoever measures holds adds to it
  """

  def __init__(
    self,
    spec: Terrain,
    ground: Ground,
    ceilings: tuple[float, float] | None,
    num_envs: int,
    device: str,
  ) -> None:
    """Put every env on its first tile.

    Args:
      spec: a rough one.
      ground: of the grid.
      ceilings: fastest commands, m/s and rad/s, that the bars of a curriculum follow.
      num_envs: N.
      device: of the tensors.
    """
    self.spec, self.ground = spec, ground
    self._centres = torch.tensor(tile_centres_m(spec), dtype=torch.float32, device=device)
    of_kind = [k for k, kind in enumerate(spec.kinds) if spec.kind in (None, kind)]
    env = torch.arange(num_envs, device=device)
    self.column = torch.tensor(of_kind, device=device)[env % len(of_kind)]
    self.ladder = spec.curriculum if spec.level is None else None
    if spec.level is not None:
      self.level = torch.full_like(env, spec.level)
    elif self.ladder is None:
      self.level = env // len(of_kind) % spec.levels
    else:
      self.level = torch.zeros_like(env)
    self.tracked = torch.zeros(num_envs, 3, device=device)
    self._episodes = torch.zeros_like(env)
    if self.ladder:
      assert ceilings is not None  # the task has looked
      base = torch.tensor([self.ladder.base_m_s, self.ladder.base_rad_s], device=device)
      ceiling = torch.tensor(ceilings, device=device)
      self._up_bar = base + self.ladder.up_slope * ceiling
      self._down_bar = base + self.ladder.down_slope * ceiling
    # Of the envs judged since the last log: errors, how many, and how many moved up and down.
    self._judged = torch.zeros(5, device=device)

  def place(self, offset_m: Tensor) -> tuple[Tensor, Tensor]:
    """Where an episode starts that is offset from the middle of its env's tile.

    Args:
      offset_m: (N, 2).

    Returns:
      The place in the world, (N, 2), and the highest ground within the robot's reach, (N,), m.
    """
    xy_w = self._centres[self.level, self.column] + offset_m
    return xy_w, self.ground.clear_m(xy_w)

  def end_episodes(self, ended: Tensor, commands_at_top: bool) -> None:
    """Count the masked envs' episodes; move those to another level whose time has come."""
    if not self.ladder:
      return
    self._episodes += ended
    holds = self.tracked[:, 2]
    due = ended & (self._episodes >= self.ladder.dwell_episodes) & (holds > 0)
    errors = self.tracked[:, :2] / holds.clamp(min=1)[:, None]
    up = due & (errors < self._up_bar).all(1) & (self.level < self.spec.levels - 1)
    up = up if commands_at_top else torch.zeros_like(up)
    down = due & (errors > self._down_bar).any(1) & (self.level > 0)
    self.level += up.long() - down.long()
    counted = torch.cat((errors, torch.stack((due, up, down), 1)), 1)
    self._judged += (counted * due[:, None]).sum(0)
    self._episodes.masked_fill_(due, 0)
    self.tracked.masked_fill_(due[:, None], 0.0)

  def log(
    self, commands_at_top: bool, pool: Callable[[Tensor], Tensor] = lambda sums: sums
  ) -> dict[str, float]:
    """Levels, and each number that decides beside its bars; reads from the device.

    Args:
      commands_at_top: whether envs may move up.
      pool: adds up what several processes have summed.
    """
    if not self.ladder:
      return {}
    sums = pool(torch.cat((self._sums(), self._judged)))
    self._judged.zero_()
    *levels, linear, angular, judged, up, down = sums.tolist()
    log = self._means(levels)
    linear_up, angular_up = self._up_bar.tolist()
    linear_down, angular_down = self._down_bar.tolist()
    log |= {
      "promoted": up,
      "demoted": down,
      "commands_at_top": float(commands_at_top),
      "linear_up_bar_m_s": linear_up,
      "linear_down_bar_m_s": linear_down,
      "angular_up_bar_rad_s": angular_up,
      "angular_down_bar_rad_s": angular_down,
    }
    if judged:
      log |= {"linear_error_m_s": linear / judged, "angular_error_rad_s": angular / judged}
    return log

  def save_levels(self) -> dict[str, float]:
    """Mean level of each kind, for runs of any number of envs; reads from the device."""
    return self._means(self._sums().tolist())

  def load_levels(self, saved: Mapping[str, float]) -> None:
    """Deal the envs of each kind levels whose mean is what `save_levels` gave."""
    for kind in dict.fromkeys(self.spec.kinds):
      envs = self._of_kind(kind).nonzero().flatten()
      if f"level_{kind}" in saved and len(envs):
        total = round(saved[f"level_{kind}"] * len(envs))
        ends = torch.arange(len(envs) + 1, device=envs.device) * total // len(envs)
        self.level[envs] = ends.diff().clamp(max=self.spec.levels - 1)

  def save(self) -> dict[str, Tensor]:
    """What `load` needs to go on in the middle of episodes."""
    return {name: getattr(self, name).clone() for name in _STATE}

  def load(self, saved: Mapping[str, Tensor]) -> None:
    """Take up what `save` gave."""
    for name in _STATE:
      getattr(self, name).copy_(saved[name])

  def _of_kind(self, kind: str) -> Tensor:
    columns = [k for k, other in enumerate(self.spec.kinds) if other == kind]
    return torch.isin(self.column, torch.tensor(columns, device=self.column.device))

  def _sums(self) -> Tensor:
    """For each kind, the sum of its envs' levels and how many they are."""
    kinds = [self._of_kind(kind) for kind in dict.fromkeys(self.spec.kinds)]
    return torch.stack(
      [part for of in kinds for part in ((self.level * of).sum(), of.sum())]
    ).float()

  def _means(self, sums: list[float]) -> dict[str, float]:
    pairs = list(zip(dict.fromkeys(self.spec.kinds), sums[::2], sums[1::2], strict=True))
    log = {"level": sum(total for _, total, _ in pairs) / sum(count for *_, count in pairs)}
    return log | {f"level_{kind}": total / count for kind, total, count in pairs if count}


_STATE = ("level", "tracked", "_episodes", "_judged")
