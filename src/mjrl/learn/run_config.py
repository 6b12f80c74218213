"""The settings of a run in the words of a configuration file, so that one repeats it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mjrl.learn.options import Options
from mjrl.sim.resolve import Resolved


def run_config(
  *,
  task: str,
  resolved: Resolved,
  seed: int,
  iterations: int,
  recurrent: bool,
  checkpoint: Path | None,
  init_from: Path | None,
  options: Options,
  overrides: Mapping[str, Any],
  run_events: Mapping[str, Any],
) -> dict[str, Any]:
  """Flags, overrides and events in force: `train.py --config` with these repeats the run.

  What only shows the run, such as TensorBoard and the window, is not among them.
  """
  config: dict[str, Any] = {
    "task": task,
    "backend": resolved.backend,
    # Of several processes, each has a GPU of its own.
    "device": resolved.device if resolved.ranks.alone else resolved.device.split(":")[0],
    "num_envs": resolved.num_envs,
    "cpu_threads": resolved.threads,
    "seed": seed,
    "max_iterations": iterations,
    "logger": options.logger,
  }
  for name in ("nconmax", "njmax"):
    if (room := getattr(resolved, name)) is not None:
      config[name] = room
  if recurrent:
    config["recurrent"] = True
  if checkpoint is not None:
    config["checkpoint"] = str(checkpoint.absolute())
  if init_from is not None:
    config["init_from"] = str(init_from.absolute())
  if options.eval_every is not None:
    config |= {
      name: getattr(options, name) for name in ("eval_every", "num_eval_episodes", "best_metric")
    }
  if options.video_every is not None:
    config["video_every"] = options.video_every
  if options.keep_last is not None:
    config["keep_last"] = options.keep_last
  if overrides:
    config["set"] = dict(overrides)
  if run_events:
    config["events"] = dict(run_events)
  return config
