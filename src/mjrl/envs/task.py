"""The types of a task's tables: rows are functions of a `State`, with every number spelled out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from math import atan2, cos, pi, sin
from typing import Any

from mjrl.envs.actions import Action
from mjrl.envs.asked import Command
from mjrl.envs.gaits import Gait
from mjrl.envs.ladders import LadderSpec, Tracked
from mjrl.envs.recipe import ENGINES, Recipe
from mjrl.envs.scenes import DEFAULT, is_package
from mjrl.envs.terrain import Terrain
from mjrl.names import nearest
from mjrl.robots.robot import Robot

STANDING_COMMAND = 0.05
"""A command whose norm (m/s and rad/s together) is at most this asks the robot to stand."""


def check_params(fn: Callable[..., Any], params: Mapping[str, Any]) -> None:
  """Refuse a parameter that the row's function does not take, or one that it lacks.

  Raises:
    ValueError: with the unknown and the missing names, and those that are accepted.
  """
  accepted = [p.name for p in signature(fn).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
  unknown, missing = sorted(set(params) - set(accepted)), sorted(set(accepted) - set(params))
  if unknown or missing:
    raise ValueError(
      f"{getattr(fn, '__name__', fn)}: unknown parameters {unknown}, missing {missing}; "
      f"it accepts {accepted}"
    )


@dataclass(frozen=True, kw_only=True)
class Reward:
  """A row of the reward table: weight times fn(State, **params) times the control step."""

  weight: float
  fn: Callable[..., Any]
  params: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Observation:
  """A row of an observation group.

  noise    half-width of uniform noise, in the unit of the row; drawn once, when a frame is written
  history  frames given to the policy, oldest first
  delay_s  age of the newest frame given, a whole number of control steps
  scale    multiplies the row;  clip bounds it first, in its own unit, where given
  """

  fn: Callable[..., Any]
  noise: float = 0.0
  history: int = 1
  delay_s: float = 0.0
  scale: float = 1.0
  clip: tuple[float, float] | None = None
  params: Mapping[str, Any] = field(default_factory=dict)

  def __post_init__(self) -> None:
    """Refuse numbers that describe no observation."""
    if self.history < 1 or self.noise < 0 or self.delay_s < 0:
      raise ValueError(
        f"history {self.history}, noise {self.noise}, delay_s {self.delay_s}: at least 1, 0 and 0"
      )

  def frames(self, history: int | None) -> int:
    """Frames given where `history` replaces the row's own number, if it keeps several."""
    return self.history if history is None or self.history == 1 else history


@dataclass(frozen=True, kw_only=True)
class Term:
  """A row of the termination or the metric table, or what success is: fn(State, **params)."""

  fn: Callable[..., Any]
  params: Mapping[str, Any]


WORLD_EVENTS = ("startup", "reset", "interval", "never")
RUN_EVENTS = (
  "train_start",
  "iteration",
  "eval_start",
  "eval_step",
  "eval_end",
  "checkpoint",
  "train_end",
)


@dataclass(frozen=True, kw_only=True)
class Event:
  """Something that happens to the world, fn(World, mask, **params), or in a run, fn(Moment, ...).

  when     one of `WORLD_EVENTS`, or of `RUN_EVENTS`, see `mjrl.learn.moments`; what happens "never"
           can be switched on by an override
  every_s  shortest and longest time between two, per env; interval events alone
  """

  when: str
  fn: Callable[..., Any]
  params: Mapping[str, Any]
  every_s: tuple[float, float] | None = None

  def __post_init__(self) -> None:
    """Refuse a moment that there is not, and times that are none."""
    if self.when not in WORLD_EVENTS + RUN_EVENTS:
      raise ValueError(f"event at {self.when!r}: {nearest(self.when, WORLD_EVENTS + RUN_EVENTS)}")
    if (self.when == "interval") != (self.every_s is not None):
      raise ValueError(
        f"event at {self.when!r}: every_s belongs to interval events, and they need it"
      )
    if self.every_s is not None and not 0 < self.every_s[0] <= self.every_s[1]:
      raise ValueError(f"every_s {self.every_s}: must be two times above 0, the shorter first")


def reward(weight: float, fn: Callable[..., Any], **params: Any) -> Reward:
  """A reward row."""
  check_params(fn, params)
  return Reward(weight=weight, fn=fn, params=params)


def obs(
  fn: Callable[..., Any],
  *,
  noise: float = 0.0,
  history: int = 1,
  delay_s: float = 0.0,
  scale: float = 1.0,
  clip: tuple[float, float] | None = None,
  **params: Any,
) -> Observation:
  """An observation row."""
  check_params(fn, params)
  return Observation(
    fn=fn, noise=noise, history=history, delay_s=delay_s, scale=scale, clip=clip, params=params
  )


def term(fn: Callable[..., Any], **params: Any) -> Term:
  """A termination or metric row, or what success is."""
  check_params(fn, params)
  return Term(fn=fn, params=params)


def at_startup(fn: Callable[..., Any], **params: Any) -> Event:
  """An event of the moment when the world is built, in every env."""
  check_params(fn, params)
  return Event(when="startup", fn=fn, params=params)


def at_reset(fn: Callable[..., Any], **params: Any) -> Event:
  """An event of the start of each episode, in the envs that start one."""
  check_params(fn, params)
  return Event(when="reset", fn=fn, params=params)


def every(every_s: tuple[float, float], fn: Callable[..., Any], **params: Any) -> Event:
  """An event that comes again after a random time, drawn per env."""
  check_params(fn, params)
  return Event(when="interval", fn=fn, params=params, every_s=every_s)


def never(fn: Callable[..., Any], **params: Any) -> Event:
  """An event of the world that is switched off: `events.<name>.when=startup` switches it on."""
  check_params(fn, params)
  return Event(when="never", fn=fn, params=params)


def at_run(when: str, fn: Callable[..., Any], **params: Any) -> Event:
  """An event of the run, not of the world: `when` is one of `RUN_EVENTS`."""
  check_params(fn, params)
  return Event(when=when, fn=fn, params=params)


def noiseless(group: Mapping[str, Observation]) -> dict[str, Observation]:
  """The rows of a group as the critic sees them."""
  return {name: replace(row, noise=0.0) for name, row in group.items()}


@dataclass(frozen=True, kw_only=True)
class VelocityCommand:
  """What the robot is asked for: forward and left velocity (m/s) and yaw rate (rad/s).

  Each hold, `standing` of the envs are asked to stand, and `heading` of the others to turn
  towards a random heading, with a yaw rate of `heading_gain_1_s` times the error.  The ranges are
  the ceilings; a ladder may start below them.
  """

  forward_m_s: tuple[float, float]
  left_m_s: tuple[float, float]
  yaw_rad_s: tuple[float, float]
  hold_s: tuple[float, float]
  standing: float
  heading: float
  heading_gain_1_s: float

  def __post_init__(self) -> None:
    """Refuse ranges from which nothing could be drawn."""
    for name in ("forward_m_s", "left_m_s", "yaw_rad_s", "hold_s"):
      low, high = getattr(self, name)
      if low > high:
        raise ValueError(f"command {name} is {(low, high)}: the lower end stands first")
    for name in ("standing", "heading"):
      if not 0 <= getattr(self, name) <= 1:
        raise ValueError(f"command {name} is {getattr(self, name)}: a share, from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class Rung:
  """A level of a command ladder: fractions of the ceilings, and the kernels' widths."""

  linear: float
  angular: float
  linear_std_m_s: float
  angular_std_rad_s: float


@dataclass(frozen=True, kw_only=True)
class CommandLadder:
  """Widens the command ranges as the measured tracking allows; never narrows them.

  A level is passed when the tracking error of whole holds of moving envs, a moving average of which
  each hold is a `smoothing` share, is below both bars (`bar_base + bar_slope * range`), after at
  least `dwell_steps` control steps on the level and `min_holds` measured holds.
  linear, angular   names of the reward rows whose `std_*` follow the rung
  """

  rungs: tuple[Rung, ...]
  linear: str
  angular: str
  bar_base_m_s: float
  bar_slope: float
  bar_base_rad_s: float
  bar_slope_angular: float
  dwell_steps: int
  min_holds: int
  smoothing: float

  def __post_init__(self) -> None:
    """Refuse an empty ladder."""
    if not self.rungs:
      raise ValueError("a command ladder needs at least one rung")

  def tracked(self, level: int) -> Mapping[str, Tracked]:
    """What `Commands` measures, on a rung."""
    rung = self.rungs[level]
    return {
      "linear": Tracked(
        fraction=rung.linear,
        unit="m_s",
        reward=self.linear,
        std=rung.linear_std_m_s,
        bar_base=self.bar_base_m_s,
        bar_slope=self.bar_slope,
      ),
      "angular": Tracked(
        fraction=rung.angular,
        unit="rad_s",
        reward=self.angular,
        std=rung.angular_std_rad_s,
        bar_base=self.bar_base_rad_s,
        bar_slope=self.bar_slope_angular,
      ),
    }


@dataclass(frozen=True, kw_only=True)
class Task:
  """One page: everything that is learned, and how.  Checked when it is built.

  command  the velocity that is asked for; None where none is
  success  fn(State, **params) -> (N,) bool, of the state on which an episode ended: whether it
           ended well, for evaluations; None where reaching the time-out without failing is that
  commands what is asked beside the velocity
  ladders  rows of `commands` to what widens them; `curriculum` widens the velocity
  terrain  the ground; None is flat, and cannot be made rough
  scene    what it happens in: one of `mjrl.envs.scenes.SCENES`, or the path of a scene package
  """

  name: str
  robot: Robot
  physics_dt_s: float
  control_dt_s: float
  episode_s: float
  action: Action
  command: VelocityCommand | None
  gait: Gait | None
  observations: Mapping[str, Mapping[str, Observation]]
  rewards: Mapping[str, Reward]
  terminations: Mapping[str, Term]
  events: Mapping[str, Event]
  curriculum: CommandLadder | None
  metrics: Mapping[str, Term]
  recipes: Mapping[str, Recipe]
  success: Term | None = None
  commands: Mapping[str, Command] = field(default_factory=dict)
  ladders: Mapping[str, LadderSpec] = field(default_factory=dict)
  terrain: Terrain | None = None
  scene: str = DEFAULT

  def __post_init__(self) -> None:
    """Refuse what could not run, or would silently do nothing."""
    if self.physics_dt_s <= 0:
      raise ValueError(f"{self.name}: physics_dt_s is {self.physics_dt_s}; it must be above 0")
    substeps = self.control_dt_s / self.physics_dt_s
    if abs(substeps - round(substeps)) > 1e-9 or round(substeps) < 1:
      raise ValueError(
        f"{self.name}: control_dt_s {self.control_dt_s} is not a whole multiple of "
        f"physics_dt_s {self.physics_dt_s}"
      )
    if self.episode_s < self.control_dt_s:
      raise ValueError(
        f"{self.name}: episode_s is {self.episode_s}; at least a control step, {self.control_dt_s}"
      )
    for group in ("policy", "critic"):
      if not self.observations.get(group):
        raise ValueError(f"{self.name}: observation group {group!r} is missing or empty")
    if self.curriculum is not None and self.command is None:
      raise ValueError(f"{self.name}: a command ladder needs a velocity command to widen")
    for name in self.ladders:
      if name not in self.commands:
        raise ValueError(
          f"{self.name}: a ladder widens command {name!r}; {nearest(name, self.commands)}"
        )
    for ladder in self.all_ladders.values():
      self._check_ladder(ladder)
    if self.terrain is not None and self.terrain.curriculum is not None and self.command is None:
      raise ValueError(f"{self.name}: a terrain curriculum needs a velocity command to judge by")
    is_package(self.scene)  # which refuses what is no scene at all
    if self.terrain is not None and self.terrain.rough and self.scene != DEFAULT:
      raise ValueError(
        f"{self.name}: rough terrain and scene {self.scene!r} are two grounds; leave one of them "
        f"out, or set scene={DEFAULT}"
      )
    if self.gait is not None:
      self._check_gait(self.gait)
    for backend, recipe in self.recipes.items():
      if backend not in ENGINES:
        raise ValueError(f"{self.name}: recipe for {backend!r}; {nearest(backend, ENGINES)}")
      for row in recipe.curriculum.values():
        if row.metric not in self.metrics:
          raise ValueError(
            f"{self.name}, recipe {backend}: anneals by metric {row.metric!r}; "
            f"{nearest(row.metric, self.metrics)}"
          )
        read_number(self, row.path)

  def _check_ladder(self, ladder: LadderSpec) -> None:
    for tracked in ladder.tracked(0).values():
      row = tracked.reward
      if row not in self.rewards:
        raise ValueError(
          f"{self.name}: the ladder names reward {row!r}; {nearest(row, self.rewards)}"
        )
      widths = [key for key in self.rewards[row].params if key.startswith("std_")]
      if widths != [f"std_{tracked.unit}"] or not self.rewards[row].weight:
        raise ValueError(
          f"{self.name}: reward {row!r}, whose width the ladder sets, has weight "
          f"{self.rewards[row].weight} and widths {widths}; it needs a weight and a width "
          f"std_{tracked.unit}"
        )

  def _check_gait(self, gait: Gait) -> None:
    """The phase's mirror image must be that of the feet, or a policy learns a wrong symmetry."""
    feet, partner = self.robot.feet, self.robot.mirror_feet
    table = gait.contact_table(feet)
    mirrored = [[row[feet.index(partner[foot])] for foot in feet] for row in table]
    sin_sign, cos_sign = gait.mirror
    for step in range(gait.cycle_steps):
      angle = 2 * pi * step / gait.cycle_steps
      image = atan2(sin_sign * sin(angle), cos_sign * cos(angle)) / (2 * pi) * gait.cycle_steps
      # A phase names the start of a step; run backwards, that is the end of the one before.
      at = round(image) - (sin_sign != cos_sign)
      if mirrored[step] != table[at % gait.cycle_steps]:
        raise ValueError(
          f"{self.name}: gait {gait.name} has mirror {gait.mirror}, which at step {step} is not "
          "what swapping left and right feet makes of its contacts"
        )

  @property
  def all_ladders(self) -> dict[str, LadderSpec]:
    """By the command that each widens; the velocity is "command"."""
    velocity = {"command": self.curriculum} if self.curriculum else {}
    return {**velocity, **self.ladders}

  @property
  def substeps(self) -> int:
    """Physics steps in a control step."""
    return round(self.control_dt_s / self.physics_dt_s)

  @property
  def episode_steps(self) -> int:
    """Control steps in a full episode."""
    return round(self.episode_s / self.control_dt_s)


def read_number(task: Task, path: str) -> float:
  """The number that "rewards.<row>.weight" or "rewards.<row>.<parameter>" names.

  Raises:
    ValueError: the path names nothing, or not a number; with the names that would do.
  """
  table, _, rest = path.partition(".")
  row_name, _, key = rest.partition(".")
  if table != "rewards":
    raise ValueError(f"{path!r}: numbers that can be moved are in table 'rewards', not {table!r}")
  row = task.rewards.get(row_name)
  if row is None:
    raise ValueError(f"{path!r}: no reward {row_name!r}; {nearest(row_name, task.rewards)}")
  value = row.weight if key == "weight" else row.params.get(key)
  if not isinstance(value, int | float):
    raise ValueError(f"{path!r}: no number {key!r}; {nearest(key, ['weight', *row.params])}")
  return float(value)
