"""The step loop: a task's tables at work on an engine."""

import functools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mjrl.envs.asked import Asked
from mjrl.envs.commands import Commands
from mjrl.envs.curriculum import Annealing, Ladder
from mjrl.envs.footfalls import Footfalls
from mjrl.envs.ground import Ground, reach_m
from mjrl.envs.holds import Holds
from mjrl.envs.ladders import Widened
from mjrl.envs.observing import Observer
from mjrl.envs.readings import Readings, constants
from mjrl.envs.recipe import Anneal
from mjrl.envs.scene import in_scene
from mjrl.envs.scoring import Metrics, Rewards
from mjrl.envs.state import State
from mjrl.envs.task import Event, Task
from mjrl.envs.tiles import Tiles
from mjrl.envs.world import World
from mjrl.sim.backend import Backend

_SHORTEST_FIRST = 0.1  # of a full episode, where first episodes are cut to random lengths
_LOOK_S = 0.1  # how often interval events and ends of command holds are looked for
# Metrics are taken every so many control steps, which costs their means nothing: a number that does
# not divide the cycles of gaits, so that an env is not always seen at the same phase.
_METRIC_STEPS = 5
_NAMED = 5  # diverged envs that are named in a note
_KEPT_STEPS = 2000  # control steps whose ended episodes are kept for `take_finished`
# What every env carries from one control step to the next, beside the engine.
_BUFFERS = (
  "action",
  "last_action",
  "episode_steps",
  "clock_steps",
  "_limit_steps",
  "_next_event",
  "_returns",
  "_air",
  "_contact",
  "_peak",
  "_touchdown",
  "_up",
)


@dataclass(frozen=True, kw_only=True)
class Step:
  """What a control step gave; tensors are good until the next one.

  observations    group to (N, width), of the new episode where one began
  reward          (N,)
  terminated      (N,) bool, ended in failure;  timed_out (N,) bool, ended by its length alone
  failed          termination to (N,) bool; "diverged" is there if some env did
  terminal        group to (N, width) as it was before new episodes began; None if it is known that
                  none timed out
  state           at the end of the step, before new episodes began
  """

  observations: dict[str, Tensor]
  reward: Tensor
  terminated: Tensor
  timed_out: Tensor
  failed: Mapping[str, Tensor]
  terminal: dict[str, Tensor] | None
  state: State


class Env:
  """N envs of a task, stepped together, each starting a new episode when its own is over."""

  def __init__(
    self,
    task: Task,
    backend: Backend,
    seed: int,
    *,
    history: int | None = None,
    anneal: Mapping[str, Anneal] | None = None,
    spread_starts: bool = False,
    leads: bool = True,
  ) -> None:
    """Build the tables, fire startup events, and start every env.

    Args:
      task: what to do.
      backend: the engine, holding the task's model.
      seed: of every draw the environment makes.
      history: frames of observation rows that keep several, in place of their own.
      anneal: numbers that start easier than the task's own.
      spread_starts: whether first episodes are cut to random lengths, so that they do not all end
        at once.
      leads: whether its own holds move the command ladder, and not another process's.
    """
    task = in_scene(task)
    self.task, self.robot, self.backend = task, task.robot, backend
    self.num_envs, self.device, self._leads = backend.num_envs, backend.device, leads
    self.dt_s, self.substeps = task.control_dt_s, task.substeps
    n, device = self.num_envs, self.device
    self.rng = torch.Generator(device).manual_seed(seed)
    self._steps = 0
    self._look_steps = max(round(_LOOK_S / self.dt_s), 1)
    self._everyone = torch.ones(n, dtype=torch.bool, device=device)
    self._nobody = ~self._everyone

    joints, driven = len(self.robot.joints), len(self.robot.gait_joints)
    self.world = World(
      backend=backend,
      robot=self.robot,
      rng=self.rng,
      start_qpos=backend.default("qpos0").repeat(n, 1),  # also of what a scene has beside the robot
      start_qvel=torch.zeros(n, backend.model.nv, device=device),
      encoder_bias_rad=torch.zeros(n, joints, device=device),
      tiles=_tiles(task, backend),
    )
    tiles = self.world.tiles
    self._constants = constants(task, backend) | {"ground": tiles.ground if tiles else None}
    self._readings = Readings(self.robot, backend)
    self._cycle_steps = task.gait.cycle_steps if task.gait else 1

    self.action = torch.zeros(n, driven, device=device)
    self.last_action = torch.zeros(n, driven, device=device)
    self.episode_steps = torch.zeros(n, dtype=torch.int64, device=device)
    self.clock_steps = torch.zeros(n, dtype=torch.int64, device=device)
    feet = len(self.robot.feet)
    self._air = torch.zeros(n, feet, dtype=torch.int32, device=device)
    self._contact = torch.zeros(n, feet, dtype=torch.int32, device=device)
    self._peak = torch.zeros(n, feet, device=device)
    self._touchdown = torch.zeros(n, feet, dtype=torch.bool, device=device)
    self._up = torch.zeros(n, feet, dtype=torch.bool, device=device)  # in the air

    self._velocity = Commands(task.command, self.world, self.dt_s) if task.command else None
    self.asked = {k: row.build(self.world, self.dt_s) for k, row in task.commands.items()}
    moved = {row.path.split(".")[1] for row in (anneal or {}).values()}
    self.rewards = Rewards(task.rewards, n, device, self.dt_s, moved)
    self.metrics = Metrics(task.metrics, device)
    self._footfalls = Footfalls(self.robot.feet, device, self.dt_s)
    self.ladders = {
      name: Ladder(spec, self._widened(name), self.rewards)
      for name, spec in task.all_ladders.items()
    }
    if tiles and tiles.ladder:
      self.commands.meter.tracked = tiles.tracked
    self.annealing = {name: Annealing(row, self.rewards) for name, row in (anneal or {}).items()}
    self._reset_events = [e for e in task.events.values() if e.when == "reset"]
    self._interval_events = [e for e in task.events.values() if e.when == "interval"]
    for event in self._interval_events:
      assert event.every_s is not None  # interval events alone, which have one
      if event.every_s[0] < _LOOK_S:
        raise ValueError(
          f"{task.name}: event {event.fn.__name__} comes every {event.every_s} s; events are "
          f"looked for every {_LOOK_S} s, and none can come more often"
        )
    self._next_event = torch.zeros(len(self._interval_events), n, dtype=torch.int64, device=device)
    # What is counted on the way is read when it is asked for, and not before: on a GPU, each look
    # would hold up the step.
    self._reasons = (*task.terminations, "time_out", "diverged")
    self._ended = torch.zeros(len(self._reasons) + 1, dtype=torch.int64, device=device)
    self._returns = torch.zeros(n, device=device)
    # Of each step: which episodes ended, all returns, all lengths.
    self._finished: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=_KEPT_STEPS)
    self._diverged = torch.zeros(n, dtype=torch.bool, device=device)
    self.lost: dict[tuple[str, str], int] = {}

    for event in task.events.values():
      if event.when == "startup":
        event.fn(self.world, self._everyone, **event.params)
    for k, event in enumerate(self._interval_events):
      self._next_event[k] = self._wait(event)
    self._start(self._everyone)
    self.state = self._read()
    self._check_rows()
    self.observer = Observer(task.observations, self.state, self.dt_s, self.rng, history)
    self._bad_rewards = torch.zeros_like(self.rewards.bad_rows())
    self._bad_columns = torch.zeros_like(self.observer.bad_columns())
    self._limit_steps = torch.full_like(self.episode_steps, task.episode_steps)
    if spread_starts:
      shortest = max(round(_SHORTEST_FIRST * task.episode_steps), 1)
      self._limit_steps.random_(shortest, task.episode_steps + 1, generator=self.rng)

  @property
  def commands(self) -> Commands:
    """The velocity commands.

    Raises:
      ValueError: the task asks for no velocity.
    """
    if self._velocity is None:
      raise ValueError(f"{self.task.name} asks for no velocity, so that none can be commanded")
    return self._velocity

  @property
  def ladder(self) -> Ladder | None:
    """That of the velocity command."""
    return self.ladders.get("command")

  def reset(self) -> dict[str, Tensor]:
    """Start a new episode in every env; the ones that were under way leave no trace in the log."""
    self.rewards.forget(self._everyone)
    self._returns.zero_()
    self._limit_steps.fill_(self.task.episode_steps)
    self._start(self._everyone)
    self.state = self._read()
    self.observer.write(self.state, self._everyone)
    return self.observations()

  def observations(self) -> dict[str, Tensor]:
    """Group to (N, width).  Reading changes nothing."""
    return self.observer.read()

  def step(self, action: Tensor) -> Step:
    """One control step of every env; the order below is the contract.

    Args:
      action: (N, G), any real numbers.
    """
    self._steps += 1
    look = self._steps % self._look_steps == 0
    if look:
      self._fire_due()
    self._act(action)
    self.backend.step(self.substeps)
    self.episode_steps += 1
    self.clock_steps = torch.remainder(self.clock_steps + 1, self._cycle_steps)
    s = self._read()  # every row below sees this one State
    self._count_feet(s)

    failed, terminated = self._terminations(s)
    timed_out = (self.episode_steps >= self._limit_steps) & ~terminated
    reward = self.rewards.score(s)
    self._advance_commands(s, terminated, terminated | timed_out, look)
    self.state = s.replace(**self._command_fields())
    self.observer.write(self.state)

    # 0 times anything finite is 0: a cheaper look than isfinite, and there is one every step.
    bad = self.backend.take_diverged() | ((reward + self.observer.total()) * 0 != 0)
    trouble = self.backend.any(bad)
    if trouble:
      reward = torch.where(bad, 0.0, reward)
      terminated, timed_out = terminated | bad, timed_out & ~bad
      failed["diverged"] = bad
      self._diverged |= bad
      self._bad_rewards |= self.rewards.bad_rows()
      self._bad_columns |= self.observer.bad_columns()
      self.rewards.forget(bad)
    if self._steps % _METRIC_STEPS == 1:
      self.metrics.add(s, ~bad if trouble else None)
      self._footfalls.add(s)
    self._returns += reward
    ended = terminated | timed_out
    terminal = None
    if self.backend.any(ended):
      terminal = self.observations() if self.backend.any(timed_out) else None
      s = s.replace(**self._readings.copies())  # the engine is about to overwrite them
      self._log_ended(failed | {"time_out": timed_out}, ended)
      if self.world.tiles:
        self.world.tiles.end_episodes(ended, self._commands_at_top)
      self._start(ended)
      self.state = self._read()
      self.observer.write(self.state, ended)
    return Step(
      observations=self.observations(),
      reward=reward,
      terminated=terminated,
      timed_out=timed_out,
      failed=failed,
      terminal=terminal,
      state=s,
    )

  def end_iteration(
    self, index: int, pool: Callable[[Tensor], Tensor] = lambda sums: sums
  ) -> dict[str, float]:
    """Move what anneals, and take what was measured since the last call, by its name in the log.

    Args:
      index: of the iteration that is done.
      pool: adds up what several processes have summed, so that all log and anneal the same.
    """
    metrics = self.metrics.drain(pool)
    rewards = self.rewards.drain(self.task.episode_s, pool)
    log = {f"Episode_Reward/{k}": v for k, v in rewards.items()}
    log |= {f"Metrics/{k}": v for k, v in metrics.items()}
    log |= {f"Feet/{k}": v for k, v in self._footfalls.drain(pool).items()}
    *ended, episodes = self._ended.tolist()
    self._ended.zero_()
    for name, ladder in self.ladders.items():
      holds = self._widened(name).take_holds()
      if self._leads:
        ladder.take(holds)
      log |= {f"Curriculum/{name}/{k}": v for k, v in ladder.log().items()}
    if self.world.tiles:
      of_tiles = self.world.tiles.log(self._commands_at_top, pool)
      log |= {f"Curriculum/terrain/{k}": v for k, v in of_tiles.items()}
    for name, row in self.annealing.items():
      row.iteration(index, metrics)
      log |= {f"Curriculum/{name}/{k}": v for k, v in row.log().items()}
    counts = pool(torch.tensor([*ended, episodes], dtype=torch.float64))
    *ended, episodes = counts.tolist()
    reasons = dict(zip(self._reasons, ended, strict=True))
    if episodes:
      log |= {f"Episode_Termination/{k}": v / episodes for k, v in reasons.items()}
    log["Metrics/diverged"] = reasons["diverged"]
    return log

  def take_finished(self) -> list[tuple[float, float]]:
    """(return, length in control steps) of each episode that ended since the last call.

    Those of a first episode that was cut short are scaled up to a full one's length.
    """
    if not self._finished:
      return []
    ended, returns, lengths = (torch.stack(part) for part in zip(*self._finished, strict=True))
    self._finished.clear()
    return list(zip(returns[ended].tolist(), lengths[ended].tolist(), strict=True))

  def take_notes(self) -> list[str]:
    """What went wrong since the last call, a line each: bad numbers, and contacts that were lost.

    Counts of the latter are kept in `lost`; each kind is told once.
    """
    notes = []
    for (what, cure), count in self.backend.take_lost().items():
      if (what, cure) not in self.lost:
        notes.append(f"{what} lost in {count} env-steps, for want of room; cure: {cure}")
      self.lost[what, cure] = self.lost.get((what, cure), 0) + count
    envs = self._diverged.nonzero().flatten().tolist()
    if envs:
      named = ", ".join(map(str, envs[:_NAMED])) + (" ..." if len(envs) > _NAMED else "")
      notes.append(f"diverged, and started anew: env {named}: {self._first_bad()}")
      for tensor in (self._diverged, self._bad_rewards, self._bad_columns):
        tensor.zero_()
    return notes

  def save_curriculum(self) -> dict[str, dict[str, float]]:
    """Plain numbers that `load_curriculum` takes."""
    tiles = self.world.tiles
    levels = {"terrain": tiles.save_levels()} if tiles and tiles.ladder else {}
    return self.shared_curriculum() | levels

  def shared_curriculum(self) -> dict[str, dict[str, float]]:
    """The part of `save_curriculum` that all processes of a run have in common."""
    curricula = self.ladders | self.annealing
    return {name: row.save() for name, row in curricula.items()}

  def load_curriculum(self, saved: Mapping[str, Mapping[str, float]]) -> None:
    """Take up the levels and averages that `save_curriculum` gave, where this task has them."""
    curricula = self.ladders | self.annealing
    for name, row in curricula.items():
      if name in saved:
        row.load(saved[name])
    if self.world.tiles and self.world.tiles.ladder and "terrain" in saved:
      self.world.tiles.load_levels(saved["terrain"])
      self._start(self._everyone)
      self.state = self._read()
      self.observer.write(self.state, self._everyone)

  def save(self) -> dict[str, Any]:
    """The state of the world at the end of an iteration: all that `load` needs to go on to the bit.

    Curricula are not in it, see `save_curriculum`, nor what `end_iteration` takes.
    """
    return {
      "engine": self.backend.save(),
      "buffers": {name: getattr(self, name).clone() for name in _BUFFERS},
      "encoder_bias_rad": self.world.encoder_bias_rad.clone(),
      "commands": {k: command.save() for k, command in self._all_commands().items()},
      "rewards": self.rewards.save(),
      "observations": self.observer.save(),
      "rng": self.rng.get_state(),
      "steps": self._steps,
      "tiles": self.world.tiles.save() if self.world.tiles else {},
    }

  def load(self, saved: Mapping[str, Any]) -> None:
    """Take up what `save` gave, of the same task and number of envs."""
    self.backend.load(saved["engine"])
    for name, value in saved["buffers"].items():
      setattr(self, name, value.to(self.device, copy=True))
    self.world.encoder_bias_rad.copy_(saved["encoder_bias_rad"])
    for name, command in self._all_commands().items():
      command.load(saved["commands"][name])
    self.rewards.load(saved["rewards"])
    self.observer.load(saved["observations"])
    self.rng.set_state(saved["rng"])
    self._steps = saved["steps"]
    if self.world.tiles:
      self.world.tiles.load(saved["tiles"])
    self.state = self._read()

  def _check_rows(self) -> None:
    """Evaluate every row once: what does not fit is refused now, and not in the first step."""
    task, n = self.task, self.num_envs
    rows = {f"rewards.{k}": row for k, row in task.rewards.items()}
    rows |= {f"terminations.{k}": row for k, row in task.terminations.items()}
    rows |= {f"metrics.{k}": row for k, row in task.metrics.items()}
    rows |= {"success": task.success} if task.success else {}
    for name, row in rows.items():
      try:
        found = row.fn(self.state, **row.params)
      except AttributeError as error:
        raise ValueError(f"{task.name}: {name} reads what this task has not: {error}") from error
      parts = found if isinstance(found, tuple) else (found,)
      shapes = [tuple(part.shape) for part in parts]
      wanted = 2 if name.startswith("metrics.") else 1
      if shapes != [(n,)] * wanted:
        raise ValueError(
          f"{task.name}: {name} gives {shapes}; it must give {wanted} tensor(s) of one number "
          f"per env, {(n,)}"
        )

  def _read(self) -> State:
    return State(
      self._constants
      | self._readings.fields
      | {
        "action": self.action,
        "last_action": self.last_action,
        "clock_steps": self.clock_steps,
        "foot_air_substeps": self._air,
        "foot_contact_substeps": self._contact,
        "foot_peak_m": self._peak,
        "touchdown": self._touchdown,
        "encoder_bias_rad": self.world.encoder_bias_rad,
      }
      | self._command_fields()
    )

  def _all_commands(self) -> dict[str, Commands | Asked]:
    return ({"velocity": self._velocity} if self._velocity else {}) | self.asked

  def _command_fields(self) -> dict[str, Tensor]:
    fields = {"command": self._velocity.value} if self._velocity else {}
    for asked in self.asked.values():
      fields.update(asked.fields())
    return fields

  def _advance_commands(self, s: State, fell: Tensor, ended: Tensor, look: bool) -> None:
    if self._velocity:
      self._climb("command", self._velocity.advance(s, ended, fell, look))
    for name, asked in self.asked.items():
      self._climb(name, asked.advance(s, ended, fell, look))

  def _climb(self, command: str, holds: Holds | None) -> None:
    if self._leads and command in self.ladders:
      self.ladders[command].step(holds)

  def _widened(self, name: str) -> Widened:
    """The command that a ladder widens."""
    command = self.commands if name == "command" else self.asked[name]
    if not isinstance(command, Widened):
      raise ValueError(f"{self.task.name}: command {name!r} measures no tracking to climb by")
    return command

  def _act(self, action: Tensor) -> None:
    self.last_action, self.action = self.action, action.clone()
    self.backend.set_ctrl(self.task.action.ctrl(self.state, action))

  def _count_feet(self, s: State) -> None:
    """Count substeps in the air and on the ground: integers, so that no clock drifts."""
    down, was_up = s.foot_contact, self._up
    self._up = ~down
    # The peak of a swing lasts through the step of its landing, for the rows that look at it.
    self._peak = s.foot_peak_m = torch.maximum(self._peak * was_up, s.foot_height_m)
    self._touchdown = s.touchdown = down & was_up
    self._contact = s.foot_contact_substeps = (self._contact + self.substeps) * down
    self._air = s.foot_air_substeps = (self._air + self.substeps) * self._up

  def _terminations(self, s: State) -> tuple[dict[str, Tensor], Tensor]:
    failed = {name: row.fn(s, **row.params) for name, row in self.task.terminations.items()}
    terminated = functools.reduce(torch.logical_or, failed.values(), self._nobody)
    return failed, terminated

  def _fire_due(self) -> None:
    if not self._interval_events:
      return
    self._next_event -= self._look_steps
    due = self._next_event <= 0
    if not self.backend.any(due):
      return
    for k, event in enumerate(self._interval_events):
      event.fn(self.world, due[k], **event.params)
      self._next_event[k] = torch.where(due[k], self._wait(event), self._next_event[k])

  def _wait(self, event: Event) -> Tensor:
    assert event.every_s is not None  # interval events alone, which have one
    return (self.world.uniform(*event.every_s) / self.dt_s).long().clamp_(min=1)

  def _start(self, mask: Tensor) -> None:
    """Begin a new episode in the masked envs."""
    rows = mask[:, None]
    for event in self._reset_events:
      event.fn(self.world, mask, **event.params)
    for asked in self.asked.values():
      asked.draw(mask)
    self.backend.reset(mask, self.world.start_qpos, self.world.start_qvel)
    self.action = self.action.masked_fill(rows, 0.0)
    self.last_action = self.last_action.masked_fill(rows, 0.0)
    self.episode_steps.masked_fill_(mask, 0)
    phase = torch.randint(
      self._cycle_steps, (self.num_envs,), generator=self.rng, device=self.device
    )
    self.clock_steps = torch.where(mask, phase, self.clock_steps)
    down = self._readings.fields["foot_contacts"] > 0
    self._up = torch.where(rows, ~down, self._up)
    self._air = torch.where(rows, ~down * self.substeps, self._air)
    self._contact = torch.where(rows, down * self.substeps, self._contact)
    self._peak = self._peak.masked_fill(rows, 0.0)
    self._touchdown = self._touchdown & ~rows
    if self._velocity:
      self._velocity.draw(mask)

  @property
  def _commands_at_top(self) -> bool:
    return self.ladder is None or self.ladder.at_top

  def _first_bad(self) -> str:
    """What was the first to be no number, in words."""
    rows = zip(self.rewards.rows, self._bad_rewards.tolist(), strict=True)
    bad = next((f"reward {name}" for name, is_bad in rows if is_bad), "")
    if not bad and (row := self.observer.first_of(self._bad_columns)):
      bad = f"observation {row}"
    return f"{bad} is not finite" if bad else "the engine met a bad number"

  def _log_ended(self, reasons: Mapping[str, Tensor], ended: Tensor) -> None:
    # What a first episode that was cut short gave is scaled up to a full one's length.
    cut = self._limit_steps / self.task.episode_steps
    full = torch.where(reasons["time_out"], cut, 1.0)
    self.rewards.end_episodes(ended, full)
    counted = [reasons.get(name, self._nobody) for name in self._reasons]
    self._ended += torch.stack([*counted, ended]).sum(1)
    self._finished.append((ended, self._returns / full, self.episode_steps / full))
    self._returns *= ~ended
    self._limit_steps.masked_fill_(ended, self.task.episode_steps)


def _tiles(task: Task, backend: Backend) -> Tiles | None:
  """Where each env lives, on rough ground."""
  terrain, command = task.terrain, task.command
  if terrain is None or not terrain.rough:
    return None
  ceilings = None
  if command is not None:
    ceilings = max(map(abs, command.forward_m_s)), max(map(abs, command.yaw_rad_s))
  ground = Ground(terrain, reach_m(backend.model), backend.device)
  return Tiles(terrain, ground, ceilings, backend.num_envs, backend.device)
