"""Proof on the machine at hand: runs repeat to the bit, on any threads, also stopped and resumed.

The trainings are those of `mjrl.learn.train`, of a task's own native recipe, made short.
"""

import math
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from mjrl.envs.task import Task
from mjrl.learn import checkpoints, resume
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved

NUM_ENVS = 32
_ROLLOUT_STEPS, _ITERATIONS, _STOP_AFTER = 24, 10, 5

_CONSTANT = ("task", "recipe", "backend", "set")  # what a checkpoint says about its run


@dataclass(frozen=True, kw_only=True)
class Check:
  """How one run compares with the first.

  name       what was different about it
  same       part of a checkpoint to how many of its tensors and numbers are equal to the bit
  different  path of each that is not to its largest difference; None where there is no number
  """

  name: str
  same: dict[str, int]
  different: dict[str, float | None]

  @property
  def equal(self) -> bool:
    """Whether nothing differs."""
    return not self.different


def sizes() -> str:
  """What the trainings are cut down to, in words."""
  return f"{NUM_ENVS} envs, {_ITERATIONS} iterations of {_ROLLOUT_STEPS} steps"


def verify(*, task: Task, resolved: Resolved, seed: int, stop: StopAsked) -> Iterator[Check]:
  """Train again and again, and compare with the first time; ends early where a stop is asked for.

  Args:
    task: whose native recipe is trained, with fewer envs and iterations.
    resolved: engine and threads; its env count is not used.
    seed: of every run.
    stop: asked all the time.
  """
  recipe = replace(task.recipes["native"], num_envs=NUM_ENVS, rollout_steps=_ROLLOUT_STEPS)
  task = replace(task, recipes={"native": recipe})
  many = replace(resolved, num_envs=NUM_ENVS)
  one = replace(many, threads=1)
  # One question before the run, one an iteration, one a step: false until half a rollout is done.
  questions = 1 + _STOP_AFTER * (1 + _ROLLOUT_STEPS) + 1 + _ROLLOUT_STEPS // 2

  with TemporaryDirectory(prefix="mjrl-verify-") as root:

    def run(
      name: str,
      iterations: int = _ITERATIONS,
      resolved: Resolved = many,
      checkpoint: Path | None = None,
      stop: StopAsked = stop,
    ) -> Path | None:
      """The last checkpoint of a training; None if the user stopped it."""
      said = StringIO()
      with redirect_stdout(said):
        code = train(
          task=task,
          resolved=resolved,
          seed=seed,
          max_iterations=iterations,
          checkpoint=checkpoint,
          log_dir=Path(root) / name,
          command="python -m mjrl verify",
          options=Options(),
          stop=stop,
        )
      if code == 1:
        raise OSError(f"a training of the verification failed:\n{said.getvalue()[-1000:]}")
      if code:
        return None
      return checkpoints.find(Path(root) / name, task.robot.name, task.name, None)

    def stopped_and_resumed(name: str, stopped: Path | None) -> Path | None:
      if stopped is None:
        return None
      left = _ITERATIONS - 1 - checkpoints.iteration_of(stopped)
      return run(f"{name}, on", left, checkpoint=stopped)

    path = run("first")
    first = None if path is None else _content(path)
    later = {
      "the same seed again": lambda: run("again"),
      f"1 thread against {many.threads}": lambda: run("one thread", resolved=one),
      f"stopped after {_STOP_AFTER} iterations, and resumed": lambda: stopped_and_resumed(
        "between", run("between", _STOP_AFTER)
      ),
      f"stopped in the middle of iteration {_STOP_AFTER + 1}, and resumed": lambda: (
        stopped_and_resumed("within", run("within", stop=_StopAfter(questions, stop)))
      ),
    }
    for name, again in later.items():
      path = None if first is None else again()
      if first is None or path is None:
        return
      yield compare(name, first, _content(path))


class _StopAfter(StopAsked):
  """Asks for a stop after so many questions, or when another one does."""

  def __init__(self, questions: int, other: StopAsked) -> None:
    super().__init__()
    self._left, self._other = questions, other

  def __bool__(self) -> bool:
    self._left -= 1
    self.signal = self._other.signal
    return self._left < 0 or bool(self._other)


def compare(name: str, first: dict[str, Any], second: dict[str, Any]) -> Check:
  """Every tensor and number of two checkpoints, by the bit.

  Args:
    name: of the check.
    first: a dict of dicts, lists, tensors and plain values.
    second: likewise.
  """
  one, other = _leaves(first), _leaves(second)
  same: dict[str, int] = {}
  different: dict[str, float | None] = {}
  for path in dict.fromkeys([*one, *other]):
    if path in one and path in other and _equal(one[path], other[path]):
      part = path.partition("/")[0]
      same[part] = same.get(part, 0) + 1
    else:
      different[path] = _difference(one.get(path), other.get(path))
  return Check(name=name, same=same, different=different)


def _content(path: Path) -> dict[str, Any]:
  """What a run ended with: its checkpoint and its world, without what says which run it was."""
  saved = checkpoints.read(path)
  world = checkpoints.unpickle(resume.path_for(path.parent, saved["iteration"]))["world"]
  parts = {key: value for key, value in saved.items() if key not in _CONSTANT}
  return {key.removesuffix("_state_dict"): value for key, value in parts.items()} | {"world": world}


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
  """Everything that is no dict and no list, by its path."""
  if isinstance(value, list | tuple):
    value = dict(enumerate(value))
  if not isinstance(value, dict):
    return {path: value}
  items = ((f"{path}/{key}" if path else str(key), item) for key, item in value.items())
  return {k: v for here, item in items for k, v in _leaves(item, here).items()}


def _equal(one: Any, other: Any) -> bool:
  if type(one) is not type(other):
    return False
  if not torch.is_tensor(one):
    return bool(one == other or (one != one and other != other))  # NaN is equal to NaN
  if one.dtype != other.dtype or one.shape != other.shape:
    return False
  bits = [value.contiguous().reshape(-1).view(torch.uint8) for value in (one, other)]
  return torch.equal(*bits)  # of the values themselves, no NaN is equal and 0 is equal to -0


def _difference(one: Any, other: Any) -> float | None:
  if isinstance(one, int | float) and isinstance(other, int | float):
    one, other = torch.tensor(float(one)), torch.tensor(float(other))
  if not (torch.is_tensor(one) and torch.is_tensor(other)) or one.shape != other.shape:
    return None
  largest = float((one.double() - other.double()).abs().max())
  return largest if math.isfinite(largest) else None
