"""The flags of the commands. Parsed by tyro; `-` and `_` are the same in a flag's name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro

from mjrl.envs.scenes import DEFAULT, SCENES
from mjrl.view.shot import CAMERA, CAMERAS, FPS, SECONDS, SIZE

Flags = TypeVar("Flags")

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
  "viewer_port": (1, 65535),
  "eval_every": (1, math.inf),
  "num_eval_episodes": (1, math.inf),
  "keep_last": (1, math.inf),
  "limit": (1, math.inf),
  "ppo_minibatch_size": (1, math.inf),
  "steps": (1, math.inf),
  "speed": (0, math.inf),
  "physics_hz": (1, math.inf),
  "video_every": (1, math.inf),
}

# Flags that do nothing unless another one is given: which one, and its value when it is not.
NEEDS = {
  "num_eval_episodes": ("eval_every", None),
  "best_metric": ("eval_every", None),
  "profile_output": ("profile", False),
  "compare_backend": ("measure", False),
  "video_size": ("video", None),
  "video_fps": ("video", None),
  "video_camera": ("video", None),
}


def _arg(text: str, default: str, metavar: str | None = None) -> Any:
  """A flag's help line, with its default in words."""
  return tyro.conf.arg(help=text, help_behavior_hint=f"(default: {default})", metavar=metavar)


_RECIPE = "the recipe's"


def _ppo(name: str, text: str, metavar: str | None = None, default: str = _RECIPE) -> Any:
  """As `_arg`, of a flag that is typed `--ppo.NAME`."""
  hint = f"(default: {default})"
  return tyro.conf.arg(name=f"ppo.{name}", help=text, help_behavior_hint=hint, metavar=metavar)


@dataclass(frozen=True, kw_only=True)
class CommonFlags:
  """What train and play share."""

  task: Annotated[str | None, _arg("task to run; --list names them", "MJRL_TASK", "NAME")] = None
  config: Annotated[
    Path | None,
    _arg("YAML or JSON with flags and set:, to train events: and sweep: too", "none", "FILE"),
  ] = None
  set: Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    _arg(
      "another number for the task or its recipe, such as rewards.foot_slip.weight=-0.2 or "
      "recipe.learning_rate=1e-3; may be given several times",
      "the task's own",
      "PATH=VALUE",
    ),
  ] = ()
  terrain: Annotated[
    Literal["flat", "rough"] | None,
    _arg(
      "ground; rough is a generated grid of slopes, stairs, blocks and mounds, see docs/terrain.md",
      "flat; the checkpoint's, if there is one",
      "{flat,rough}",
    ),
  ] = None
  model: Annotated[str | None, _arg("robot", "the task's", "NAME")] = None
  list: Annotated[Switch, _arg("list the tasks and stop", "off")] = False
  backend: Annotated[
    Literal["auto", "native", "warp"],
    _arg("engine; auto takes warp where CUDA is, else native; a choice never falls back", "auto"),
  ] = "auto"
  device: Annotated[str, _arg("auto, cpu, cuda or cuda:N", "auto", "NAME")] = "auto"
  cpu_threads: Annotated[
    int,
    _arg(
      "simulation threads on native; 0: min(usable CPUs of the process, 8, num_envs)", "0", "COUNT"
    ),
  ] = 0
  nconmax: Annotated[
    int | None, _arg("contacts per env that warp has room for", "measured", "COUNT")
  ] = None
  njmax: Annotated[
    int | None, _arg("constraint rows per env that warp has room for", "measured", "COUNT")
  ] = None
  seed: Annotated[int | None, _arg("random seed", "drawn and printed", "NUMBER")] = None
  scene: Annotated[
    str | None,
    _arg(
      f"look and ground: {', '.join(SCENES)}; play: also a scene package, a .map or a folder",
      f"that of the checkpoint, else {DEFAULT}",
      "NAME",
    ),
  ] = None
  dry_run: Annotated[Switch, _arg("print all that would run, and stop", "off")] = False
  viewer: Annotated[
    Literal["window", "web", "none"],
    _arg(
      "look, and in a replay drive by hand: in a window, or in a browser; web needs the extra web",
      "window where there is a display",
    ),
  ] = "window"
  viewer_host: Annotated[
    str, _arg("address that --viewer web serves on; 0.0.0.0: every one", "127.0.0.1", "HOST")
  ] = "127.0.0.1"
  viewer_port: Annotated[
    int, _arg("port of --viewer web, or the next free one", "8080", "PORT")
  ] = 8080
  headless: Annotated[Switch, _arg("the same as --viewer none", "off")] = False
  checkpoint: Annotated[
    Path | None,
    _arg(
      "a model's file, a run's folder or a task's folder", "play: the newest; train: none", "PATH"
    ),
  ] = None
  log_dir: Annotated[Path, _arg("folder of all runs", "./logs", "FOLDER")] = Path("logs")


@dataclass(frozen=True, kw_only=True)
class TrainFlags(CommonFlags):
  """Train a policy. It starts from scratch unless --resume or --checkpoint is given.

  A flag that is not given is looked up in --config, then as MJRL_<NAME> in the shell, .env.local
  and .env (TASK, NUM_ENVS, BACKEND, DEVICE, CPU_THREADS, LOG_DIR, SEED, TENSORBOARD, TB_PORT).
  """

  num_envs: Annotated[
    int | None,
    _arg(
      "environments simulated at once, by each process of a run under torchrun",
      "the task's for the backend",
      "COUNT",
    ),
  ] = None
  max_iterations: Annotated[
    int | None,
    _arg("iterations of this run; N more when resuming", "the task's", "COUNT"),
  ] = None
  recurrent: Annotated[
    Switch,
    _arg("give policy and critic a memory, a small LSTM; slower, see docs/training.md", "off"),
  ] = False
  resume: Annotated[Switch, _arg("go on from this task's newest checkpoint", "off")] = False
  init_from: Annotated[
    Path | None,
    _arg(
      "a model's file, a run's or a task's folder: start from its networks alone, at iteration 0",
      "random networks",
      "PATH",
    ),
  ] = None
  std_dev: Annotated[
    float | None, _arg("standard deviation of the action to start with", _RECIPE, "NUMBER")
  ] = None
  learn_std: Annotated[bool, _arg("learn that standard deviation, or keep it", _RECIPE)] = True
  mirror: Annotated[
    bool, _arg("a loss on what the policy does in the mirror, or none", _RECIPE)
  ] = False
  mirror_coeff: Annotated[
    float | None, _arg("weight of the mirror loss", f"{_RECIPE}, with --mirror 1", "NUMBER")
  ] = None
  ppo_lr: Annotated[float | None, _ppo("lr", "learning rate, to start with", "NUMBER")] = None
  ppo_schedule: Annotated[
    str | None,
    _ppo(
      "schedule",
      "what becomes of it: adaptive, constant, linear, cosine, step, exponential",
      "NAME",
    ),
  ] = None
  ppo_optimizer: Annotated[
    str | None, _ppo("optimizer", "optimiser: adam, adamw, sgd, rmsprop", "NAME")
  ] = None
  ppo_gamma: Annotated[float | None, _ppo("gamma", "discount per control step", "NUMBER")] = None
  ppo_lam: Annotated[float | None, _ppo("lam", "lambda of the advantages", "NUMBER")] = None
  ppo_clip: Annotated[float | None, _ppo("clip", "clip of the policy's ratio", "NUMBER")] = None
  ppo_entropy_coeff: Annotated[
    float | None, _ppo("entropy_coeff", "weight of the entropy", "NUMBER")
  ] = None
  ppo_epochs: Annotated[int | None, _ppo("epochs", "passes over a rollout", "COUNT")] = None
  ppo_minibatch_size: Annotated[
    int | None, _ppo("minibatch_size", "samples of a mini-batch", "COUNT")
  ] = None
  ppo_max_grad_norm: Annotated[
    float | None, _ppo("max_grad_norm", "norm that gradients are cut to", "NUMBER")
  ] = None
  ppo_max_episode_s: Annotated[
    float | None, _ppo("max_episode_s", "length of an episode, s", "SECONDS", "the task's")
  ] = None
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
    str, _arg("scalar of the evaluation that is highest in model_best.pt", "eval/reward", "NAME")
  ] = "eval/reward"
  keep_last: Annotated[
    int | None, _arg("newest checkpoints to keep, older ones are removed", "all", "COUNT")
  ] = None
  video_every: Annotated[
    int | None,
    _arg(
      f"iterations between films of {SECONDS:g} s of the policy: in videos/ of the run, TensorBoard"
      " and Weights & Biases",
      "no films",
      "COUNT",
    ),
  ] = None
  profile: Annotated[Switch, _arg("time the parts of the run and print a table", "off")] = False
  profile_output: Annotated[
    Path | None, _arg("the table as JSON; needs --profile", "none", "FILE")
  ] = None


@dataclass(frozen=True, kw_only=True)
class PlayFlags(CommonFlags):
  """Replay a policy: this task's newest checkpoint unless --checkpoint is given.

  A flag that is not given is looked up in --config, then as MJRL_<NAME> in the shell, .env.local
  and .env (TASK, PLAY_NUM_ENVS, BACKEND, DEVICE, CPU_THREADS, LOG_DIR, SEED).
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
    _arg("times real time; 0 = as fast as possible", "1 with a viewer, 0 without", "FACTOR"),
  ] = None
  command: Annotated[
    tuple[float, float, float] | None,
    _arg("fixed command: m/s forward, m/s left, rad/s of yaw", "drawn as in training", "VX VY WZ"),
  ] = None
  posture: Annotated[
    tuple[float, float, float, float] | None,
    _arg(
      "fixed posture: rad of twist, pitch and roll, m of height; in tasks that ask for one",
      "drawn as in training",
      "TWIST PITCH ROLL HEIGHT",
    ),
  ] = None
  obs_noise: Annotated[bool, _arg("observation noise as in training", "on")] = True
  physics_hz: Annotated[
    float | None,
    _arg("physics rate, Hz, a multiple of the control rate", "as in training", "HZ"),
  ] = None
  terrain_level: Annotated[
    int | None,
    _arg("level of rough ground, 0 is the easiest", "envs are spread over all", "NUMBER"),
  ] = None
  terrain_kind: Annotated[
    str | None,
    _arg("slopes, stairs, blocks, mounds or flat alone, of rough ground", "all in turn", "NAME"),
  ] = None
  video: Annotated[
    Path | None,
    _arg(
      f"film the replay, to an .mp4; without --steps, {SECONDS:g} s of it; needs no display",
      "none",
      "FILE",
    ),
  ] = None
  video_size: Annotated[str, _arg("width and height, px, both even", SIZE, "WIDTHxHEIGHT")] = SIZE
  video_fps: Annotated[
    float, _arg("frames per second, at most the control rate", f"{FPS:g}", "HZ")
  ] = FPS
  video_camera: Annotated[
    str, _arg(f"where the film is seen from: {', '.join(CAMERAS)}", CAMERA, "NAME")
  ] = CAMERA
  measure: Annotated[Switch, _arg("record and write measure/ beside the checkpoint", "off")] = False
  compare_backend: Annotated[
    str | None,
    _arg(
      "measure on this engine too, with the same envs, commands and seed, and compare: native, "
      "warp, warp:cuda:N or, slow, warp:cpu; needs --measure",
      "none",
      "ENGINE",
    ),
  ] = None


@dataclass(frozen=True, kw_only=True)
class ExportFlags:
  """Export a policy for a robot: this task's newest checkpoint unless --checkpoint is given.

  Writes actor.onnx, layout.json, README.md, player.py, reference.json and the robot's MJCF, whole
  or, if a check fails, not at all. --check looks at an export instead.

  A flag that is not given is looked up as MJRL_<NAME> in the shell, .env.local and .env
  (TASK, LOG_DIR).
  """

  task: Annotated[
    str | None, _arg("task of the policy; --list names them", "MJRL_TASK", "NAME")
  ] = None
  model: Annotated[str | None, _arg("robot", "the task's", "NAME")] = None
  list: Annotated[Switch, _arg("list the tasks and stop", "off")] = False
  checkpoint: Annotated[
    Path | None, _arg("a model_N.pt, a run's folder or a task's folder", "the newest", "PATH")
  ] = None
  out: Annotated[
    Path | None,
    _arg(
      "folder to write; an export that is there is replaced, anything else is not",
      "exported/ beside the checkpoint",
      "FOLDER",
    ),
  ] = None
  format: Annotated[
    Literal["onnx", "torchscript"],
    _arg("torchscript writes actor.pt too; actor.onnx is always there", "onnx"),
  ] = "onnx"
  allow_unmeasurable: Annotated[
    Switch,
    _arg("export a policy that reads what the robot cannot measure, for simulation alone", "off"),
  ] = False
  check: Annotated[
    Path | None, _arg("check this export against its reference.json and stop", "none", "FOLDER")
  ] = None
  recorded: Annotated[
    Path | None,
    _arg("with --check: outputs of another implementation, see docs/exporting.md", "none", "FILE"),
  ] = None
  dry_run: Annotated[Switch, _arg("print what would be exported and stop", "off")] = False
  log_dir: Annotated[Path, _arg("folder of all runs", "./logs", "FOLDER")] = Path("logs")


@dataclass(frozen=True, kw_only=True)
class VerifyFlags:
  """Prove on this machine that runs of a task repeat, and resume, to the bit.

  Trains the task's native recipe, with few envs and iterations, several times in a temporary
  folder, and compares the checkpoints. Exit code 0 if all are equal, 1 if not.
  """

  task: Annotated[str, _arg("task to train", "jumper.tripod", "NAME")] = "jumper.tripod"
  seed: Annotated[int, _arg("random seed", "0", "NUMBER")] = 0
  json: Annotated[Path | None, _arg("write the comparison there too", "none", "FILE")] = None


@dataclass(frozen=True, kw_only=True)
class ReportFlags:
  """What can be relied on of a run, on the console and as report.html in its folder.

  Works on runs that were stopped or killed, too. A number that was not measured is shown as "-".
  --log_dir may be set as MJRL_LOG_DIR.
  """

  run: Annotated[
    tyro.conf.Positional[str | None],
    _arg(
      "a run's folder, its name or how that begins, or a task's name, of which the newest is taken",
      "the newest of all",
      "RUN",
    ),
  ] = None
  page: Annotated[bool, _arg("write report.html into the run's folder", "on")] = True
  log_dir: Annotated[Path, _arg("folder of all runs", "./logs", "FOLDER")] = Path("logs")


@dataclass(frozen=True, kw_only=True)
class RunsFlags:
  """List runs with what came of them, the newest first.

  --log_dir may be set as MJRL_LOG_DIR.
  """

  task: Annotated[str | None, _arg("only those of this task", "all", "NAME")] = None
  since: Annotated[
    str | None,
    _arg("only those begun since then: 2026-01-31, or 12h, 3d, 2w ago", "ever", "WHEN"),
  ] = None
  state: Annotated[
    Literal["done", "stopped", "failed", "unfinished"] | None,
    _arg("only those that ended so; unfinished: at work, or killed", "all"),
  ] = None
  limit: Annotated[int, _arg("how many", "20", "COUNT")] = 20
  log_dir: Annotated[Path, _arg("folder of all runs", "./logs", "FOLDER")] = Path("logs")


@dataclass(frozen=True, kw_only=True)
class DiffFlags:
  """What differs between two runs, in configuration and in outcome.

  --log_dir may be set as MJRL_LOG_DIR.
  """

  one: Annotated[tyro.conf.Positional[str], _arg("a run, as report takes it", "needed", "A")]
  other: Annotated[tyro.conf.Positional[str], _arg("another", "needed", "B")]
  log_dir: Annotated[Path, _arg("folder of all runs", "./logs", "FOLDER")] = Path("logs")


def parse(flags: type[Flags], prog: str, argv: Sequence[str]) -> Flags:
  """The flags on the command line. Prints help or the mistake and exits (0 or 2)."""
  return tyro.cli(flags, prog=prog, args=list(argv), use_underscores=True)


def check(flags: Any, sources: Mapping[str, str]) -> None:
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
  for name, (needed, neutral) in NEEDS.items():
    if name in sources and getattr(flags, needed) == neutral:
      source = sources[name]
      said = f"--{name}" if source == "given" else source
      raise ValueError(f"{said} has no effect without --{needed}")
  output = getattr(flags, "profile_output", None)
  if output is not None and output.is_dir():
    raise ValueError(f"--profile_output {output} is a folder: name a file")
  for name, count in (("command", "three"), ("posture", "four")):
    given = getattr(flags, name, None)
    if given is not None and not all(map(math.isfinite, given)):
      raise ValueError(f"--{name} is {given}; it must be {count} finite numbers")
