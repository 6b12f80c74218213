"""What warp:cuda does on a machine with a GPU: agreement, speed, memory, and a training.

    python benchmarks/gpu_check.py --json gpu_check.json                     # 5 to 8 minutes
    python benchmarks/gpu_check.py --device cpu --envs 8 --iterations 2      # does the script run?

Needs no network.  Speeds are env-steps/s of `env.step()` and, taking turns with it in the same
process and from the same states, of the engine alone: `mujoco_warp.step` for each substep,
recorded as a graph.
"""

import json
import statistics
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mjrl.cli.prepare import start_torch
from mjrl.sim.resolve import Resolved, resolve

# How far warp may be from native:cpu in any env, after one control step and after up to 200: m and
# rad, SI units of the sensors, N and m/s^2, N m.
TOLERANCES = {
  "qpos": (3e-6, 2e-5),
  "sensors of position and velocity": (1e-4, 2e-4),
  "forces and accelerations": (1e-2, 2e-2),
  "torques": (2e-4, 5e-4),
  "share of unequal contacts": (0.0, 0.01),
}


@dataclass(kw_only=True)
class Flags:
  """What to check."""

  task: str = "jumper.tripod"
  device: str = "cuda:0"
  envs: list[int] = field(default_factory=lambda: [1024, 4096, 16384])
  turns: int = 5
  """Turns of each of the two loops."""
  turn_steps: int = 50
  """Control steps in a turn."""
  iterations: int = 100
  """Iterations of the training, with as many envs as the task's recipe has, or the most of --envs
  where that is fewer."""
  json: Path | None = None
  """Where to write the figures."""


def main() -> None:
  """Check, print, and write the figures."""
  import tyro

  flags = tyro.cli(Flags, description=__doc__)
  resolved = resolve(backend="warp", device=flags.device, num_envs=1, default_num_envs={})
  start_torch(resolved.torch_threads)
  began = time.perf_counter()
  found: dict[str, Any] = {"task": flags.task, "machine": machine(resolved)}
  _say("machine", found["machine"], began)
  found["agreement"] = agreement(flags)
  _say("agreement with native:cpu, largest of any env", found["agreement"], began)
  found["speed"] = {}
  for num_envs in flags.envs:
    found["speed"][num_envs] = speed(flags, num_envs)
    _say(f"speed with {num_envs} envs", found["speed"][num_envs], began)
  found["training"] = training(flags)
  _say("training", found["training"], began)
  if flags.json:
    from mjrl.learn.atomic import write_json

    write_json(flags.json, found)
    print(f"wrote {flags.json}")


def machine(resolved: Resolved) -> dict[str, Any]:
  import torch
  import warp as wp

  from mjrl.sim.versions import TESTED, versions_in_doubt, versions_of

  wp.config.log_level = wp.LOG_WARNING
  wp.init()
  cuda = resolved.device.startswith("cuda")
  return {
    "device": torch.cuda.get_device_name(resolved.device) if cuda else "CPU",
    "driver": wp.get_cuda_driver_version(),
    "CUDA graphs": resolved.cuda_graphs or "as on the CPU",
    "versions": versions_of((*TESTED, "torch")),
    "in doubt": versions_in_doubt(),
  }


def agreement(
  flags: Flags, each: int = 16, after: tuple[int, ...] = (1, 10, 50, 200)
) -> dict[str, dict[str, float | bool]]:
  """Distance from native:cpu after some control steps, of robots that stand, fall and step.

  The greatest of any robot, and whether all are within TOLERANCES; there are `each` of a kind.
  """
  import torch

  from mjrl import tasks
  from mjrl.envs.scene import compile_scene
  from mjrl.sim.native import NativeBackend

  task = tasks.build(flags.task)
  model = compile_scene(task)
  rng = torch.Generator().manual_seed(0)
  n = 3 * each
  qpos = torch.tensor(model.key_qpos[0], dtype=torch.float32).repeat(n, 1)
  qpos[:, 7:] += 0.02 * torch.randn(n, model.nq - 7, generator=rng)
  qpos[each : 2 * each, 2] += 0.02 + 0.08 * torch.rand(each, generator=rng)
  qvel = torch.zeros(n, model.nv)
  qvel[2 * each :] = 0.3 * torch.randn(each, model.nv, generator=rng)
  amplitude = torch.full((n, 1), 0.05)
  amplitude[2 * each :] = 0.3
  phase = 2 * torch.pi * torch.rand(n, model.nu, generator=rng)
  names = [model.sensor(k).name for k in range(model.nsensor)]
  feet = [int(model.sensor(name).adr[0]) for name in names if name.endswith("_contact")]
  force = torch.zeros(model.nsensordata, dtype=torch.bool)
  for k in range(model.nsensor):
    if model.sensor_needstage[k] == 3:  # mjSTAGE_ACC
      force[model.sensor_adr[k] : model.sensor_adr[k] + model.sensor_dim[k]] = True

  backends = (_open(flags.device, n, model), NativeBackend(model, n, threads=1))
  fields = ("qpos", "sensordata", "actuator_force")
  for backend in backends:
    for name in fields:
      backend.read(name)
    to = backend.device
    everyone = torch.ones(n, dtype=torch.bool, device=to)
    backend.reset(everyone, qpos.to(to), qvel.to(to))
  found = {}
  home = torch.tensor(model.key_ctrl[0], dtype=torch.float32)
  for step in range(1, after[-1] + 1):
    ctrl = home + amplitude * torch.sin(phase + 0.4 * step)
    for backend in backends:
      backend.set_ctrl(ctrl.to(backend.device))
      backend.step(task.substeps)
    if step in after:
      warp, native = ([b.read(name).cpu() for name in fields] for b in backends)
      gap = [(one - other).abs() for one, other in zip(warp, native, strict=True)]
      same = (warp[1][:, feet] > 0) == (native[1][:, feet] > 0)
      far = {
        "qpos": float(gap[0].max()),
        "sensors of position and velocity": float(gap[1][:, ~force].max()),
        "forces and accelerations": float(gap[1][:, force].max()),
        "torques": float(gap[2].max()),
        "share of unequal contacts": float((~same).float().mean()),
      }
      allowed = {name: pair[step > 1] for name, pair in TOLERANCES.items()}
      within = all(far[name] <= allowed[name] for name in far)
      found[f"after {step}"] = far | {"within tolerances": within}
  return found


def speed(flags: Flags, num_envs: int) -> dict[str, Any]:
  import mujoco_warp as mjw
  import torch
  import warp as wp

  from mjrl import tasks
  from mjrl.envs.env import Env
  from mjrl.envs.scene import compile_scene

  task = tasks.build(flags.task)
  model = compile_scene(task)
  free = _free_bytes(flags.device)
  backend = _open(flags.device, num_envs, model)
  env = Env(task, backend, seed=0, spread_starts=True)
  taken = free - _free_bytes(flags.device)
  rng = torch.Generator(flags.device).manual_seed(0)
  shape = (flags.turn_steps, num_envs, len(env.robot.gait_joints))
  actions = 0.3 * torch.randn(shape, generator=rng, device=flags.device)

  with wp.ScopedDevice(flags.device):
    m = mjw.put_model(model)
    m.opt.warn_overflow = 0
    d = mjw.make_data(model, nworld=num_envs, nconmax=backend.nconmax, njmax=backend.njmax)

    def substeps() -> None:
      for _ in range(task.substeps):
        mjw.step(m, d)

    substeps()  # loads the kernels
    with wp.ScopedCapture() as capture:
      substeps()
    graph = capture.graph
    assert graph is not None

  def run_env() -> None:
    for action in actions:
      env.step(action)

  def run_bare() -> None:
    with wp.ScopedDevice(flags.device):
      for _ in actions:
        wp.capture_launch(graph)

  def timed(loop: Any) -> float:
    wp.synchronize()
    start = time.perf_counter()
    loop()
    wp.synchronize()
    return time.perf_counter() - start

  seconds: dict[str, list[float]] = {"env": [], "bare": []}
  with torch.inference_mode():
    for _ in range(2):
      run_env()
    for _ in range(flags.turns):
      for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):  # contacts decide what a step costs
        wp.copy(getattr(d, name), getattr(backend._d, name))
      wp.synchronize()
      seconds["bare"].append(timed(run_bare))
      seconds["env"].append(timed(run_env))
    counts = _calls(flags.device, lambda: [env.step(action) for action in actions[:10]], steps=10)
  ratio = [b / e for b, e in zip(seconds["bare"], seconds["env"], strict=True)]
  steps = flags.turn_steps * num_envs
  return {
    "env-steps/s": steps / statistics.median(seconds["env"]),
    "env-steps/s of mujoco_warp.step": steps / statistics.median(seconds["bare"]),
    "ratio": statistics.median(ratio),
    "bytes per env": taken / num_envs,
    "nconmax": backend.nconmax,
    "njmax": backend.njmax,
    "graphs": backend.graphs,
    "lost": {f"{what}, {cure}": count for (what, cure), count in backend.take_lost().items()},
    "per control step": counts,
  }


def training(flags: Flags) -> dict[str, Any]:
  from mjrl import tasks
  from mjrl.learn.interrupts import StopAsked
  from mjrl.learn.options import Options
  from mjrl.learn.train import train

  task = tasks.build(flags.task)
  num_envs = min(task.recipes["warp"].num_envs, max(flags.envs))
  # As many steps per rollout as in the recipe, also with fewer envs.
  recipe = replace(task.recipes["warp"], num_envs=num_envs)
  task = replace(task, recipes={"warp": recipe})
  resolved = resolve(backend="warp", device=flags.device, num_envs=num_envs, default_num_envs={})
  began = time.perf_counter()
  with tempfile.TemporaryDirectory() as folder:
    train(
      task=task,
      resolved=resolved,
      seed=1,
      max_iterations=flags.iterations,
      checkpoint=None,
      log_dir=Path(folder),
      command="gpu_check.py",
      options=Options(),
      stop=StopAsked(),
    )
    (path,) = Path(folder).rglob("summary.json")
    summary = json.loads(path.read_text())
  seconds = time.perf_counter() - began
  kept = ("num_envs", "iterations", "env_steps", "reward_first", "reward_last", "tracking", "lost")
  return {name: summary[name] for name in kept} | {
    "seconds": seconds,
    "env-steps/s, learning included": summary["env_steps"] / seconds,
  }


def _open(device: str, num_envs: int, model: Any) -> Any:
  from mjrl.sim.open import open_backend

  resolved = resolve(backend="warp", device=device, num_envs=num_envs, default_num_envs={})
  return open_backend(resolved, model)


def _free_bytes(device: str) -> int:
  import psutil
  import torch

  if device.startswith("cuda"):
    torch.cuda.synchronize(device)
    return torch.cuda.mem_get_info(device)[0]
  return psutil.virtual_memory().available


def _calls(device: str, work: Any, steps: int) -> dict[str, float]:
  """What the host asks of the device, and how often it waits, per control step.

  On CUDA, calls of the driver as the profiler sees them; on the CPU, torch's operations and the
  numbers that Python reads back.
  """
  import torch

  if device.startswith("cuda"):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
      work()
      torch.cuda.synchronize(device)
    calls = {e.key: e.count for e in seen.key_averages() if e.key.startswith("cuda")}
    return {name: count / steps for name, count in calls.items()}

  from torch.utils._python_dispatch import TorchDispatchMode

  counts: Counter[str] = Counter()

  class Count(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
      counts["torch operations, views left out"] += not func.is_view
      return func(*args, **(kwargs or {}))

  with Count(), _counting_looks(counts):
    work()
  return {name: count / steps for name, count in counts.items()}


@contextmanager
def _counting_looks(counts: Counter[str]):
  import torch

  names = ("item", "tolist", "numpy", "cpu", "nonzero", "__bool__", "__float__", "__int__")
  own = {name: getattr(torch.Tensor, name) for name in names}

  def counted(method: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
      counts["looks"] += 1
      return method(*args, **kwargs)

    return call

  counts["looks"] = 0
  try:
    for name, method in own.items():
      setattr(torch.Tensor, name, counted(method))
    yield
  finally:
    for name, method in own.items():
      setattr(torch.Tensor, name, method)


def _say(title: str, figures: dict[str, Any], began: float) -> None:
  print(f"== {title} ({time.perf_counter() - began:.0f} s) ==")
  print(json.dumps(figures, indent=2), flush=True)


if __name__ == "__main__":
  main()
