"""The rules by which a run is judged: pure functions of its curves, and of what it is.

A rule gives the evidence in words, or "" where there is nothing to say.  Thresholds are set so that
the runs that were learned well, of all walking tasks, on 64 and 128 envs, give no finding, and the
ones that were spoilt on purpose do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from mjrl.learn.curves import Curves

TRACKING = "track_"
"""How the names of reward rows begin that follow the command."""
_LADDER = "Curriculum/command/"


@dataclass(frozen=True, kw_only=True)
class About:
  """What the rules need to know of a run, beside its curves.

  weights         of the reward rows;  episode_s  of a full episode
  adaptive        whether the learning rate follows the divergence that is wanted
  eased_until     iteration from which on every reward is the task's own
  rungs           of the command ladder, 0 without one
  mean_command    mean of the speed that is commanded, over the fastest that is; None without one
  pairs           feet that are one another's mirror image
  """

  weights: Mapping[str, float]
  episode_s: float
  init_std: float
  min_std: float
  learn_std: bool
  adaptive: bool
  desired_kl: float
  eased_until: int
  rungs: int
  mean_command: float | None
  pairs: tuple[tuple[str, str], ...]


Rule = Callable[[Curves, About], str]


def about(task: Mapping[str, Any], recipe: Mapping[str, Any]) -> About:
  """Of a task and its recipe as `mjrl.envs.describe` gives them.

  Raises:
    KeyError: they are of another version of mjrl.
  """
  command, ladder = task["command"], task["curriculum"]
  mirror = task["robot"]["mirror_feet"]
  return About(
    weights={name: row["weight"] for name, row in task["rewards"].items()},
    episode_s=task["episode_s"],
    init_std=recipe["init_std"],
    min_std=recipe["min_std"],
    learn_std=recipe["learn_std"],
    adaptive=recipe["schedule"] == "adaptive",
    desired_kl=recipe["desired_kl"],
    eased_until=max((row["until_iteration"] for row in recipe["curriculum"].values()), default=0),
    rungs=len(ladder["rungs"]) if ladder else 0,
    mean_command=_mean_command(command["forward_m_s"], command["left_m_s"]) if command else None,
    pairs=tuple((foot, other) for foot, other in mirror.items() if foot < other),
  )


# rsl_rl's own bounds of the learning rate that it adapts.
_RATE_FLOOR, _RATE_CEILING = 1e-5, 1e-2

# A walking robot of the slowest good run was past 0.87 of a standing one's error after 300
# iterations; one that had learned to stand stayed above 0.97.
_STILL_AFTER, _STILL_SHARE = 300, 0.95


def stands_still(c: Curves, about: About) -> str:
  """The error in velocity is that of a robot that does not move, long after the start."""
  errors = c.recent(f"{_LADDER}linear_error_m_s", 100)
  ranges = c.recent(f"{_LADDER}linear_range_m_s", 100)
  if c.iteration < _STILL_AFTER or len(errors) < 50 or about.mean_command is None:
    return ""
  standing = about.mean_command * ranges[-1]
  if len(set(ranges)) > 1 or not standing or fmean(errors) < _STILL_SHARE * standing:
    return ""
  return (
    f"commands of up to {ranges[-1]:.3g} m/s are missed by {fmean(errors):.3f} m/s, and a robot "
    f"that stands still misses them by {standing:.3f} m/s; {_reward(c)}"
  )


# Long enough for several episodes to begin and end within.
_FLAT_WINDOW = 300


def tracking_flat(c: Curves, about: About) -> str:
  """The reward rises, and a row that follows the command is no part of it."""
  start = c.iteration - _FLAT_WINDOW + 1
  levels = c.recent(f"{_LADDER}level", _FLAT_WINDOW)
  if start < max(about.eased_until, c.first) or len(set(levels)) > 1:
    return ""  # the reward is not one and the same over that time
  reward = _ends(c, "Train/mean_reward", _FLAT_WINDOW)
  if reward is None:
    return ""
  perfect = about.episode_s * sum(max(weight, 0.0) for weight in about.weights.values())
  rose = (reward[1] - reward[0]) / max(abs(reward[0]), 0.1 * perfect)
  if rose < 0.25:  # good runs at the end of their way rise by 0.15
    return ""
  for name, weight in about.weights.items():
    term = _ends(c, f"Episode_Reward/{name}", _FLAT_WINDOW)
    if not name.startswith(TRACKING) or weight <= 0 or term is None:
      continue
    if term[1] < 0.7 * weight and term[1] - term[0] < 0.05 * weight:
      return (
        f"mean reward {reward[0]:.1f} -> {reward[1]:.1f} within {_FLAT_WINDOW} iterations, while "
        f"{name} went {term[0]:.3f} -> {term[1]:.3f} of its weight {weight:g}"
      )
  return ""


def reward_falls(c: Curves, about: About) -> str:
  """The reward was a third higher, with the same numbers in the reward table."""
  # Episodes that began while numbers were eased are counted for a while after.
  start = max(about.eased_until + 100, c.first)
  levels = _since_last_change(c, f"{_LADDER}level")
  start = max(start, levels + 100 if levels is not None and levels > c.first else start)
  rewards = c.between("Train/mean_reward", start, c.iteration + 1)
  if len(rewards) < 100:
    return ""
  best = max(fmean(rewards[k : k + 50]) for k in range(0, len(rewards) - 49, 10))
  now = fmean(rewards[-50:])
  if best <= 0 or now > 0.67 * best:
    return ""
  return f"mean reward {now:.1f} over the last 50 iterations, and {best:.1f} over the best 50"


def std_stuck(c: Curves, about: About) -> str:
  """The action's standard deviation is where it started: the policy is not being changed."""
  values = c.recent("Policy/mean_std", 200)
  if c.rows < 200 or len(values) < 200:
    return ""
  # Good runs leave this band within 100 iterations.
  if max(abs(value / about.init_std - 1) for value in values) > 0.03:
    return ""
  text = f"action std {min(values):.3f} to {max(values):.3f} over 200 iterations"
  if not about.learn_std:
    return f"{text}: the recipe does not have it learned (learn_std is false)"
  return (
    f"{text}, and it began at {about.init_std:g}; learning rate "
    f"{_last(c, 'Loss/learning_rate')}, KL {_last(c, 'Loss/kl')} (wanted {about.desired_kl:g})"
  )


def std_floor(c: Curves, about: About) -> str:
  """The action's standard deviation lies on its floor: nothing is tried any more."""
  values = c.recent("Policy/mean_std", 50)
  if len(values) < 50 or max(values) > 1.02 * about.min_std:
    return ""
  return f"action std {values[-1]:.3f} for 50 iterations, and its floor is {about.min_std:g}"


def std_grows(c: Curves, about: About) -> str:
  """The action's standard deviation grows: noise is paid for, and not what it finds."""
  values = c.recent("Policy/mean_std", 20)
  if len(values) < 20 or fmean(values) < 1.3 * about.init_std:  # of good ones, 1.05 was the most
    return ""
  return f"action std {values[-1]:.3f}, and it began at {about.init_std:g}; {_reward(c)}"


def rate_floor(c: Curves, about: About) -> str:
  """The learning rate lies on its floor: updates are hardly any."""
  values = c.recent("Loss/learning_rate", 200) if about.adaptive else []
  # A run of 3000 iterations that went well had it in more than half of 100 of them.
  if len(values) < 200 or fmean(value > 1.01 * _RATE_FLOOR for value in values) > 0.1:
    return ""
  return (
    f"learning rate {median(values):.1e}, its floor, over 200 iterations; KL "
    f"{_last(c, 'Loss/kl')} and {about.desired_kl:g} wanted"
  )


def rate_ceiling(c: Curves, about: About) -> str:
  """The learning rate lies on its ceiling: no update reaches the divergence that is wanted."""
  values = c.recent("Loss/learning_rate", 100) if about.adaptive else []
  if len(values) < 100 or median(values) < 0.99 * _RATE_CEILING:  # good ones stay below 1e-3
    return ""
  return (
    f"learning rate {median(values):.1e}, its ceiling, over 100 iterations; KL "
    f"{_last(c, 'Loss/kl')} and {about.desired_kl:g} wanted"
  )


# The slowest good run climbed its first rung after 790 iterations.
_RUNG_ITERATIONS = 900


def ladder_stuck(c: Curves, about: About) -> str:
  """The command ladder is not climbed, and there is more of it."""
  level = c.last(f"{_LADDER}level")
  since = _since_last_change(c, f"{_LADDER}level")
  if level is None or since is None or level + 1 >= about.rungs:
    return ""
  if c.iteration - since < _RUNG_ITERATIONS:
    return ""
  text = f"level {level:g} of 0..{about.rungs - 1} for {c.iteration - since} iterations"
  for name, unit in (("linear", "m_s"), ("angular", "rad_s")):
    error, bar = (c.last(f"{_LADDER}{name}_{kind}_{unit}") for kind in ("error", "bar"))
    if error is not None and bar is not None:
      side = "above" if error >= bar else "below"
      text += f"; {name} error {error:.3f}, {side} its bar {bar:.3f}"
  return text


def kl_high(c: Curves, about: About) -> str:
  """Updates move the policy by far more than is wanted."""
  values = c.recent("Loss/kl", 50)
  if len(values) < 50 or median(values) < 3 * about.desired_kl:
    return ""
  return (
    f"KL {median(values):.3g} over 50 iterations, and {about.desired_kl:g} is wanted; learning "
    f"rate {_last(c, 'Loss/learning_rate')}"
  )


def critic_blind(c: Curves, about: About) -> str:
  """The critic foresees hardly any of what differs from return to return."""
  values = c.recent("Loss/explained_variance", 100)
  if c.rows < 200 or len(values) < 100 or fmean(values) > 0.2:
    return ""
  return (
    f"the critic explains {100 * fmean(values):.0f} % of the variance of the returns over 100 "
    f"iterations; value loss {_last(c, 'Loss/value')}"
  )


def value_loss_jumps(c: Curves, about: About) -> str:
  """The value loss is far above what it was: returns as the critic has never seen any."""
  before = c.between("Loss/value", c.iteration - 219, c.iteration - 19)
  now = c.recent("Loss/value", 20)
  if len(before) < 200 or fmean(now) < 10 * median(before):  # a rung or an easing makes it 3 times
    return ""
  return f"value loss {fmean(now):.3g} over 20 iterations, and {median(before):.3g} over 200 before"


def one_term(c: Curves, about: About) -> str:
  """One row of the reward table decides alone."""
  means = {
    name: fmean(values)
    for name in about.weights
    if len(values := c.recent(f"Episode_Reward/{name}", 100)) >= 50
  }
  gain = sum(value for value in means.values() if value > 0)
  if c.rows < 200 or len(means) < 4 or not gain:
    return ""
  best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
  if means[best] > 0.8 * gain:  # eased rows of good runs have up to 0.71
    return f"{best} gives {means[best]:.2f} of {gain:.2f} reward/s, {means[best] / gain:.0%}"
  if -means[worst] > 0.5 * gain:  # the greatest penalty of good ones takes up to 0.24
    return f"{worst} takes {-means[worst]:.2f} of {gain:.2f} reward/s, {-means[worst] / gain:.0%}"
  return ""


def early_ends(c: Curves, about: About) -> str:
  """Most episodes end early, for one reason, and they do not become longer."""
  prefix = "Episode_Termination/"
  reasons = [n.removeprefix(prefix) for n in c.names if n.startswith(prefix)]
  lengths = _ends(c, "Train/mean_episode_length", 200)
  if c.rows < 200 or lengths is None or lengths[1] > 1.1 * lengths[0]:
    return ""
  for reason in reasons:
    share = fmean(c.recent(f"{prefix}{reason}", 100) or [0.0])
    if reason != "time_out" and share > 0.5:
      return (
        f"{share:.0%} of the episodes of 100 iterations ended by {reason}; mean episode length "
        f"{lengths[0]:.0f} -> {lengths[1]:.0f} control steps"
      )
  return ""


# In even gaits, a foot lands at most 1.13 times as often as its mirror image, and is down for 0.07
# more of the time; in one with a leg that hangs, 0.3 more.
_LANDS_1_S, _OFTEN, _DUTY_GAP = 0.3, 1.7, 0.2


def lopsided(c: Curves, about: About) -> str:
  """A foot lands far less often than its mirror image, or is on the ground for far longer."""
  if c.iteration < _STILL_AFTER:
    return ""
  for pair in about.pairs:
    landings = [fmean(c.recent(f"Feet/{foot}/landings_1_s", 200) or [0.0]) for foot in pair]
    duties = [fmean(c.recent(f"Feet/{foot}/duty", 200) or [0.0]) for foot in pair]
    limps = max(landings) > max(_LANDS_1_S, _OFTEN * min(landings))
    if limps or abs(duties[0] - duties[1]) > _DUTY_GAP:
      return "; ".join(
        f"{foot} lands {landed:.2f} times/s and is down {duty:.0%} of the time"
        for foot, landed, duty in zip(pair, landings, duties, strict=True)
      )
  return ""


def slower(c: Curves, about: About) -> str:
  """The run has less than half of the speed that it had."""
  speeds = c.recent("Perf/total_fps", 200)
  early = c.between("Perf/total_fps", c.first + 10, c.first + 210)  # the first ones allocate
  if c.rows < 410 or not early or median(speeds) > 0.5 * median(early):
    return ""
  text = f"{median(speeds):.0f} steps/s over 200 iterations, and {median(early):.0f} at the start"
  now = c.recent("Perf/cpu_time", 200)
  then = c.between("Perf/cpu_time", c.first + 10, c.first + 210)
  if now and then:
    mine = median(now) > 1.3 * median(then)
    why = "its own work has grown" if mine else "others use the machine, or it throttles"
    text += f"; CPU time of an iteration {median(then):.2f} -> {median(now):.2f} s: {why}"
  return text


def memory_grows(c: Curves, about: About) -> str:
  """Memory that is held grows on and on."""
  for name in ("Perf/memory_mib", "Perf/gpu_memory_mib"):
    thirds = [c.between(name, c.iteration - k + 1, c.iteration - k + 101) for k in (300, 200, 100)]
    if c.rows < 400 or not all(thirds):
      continue
    first, second, third = (median(values) for values in thirds)
    # Not steps, as of an evaluation that is made room for: growth in each part, of a tenth in all.
    steady = min(second - first, third - second) > 0.25 * (third - first)
    if steady and third - first > max(0.1 * first, 100.0):
      return (
        f"{name} {first:.0f} -> {third:.0f} MiB within 200 iterations, "
        f"{5 * (third - first):.0f} MiB in 1000"
      )
  return ""


RULES: Mapping[str, Rule] = {
  "stands-still": stands_still,
  "tracking-flat": tracking_flat,
  "reward-falls": reward_falls,
  "std-stuck": std_stuck,
  "std-floor": std_floor,
  "std-grows": std_grows,
  "learning-rate-floor": rate_floor,
  "learning-rate-ceiling": rate_ceiling,
  "ladder-stuck": ladder_stuck,
  "kl-high": kl_high,
  "critic-blind": critic_blind,
  "value-loss-jumps": value_loss_jumps,
  "one-term": one_term,
  "early-ends": early_ends,
  "lopsided": lopsided,
  "slower": slower,
  "memory-grows": memory_grows,
}
"""Name of a finding to its rule."""


def _mean_command(forward: tuple[float, float], left: tuple[float, float]) -> float | None:
  """Mean size of a velocity drawn evenly from two ranges, over the fastest forward one."""
  cells = [(k + 0.5) / 40 for k in range(40)]
  xs, ys = ([low + share * (high - low) for share in cells] for low, high in (forward, left))
  fastest = max(map(abs, forward))
  return fmean((x * x + y * y) ** 0.5 for x in xs for y in ys) / fastest if fastest else None


def _ends(c: Curves, name: str, window: int) -> tuple[float, float] | None:
  """Means over the first and the last 50 iterations of a window; None where it is not recorded."""
  start = c.iteration - window + 1
  first, last = c.between(name, start, start + 50), c.recent(name, 50)
  return (fmean(first), fmean(last)) if first and last and start >= c.first else None


def _since_last_change(c: Curves, name: str) -> int | None:
  """Iteration from which on a scalar is what it is now; None where it was never logged."""
  iterations, values = c.points(name)
  if not values:
    return None
  k = len(values) - 1
  while k and values[k - 1] == values[-1]:
    k -= 1
  return iterations[k]


def _reward(c: Curves) -> str:
  values = c.points("Train/mean_reward")[1]
  return f"mean reward {values[0]:.1f} -> {values[-1]:.1f}" if values else "no episode has ended"


def _last(c: Curves, name: str) -> str:
  value = c.last(name)
  return "not logged" if value is None else f"{value:.2g}"
