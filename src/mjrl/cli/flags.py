"""The flags of train and play. Parsed by tyro; `-` and `_` are the same in a flag's name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro

Flags = TypeVar("Flags", bound="CommonFlags")

Switch = tyro.conf.FlagCreatePairsOff[bool]  # off unless named, so there is no --no-... of it

# Smallest and largest value of each number.
LIMITS = {
  "num_envs": (1, math.inf),
  "cpu_threads": (0, math.inf),
  "nconmax": (1, math.inf),
  "njmax": (1, math.inf),
  "seed": (0, 2**32 - 1),
  "max_iterations": (1, math.inf),
  "tb_port": (1, 65535),
  "eval_every": (1, math.inf),
  "num_eval_episodes": (1, math.inf),
  "keep_last": (1, math.inf),
  "steps": (1, math.inf),
  "speed": (0, math.inf),
  "physics_hz": (1, math.inf),
}


def _arg(text: str, default: str, metavar: str | None = None) -> Any:
  """A flag's help line, with its default in words."""
  return tyro.conf.arg(help=text, help_behavior_hint=f"(default: {default})", metavar=metavar)


@dataclass(frozen=True, kw_only=True)
class CommonFlags:
  """What train and play share."""

  task: Annotated[str | None, _arg("task to run; --list names them", "MJRL_TASK", "NAME")] = None
  model: Annotated[str | None, _arg("robot", "the task's", "NAME")] = None
  list: Annotated[Switch, _arg("list the tasks and stop", "off")] = False
  backend: Annotated[
    Literal["auto", "native", "warp"],
    _arg("engine; auto takes warp where CUDA is, else native; a choice never falls back", "auto"),
  ] = "auto"
  device: Annotated[str, _arg("auto, cpu, cuda or cuda:N", "auto", "NAME")] = "auto"
  cpu_threads: Annotated[
    int, _arg("simulation threads on native; 0: min(usable CPUs, 8, num_envs)", "0", "COUNT")
  ] = 0
  nconmax: Annotated[
    int | None, _arg("contacts per env that warp has room for", "measured", "COUNT")
  ] = None
  njmax: Annotated[
    int | None, _arg("constraint rows per env that warp has room for", "measured", "COUNT")
  ] = None
  seed: Annotated[int | None, _arg("random seed", "drawn and printed", "NUMBER")] = None
  dry_run: Annotated[Switch, _arg("print what would run and stop", "off")] = False
  headless: Annotated[Switch, _arg("open no window", "off")] = False
  checkpoint: Annotated[
    Path | None,
    _arg(
      "a model_N.pt, a run's folder or a task's folder", "play: the newest; train: none", "PATH"
    ),
  ] = None
  log_dir: Annotated[Path, _arg("folder of all runs", "./logs", "FOLDER")] = Path("logs")


@dataclass(frozen=True, kw_only=True)
class TrainFlags(CommonFlags):
  """Train a policy. It starts from scratch unless --resume or --checkpoint is given.

  A flag that is not given is looked up as MJRL_<NAME> in the shell, .env.local and .env
  (TASK, NUM_ENVS, BACKEND, DEVICE, CPU_THREADS, LOG_DIR, SEED, TENSORBOARD, TB_PORT).
  """

  num_envs: Annotated[
    int | None, _arg("environments simulated at once", "the task's for the backend", "COUNT")
  ] = None
  max_iterations: Annotated[
    int | None,
    _arg("iterations of this run; N more when resuming", "the task's", "COUNT"),
  ] = None
  resume: Annotated[Switch, _arg("go on from this task's newest checkpoint", "off")] = False
  tensorboard: Annotated[bool, _arg("serve TensorBoard on 127.0.0.1", "on")] = True
  tb_port: Annotated[int, _arg("TensorBoard's port, or the next free one", "6006", "PORT")] = 6006
  logger: Annotated[
    Literal["tensorboard", "wandb"],
    _arg("wandb sends the scalars to Weights & Biases too; needs the extra wandb", "tensorboard"),
  ] = "tensorboard"
  eval_every: Annotated[
    int | None, _arg("iterations between evaluations of the policy", "no evaluation", "COUNT")
  ] = None
  num_eval_episodes: Annotated[int, _arg("complete episodes of an evaluation", "64", "COUNT")] = 64
  best_metric: Annotated[
    str, _arg("scalar of the evaluation that model_best.pt is best by", "eval/reward", "NAME")
  ] = "eval/reward"
  keep_last: Annotated[
    int | None, _arg("newest checkpoints to keep, older ones are removed", "all", "COUNT")
  ] = None
  profile: Annotated[Switch, _arg("time the parts of the run and print a table", "off")] = False
  profile_output: Annotated[
    Path | None, _arg("the table as JSON; needs --profile", "none", "FILE")
  ] = None


@dataclass(frozen=True, kw_only=True)
class PlayFlags(CommonFlags):
  """Replay a policy: this task's newest checkpoint unless --checkpoint is given.

  A flag that is not given is looked up as MJRL_<NAME> in the shell, .env.local and .env
  (TASK, PLAY_NUM_ENVS, BACKEND, DEVICE, CPU_THREADS, LOG_DIR, SEED).
  """

  num_envs: Annotated[
    int | None, _arg("environments simulated at once", "1, with --measure 64", "COUNT")
  ] = None
  agent: Annotated[
    Literal["trained", "zero", "random"],
    _arg("who acts: the checkpoint, zero actions, or random ones", "trained"),
  ] = "trained"
  steps: Annotated[
    int | None,
    _arg(
      "control steps to play",
      "until Ctrl-C or the window closes; measuring, 20 s of each command",
      "COUNT",
    ),
  ] = None
  speed: Annotated[
    float | None,
    _arg("times real time; 0 = as fast as possible", "1 with a window, 0 headless", "FACTOR"),
  ] = None
  command: Annotated[
    tuple[float, float, float] | None,
    _arg("fixed command: m/s forward, m/s left, rad/s of yaw", "drawn as in training", "VX VY WZ"),
  ] = None
  obs_noise: Annotated[bool, _arg("observation noise as in training", "on")] = True
  physics_hz: Annotated[
    float | None,
    _arg("physics rate, Hz, a multiple of the control rate", "as in training", "HZ"),
  ] = None
  measure: Annotated[Switch, _arg("record and write measure/ beside the checkpoint", "off")] = False


def parse(flags: type[Flags], prog: str, argv: Sequence[str]) -> Flags:
  """The flags on the command line. Prints help or the mistake and exits (0 or 2)."""
  return tyro.cli(flags, prog=prog, args=list(argv), use_underscores=True)


def check(flags: CommonFlags, sources: Mapping[str, str]) -> None:
  """Refuse numbers that no run could use.

  Args:
    flags: the flags, settings applied.
    sources: flag to where its value came from; see apply_settings.

  Raises:
    ValueError: names the flag or setting, the value and the rule.
  """
  for field in fields(flags):
    value = getattr(flags, field.name)
    if field.name in LIMITS and value is not None:
      low, high = LIMITS[field.name]
      if not low <= value <= high:
        source = sources.get(field.name, "given")
        name = f"--{field.name}" if source == "given" else source
        upper = "" if high == math.inf else f" and at most {high}"
        raise ValueError(f"{name} is {value}; it must be at least {low}{upper}")
  command = getattr(flags, "command", None)
  if command is not None and not all(map(math.isfinite, command)):
    raise ValueError(f"--command is {command}; it must be three finite numbers")
