"""How a task is learned on one engine, and the numbers that start easier than the task's own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from mjrl.names import nearest

BOOTSTRAPS = ("terminal", "previous")
ENGINES = ("native", "warp")
MEMORIES = ("lstm", "gru")
ACTIVATIONS = ("elu", "selu", "relu", "crelu", "lrelu", "tanh", "sigmoid", "softplus", "gelu")
ACTIVATIONS += ("swish", "mish", "identity")
OPTIMIZERS = ("adam", "adamw", "sgd", "rmsprop")
SCHEDULES = ("adaptive", "constant", "linear", "cosine", "step", "exponential")
_LONGEST = 8  # times a recipe's rollout: with hardly any envs, an iteration still ends soon


@dataclass(frozen=True, kw_only=True)
class Anneal:
  """Moves one number of the task from an easier value to the task's own as a metric changes.

  value = own + ease * (easy - own), with ease = clip((metric - done) / (start - done), 0, 1) of the
  metric's moving average, and faded to 0 over the `fade_iterations` before `until_iteration`: a run
  ends on its task.

  path       "rewards.<row>.weight" or "rewards.<row>.<parameter>"
  metric     name of a metric row, averaged with factor `smoothing` per iteration from `initial` on
  """

  path: str
  easy: float
  metric: str
  initial: float
  start: float
  done: float
  smoothing: float
  fade_iterations: int
  until_iteration: int

  def __post_init__(self) -> None:
    """Refuse numbers that define no way from easy to own."""
    if self.start == self.done:
      raise ValueError(
        f"anneal {self.path}: start and done are both {self.start}; they must differ"
      )
    if not 0 < self.fade_iterations <= self.until_iteration:
      raise ValueError(
        f"anneal {self.path}: fade_iterations {self.fade_iterations} must be in "
        f"1..until_iteration ({self.until_iteration})"
      )


@dataclass(frozen=True, kw_only=True)
class Memory:
  """A recurrent layer between observations and hidden layers, in policy and critic alike.

  kind    one of `MEMORIES`
  hidden  width of its state;  layers  how many are stacked
  """

  kind: str
  hidden: int
  layers: int

  def __post_init__(self) -> None:
    """Refuse a kind that there is not, and sizes below one."""
    if self.kind not in MEMORIES:
      raise ValueError(f"memory: kind {self.kind!r}; {nearest(self.kind, MEMORIES)}")
    for name in ("hidden", "layers"):
      if getattr(self, name) < 1:
        raise ValueError(f"memory: {name} is {getattr(self, name)}; it must be at least 1")

  @property
  def numbers(self) -> int:
    """How many numbers a network remembers of an env; an LSTM keeps two states."""
    return (2 if self.kind == "lstm" else 1) * self.layers * self.hidden


RECURRENT = Memory(kind="lstm", hidden=64, layers=1)
"""What `train.py --recurrent` gives a recipe."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
  """How a task is learned on one engine: sizes, networks, PPO's numbers, and what eases the start.

  memory        of policy and critic; None has them act on the observations alone
  learn_std     whether the action's standard deviation is learned, or stays `init_std`
  optimizer     one of `OPTIMIZERS`
  schedule      of the learning rate, one of `SCHEDULES`: "adaptive" holds the policy's divergence
                near `desired_kl`, the others go from `learning_rate` on by the run's length,
                "linear" and "cosine" to 0, "step" by halves at each quarter, "exponential" to 1 %
  history       frames of the observation groups, in place of the rows' own; None keeps them
  bootstrap     "terminal": a time-out adds the value of the observation it ended on;
                "previous": that of the one before it, as rsl_rl does
  """

  num_envs: int
  rollout_steps: int
  max_iterations: int
  save_every: int
  actor_hidden: tuple[int, ...]
  critic_hidden: tuple[int, ...]
  activation: str
  memory: Memory | None
  init_std: float
  min_std: float
  learn_std: bool
  epochs: int
  mini_batches: int
  optimizer: str
  learning_rate: float
  schedule: str
  desired_kl: float
  gamma: float
  lam: float
  clip: float
  value_coef: float
  clip_value_loss: bool
  entropy_coef: float
  max_grad_norm: float
  mirror_augmentation: bool
  mirror_coef: float
  bootstrap: str
  history: int | None
  curriculum: Mapping[str, Anneal]

  def __post_init__(self) -> None:
    """Refuse counts and numbers with which nothing could be learned, and a name that is none."""
    counts = ("num_envs", "rollout_steps", "max_iterations", "save_every", "epochs", "mini_batches")
    for name in counts:
      if getattr(self, name) < 1:
        raise ValueError(f"recipe: {name} is {getattr(self, name)}; it must be at least 1")
    if self.history is not None and self.history < 1:
      raise ValueError(f"recipe: history is {self.history}; at least 1, or None for the rows' own")
    for name in ("actor_hidden", "critic_hidden"):
      if min(getattr(self, name), default=0) < 1:
        raise ValueError(f"recipe: {name} is {getattr(self, name)}; layers of at least 1 each")
    for name in ("init_std", "learning_rate", "desired_kl", "clip", "max_grad_norm"):
      if getattr(self, name) <= 0:
        raise ValueError(f"recipe: {name} is {getattr(self, name)}; it must be above 0")
    if self.init_std < self.min_std:
      raise ValueError(
        f"recipe: init_std is {self.init_std}, below its floor, min_std {self.min_std}; raise the "
        "one or lower the other"
      )
    for name in ("gamma", "lam"):
      if not 0 <= getattr(self, name) <= 1:
        raise ValueError(f"recipe: {name} is {getattr(self, name)}; it must be in 0..1")
    for name, choices in (
      ("activation", ACTIVATIONS),
      ("bootstrap", BOOTSTRAPS),
      ("optimizer", OPTIMIZERS),
      ("schedule", SCHEDULES),
    ):
      value = getattr(self, name)
      if value not in choices:
        raise ValueError(f"recipe: {name} {value!r}; {nearest(value, choices)}")
    if self.memory is not None:
      self._check_memory()

  def _check_memory(self) -> None:
    if self.mirror_augmentation or self.mirror_coef > 0:
      raise ValueError(
        f"recipe: memory with mirror_augmentation {self.mirror_augmentation} and mirror_coef "
        f"{self.mirror_coef}: what a network remembers has no mirror image; set them to False and "
        "0, or memory to None"
      )
    if self.rollout_steps < 2:
      raise ValueError(
        f"recipe: memory with rollout_steps {self.rollout_steps}: what to remember is learned back "
        "through a rollout; it must be at least 2"
      )
    # Mini-batches are of whole envs, always the same ones: those of a remainder would never be
    # learned from, and of a single env rsl_rl takes the probabilities of all its steps for each.
    envs, parts = self.num_envs, self.mini_batches
    if envs % parts or envs < 2 * parts:
      fewer, more = (max(envs // parts + k, 2) * parts for k in (0, 1))
      raise ValueError(
        f"num_envs is {envs} with a memory and {parts} mini-batches: each is of the same number of "
        f"envs, 2 or more; take {' or '.join(map(str, sorted({fewer, more})))}"
      )


def with_memory(recipe: Recipe, memory: Memory) -> Recipe:
  """The recipe with a memory, and without the mirrored samples that it excludes."""
  return replace(recipe, memory=memory, mirror_augmentation=False, mirror_coef=0.0)


def for_envs(recipe: Recipe, num_envs: int, processes: int = 1) -> Recipe:
  """The recipe for another number of envs than the one that it is made for.

  With fewer in all, rollouts are longer, so that each iteration has as many samples.

  Args:
    recipe: to change.
    num_envs: of each process.
    processes: of a distributed run.

  Raises:
    ValueError: the recipe's memory does not go with that number.
  """
  longer = min(max(recipe.num_envs / (num_envs * processes), 1), _LONGEST)
  return replace(recipe, num_envs=num_envs, rollout_steps=ceil(recipe.rollout_steps * longer))
