"""What train and play plan alike, before anything is built; starting torch; errors in one line."""

import errno
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from mjrl import tasks
from mjrl.cli.flags import CommonFlags
from mjrl.envs.scenes import physics_of
from mjrl.names import nearest
from mjrl.sim.ranks import ALONE, Ranks
from mjrl.sim.resolve import BackendUnavailable, Resolved, resolve
from mjrl.view.choice import Choice, check_web
from mjrl.view.display import window_obstacle

# For libraries that read them when they are loaded. OpenMP threads that spin while they wait take
# the CPU from the physics; GitPython, which rsl_rl imports, fails where there is no git.
ENVIRONMENT = {
  "OMP_WAIT_POLICY": "PASSIVE",
  "KMP_BLOCKTIME": "0",
  "GIT_PYTHON_REFRESH": "quiet",
}


_CONSOLE_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, kw_only=True)
class SharedPlan:
  """What train and play both need to know.

  Attributes:
    task: the task's name.
    entry: its entry in the registry.
    resolved: engine, device and counts.
    seed: given, or drawn.
    log_dir: absolute folder of all runs.
    viewer: what to look with; none, because asked or because none can open.
    viewer_said: the same in words.
  """

  task: str
  entry: tasks.Entry
  resolved: Resolved
  seed: int
  log_dir: Path
  viewer: Choice
  viewer_said: str


def plan_shared(
  flags: CommonFlags,
  sources: Mapping[str, str],
  num_envs: int | None,
  default_num_envs: Mapping[str, int] | None,
  ranks: Ranks = ALONE,
) -> SharedPlan:
  """Check the shared flags against the registry and this machine.

  Args:
    flags: the flags, settings applied.
    sources: flag to where its value came from.
    num_envs: --num_envs.
    default_num_envs: for each backend; None takes the task's.
    ranks: which process of a distributed run this is.

  Raises:
    ValueError: an unknown task or robot, or a value that no run could use.
    BackendUnavailable: see mjrl.sim.resolve.
  """
  task, entry = task_entry(flags.task, flags.model, sources)
  resolved = resolve(
    backend=flags.backend,
    device=flags.device,
    num_envs=num_envs,
    default_num_envs=entry.num_envs if default_num_envs is None else default_num_envs,
    cpu_threads=flags.cpu_threads,
    ranks=ranks,
    nconmax=flags.nconmax,
    njmax=flags.njmax,
  )
  viewer, viewer_said = _viewer(flags, sources)
  return SharedPlan(
    task=task,
    entry=entry,
    resolved=resolved,
    seed=random.SystemRandom().randrange(2**31) if flags.seed is None else flags.seed,
    log_dir=flags.log_dir.expanduser().absolute(),
    viewer=viewer,
    viewer_said=viewer_said,
  )


def task_entry(
  task: str | None, model: str | None, sources: Mapping[str, str]
) -> tuple[str, tasks.Entry]:
  """The task's name and its entry in the registry.

  Args:
    task: --task.
    model: --model.
    sources: flag to where its value came from.

  Raises:
    ValueError: no task, an unknown one, or a robot that it is not made for.
  """
  if task is None:
    raise ValueError(
      f"no task: give --task NAME or set MJRL_TASK; valid names: {', '.join(tasks.TASKS)}"
    )
  entry = _entry(task, sources.get("task", "given"))
  _check_robot(model, task, entry.robot)
  return task, entry


def said_scene(scene: str, robot: str) -> str:
  """A scene, and how it differs from the flat ground of training; see `physics_of`."""
  physics = physics_of(scene, robot)
  return f"{scene}: {physics}" if physics else scene


def start_torch(num_threads: int) -> None:
  """Load torch with threads that do not spin, and not more of them than resolved."""
  for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)
  import torch

  torch.set_num_threads(num_threads)


@contextmanager
def said_once(ranks: Ranks) -> Iterator[None]:
  """What every process of a distributed run prints, the first one prints alone; errors all do."""
  if ranks.first:
    yield
    return
  with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
    yield


def without_traceback(work: Callable[[], int]) -> int:
  """Run a command; a user's mistake ends in one line.

  Returns:
    The work's exit code; 2 for a value that cannot be used, 1 for a backend or a file that is not
    there or not to be had, 130 for Ctrl-C. Every other error keeps its traceback: it is a bug.
  """
  try:
    return work()
  except BackendUnavailable as error:
    return _fail(error, 1)
  except OSError as error:
    if error.errno in _CONSOLE_IS_FULL and error.filename is None:
      # What is still to be written goes nowhere: Python would fail over it once more when it ends.
      os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
      return _fail(OSError(f"the output cannot be written: {error.strerror}"), 1)
    if error.filename is None and not _said_by_mjrl(error):
      raise
    return _fail(error, 1)
  except ValueError as error:
    if not _said_by_mjrl(error):
      raise
    return _fail(error, 2)
  except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    return 130


def _fail(error: Exception, code: int) -> int:
  sys.stdout.flush()  # what was printed before the error stands before it
  print(f"error: {error}", file=sys.stderr)
  return code


def _said_by_mjrl(error: Exception) -> bool:
  """Whether a `raise` of ours made it; an error that Python found in our code is a bug."""
  frames = traceback.extract_tb(error.__traceback__)
  inside = frames and str(Path(__file__).parents[1]) in frames[-1].filename
  return bool(inside and (frames[-1].line or "").startswith("raise"))


def _viewer(flags: CommonFlags, sources: Mapping[str, str]) -> tuple[Choice, str]:
  """The viewer that was asked for and can be had, and the same in words.

  Raises:
    ValueError: flags that contradict each other or do nothing, or a page that cannot be served.
  """
  kind, headless = flags.viewer, flags.headless
  if headless and "viewer" in sources and kind != "none":
    if sources["viewer"] == sources["headless"]:
      raise ValueError(f"--headless and --viewer {kind} contradict each other: leave one out")
    headless = sources["headless"] == "given"  # the other one is a file's
  if headless:
    kind = "none"
  for name in ("viewer_host", "viewer_port"):
    if name in sources and kind != "web":
      raise ValueError(f"--{name} has no effect without --viewer web")
  if kind == "none":
    return Choice(), "none (--headless)" if headless else "none (--viewer none)"
  if kind == "web":
    check_web(flags.viewer_host, flags.viewer_port)
    said = f"web, on {flags.viewer_host}:{flags.viewer_port} or the next free port"
    return Choice(kind="web", host=flags.viewer_host, port=flags.viewer_port), said
  if obstacle := window_obstacle(sys.platform, os.environ):
    said = f"none: {obstacle}; running headless; --viewer web shows it in a browser"
    return Choice(), said
  return Choice(kind="window"), "window"


def _entry(task: str, source: str) -> tasks.Entry:
  try:
    return tasks.entry(task)
  except ValueError as error:
    raise ValueError(str(error) if source == "given" else f"{source}: {error}") from None


def _check_robot(model: str | None, task: str, robot: str) -> None:
  if model is None or model == robot:
    return
  from mjrl.robots import ROBOTS

  if model not in ROBOTS:
    raise ValueError(f"there is no robot {model!r}; {nearest(model, ROBOTS)}")
  raise ValueError(f"task {task} is made for {robot}, not for {model}: leave --model out")
