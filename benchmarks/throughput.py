"""How much of the engine's speed the step loop keeps, and where the rest goes.

    python benchmarks/throughput.py --envs 16 64 256 1024 --json throughput.json

Three loops take turns in one process, on the same model, from the same states and with the same
random targets: `env.step()` of a task with every row, noise, history, resets and pushes;
`mujoco.rollout`, a call per control step; and `mujoco.batch.Batch.step`, to the same stage as the
environment, with the model parameters that the task draws for each env.  Figures are ratios of
env-steps/s, each the median over the turns; absolute speeds depend on who else uses the machine.
"""

import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from mjrl.cli.prepare import start_torch
from mjrl.sim.resolve import resolve


@dataclass(kw_only=True)
class Flags:
  """What to measure."""

  task: str = "jumper.tripod"
  envs: list[int] = field(default_factory=lambda: [16, 64, 256, 1024])
  turns: int = 15
  """Turns of each loop."""
  turn_steps: int = 0
  """Control steps in a turn; 0 takes as many as give about 6400 env-steps."""
  action_std: float = 0.3
  """Standard deviation of the random actions, before the task's scale."""
  json: Path | None = None
  """Where to write the figures."""


def measure(flags: Flags, num_envs: int) -> dict:
  """The figures of one number of envs."""
  import numpy as np
  import torch
  from mujoco import MjData, mj_getState, mj_setState, mj_stateSize, mjtStage, mjtState, rollout
  from mujoco import batch as mjbatch

  from mjrl import tasks
  from mjrl.envs.actions import JointOffset
  from mjrl.envs.env import Env
  from mjrl.envs.scene import compile_scene
  from mjrl.sim.open import open_backend

  task = tasks.build(flags.task)
  resolved = resolve(num_envs=num_envs, default_num_envs={})
  model = compile_scene(task)
  backend = open_backend(resolved, model)
  env = Env(task, backend, seed=0, spread_starts=True)
  steps = flags.turn_steps or max(6400 // num_envs, 4)
  substeps, driven = task.substeps, len(env.robot.gait_joints)
  rng = torch.Generator().manual_seed(0)
  actions = flags.action_std * torch.randn(steps, num_envs, driven, generator=rng)

  # The engine's own loops get the same targets, as controls.
  home = env.state.home_rad
  columns = env.state.gait_joints
  targets = home.expand(steps, num_envs, -1).clone()
  assert isinstance(task.action, JointOffset)  # it is the walking task's
  targets[:, :, columns] += task.action.scale_rad * actions
  ctrl = targets.double().numpy()
  bare = mjbatch.Batch(model, nsim=num_envs, nthread=resolved.threads, persistent=True)
  outputs = [bare.bind(name) for name in ("sensordata", "actuator_force")]
  for name, value in env.backend.save().items():  # masses, friction ..., as they differ per env
    if name != "state":
      bare.expand(name)[:] = value.numpy()
  bare.set_const()
  pool = rollout.Rollout(nthread=resolved.threads)
  data = [MjData(model) for _ in range(resolved.threads)]
  scratch = MjData(model)
  full = int(mjtState.mjSTATE_FULLPHYSICS)
  state = np.empty((num_envs, mj_stateSize(model, full)))
  states = np.empty((num_envs, substeps, state.shape[1]))
  sensors = np.empty((num_envs, substeps, model.nsensordata))

  def start_alike() -> None:
    """Give the engine's loops the environment's states: contacts decide what a step costs."""
    bare.state[:] = env.backend.save()["state"].numpy()
    bare.forward(stage=int(mjtStage.mjSTAGE_VEL))
    for row, whole in zip(state, bare.state, strict=True):
      mj_setState(model, scratch, whole, int(mjtState.mjSTATE_INTEGRATION))
      mj_getState(model, scratch, row, full)

  def run_env() -> None:
    for action in actions:
      env.step(action)

  def run_batch() -> None:
    live = bare.bind("ctrl")
    for row in ctrl:
      live[:] = row
      bare.step(nstep=substeps, stage=int(mjtStage.mjSTAGE_VEL))

  def run_rollout() -> None:
    nonlocal state
    for row in ctrl:
      held = np.repeat(row[:, None], substeps, axis=1)
      pool.rollout(model, data, state, held, state=states, sensordata=sensors)
      state = states[:, -1].copy()

  loops = {"env": run_env, "rollout": run_rollout, "batch": run_batch}
  seconds: dict[str, list[float]] = {name: [] for name in loops}
  with torch.inference_mode():
    for _ in range(2):
      run_env()  # warm up, and fall into the motion
    for turn in range(flags.turns):
      start_alike()
      # The order turns too, so that none of them always comes after the same one.
      for name in (*list(loops)[turn % 3 :], *list(loops)[: turn % 3]):
        loop = loops[name]
        began = time.perf_counter()
        loop()
        seconds[name].append(time.perf_counter() - began)
    parts = _parts(env, actions)
  assert outputs
  ratio = [r / e for r, e in zip(seconds["rollout"], seconds["env"], strict=True)]
  ratio_batch = [b / e for b, e in zip(seconds["batch"], seconds["env"], strict=True)]
  return {
    "ratio": statistics.median(ratio),
    "ratio_batch": statistics.median(ratio_batch),
    "env_steps_per_s": steps * num_envs / statistics.median(seconds["env"]),
    "threads": resolved.threads,
    "parts": parts,
  }


def _parts(env, actions) -> dict[str, float]:
  """Share of `env.step()` that each of its parts takes, in wall time."""
  spent: dict[str, float] = {}

  def timed(owner, method, label):
    inner = getattr(owner, method)

    def wrapper(*args, **kwargs):
      began = time.perf_counter()
      try:
        return inner(*args, **kwargs)
      finally:
        spent[label] = spent.get(label, 0.0) + time.perf_counter() - began

    setattr(owner, method, wrapper)

  timed(env.backend, "step", "physics, with the copy of its results")
  timed(env.rewards, "score", "rewards")
  timed(env.metrics, "add", "metrics")
  timed(env.commands, "advance", "commands")
  timed(env.observer, "write", "observations, also of new episodes")
  timed(env, "_start", "resets")
  timed(env, "_fire_due", "pushes")
  began = time.perf_counter()
  for action in actions:
    env.step(action)
  total = time.perf_counter() - began
  shares = {label: seconds / total for label, seconds in spent.items()}
  return shares | {"the loop itself": 1 - sum(shares.values())}


def main() -> None:
  """Measure, print a table, and write the figures."""
  import tyro

  flags = tyro.cli(Flags, description=__doc__)
  start_torch(resolve(num_envs=1, default_num_envs={}).torch_threads)
  found = {}
  print(f"{'envs':>6} {'of rollout':>11} {'of Batch.step':>14} {'env-steps/s':>12}")
  for num_envs in flags.envs:
    row = found[str(num_envs)] = measure(flags, num_envs)
    print(
      f"{num_envs:>6} {row['ratio']:>11.2f} {row['ratio_batch']:>14.2f} "
      f"{row['env_steps_per_s']:>12.0f}",
      flush=True,
    )
  for num_envs, row in found.items():
    print(f"where a step of {num_envs} envs goes:")
    for label, share in sorted(row["parts"].items(), key=lambda item: -item[1]):
      print(f"  {share:6.1%}  {label}")
  if flags.json:
    from mjrl.learn.atomic import write_json

    write_json(flags.json, {"task": flags.task, "envs": found})
    print(f"wrote {flags.json}")


if __name__ == "__main__":
  main()
