"""The parts of rsl_rl that mjrl uses.  Import them from here, and not from rsl_rl itself."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _as_if_absent(package: str) -> Iterator[None]:
  """Have imports of a package fail that nobody has imported yet."""
  if package in sys.modules:
    yield
    return
  sys.modules[package] = None  # type: ignore[assignment]
  try:
    yield
  finally:
    del sys.modules[package]


# rsl_rl imports wandb wherever it is installed: a second, and hooks into the end of the process.
with _as_if_absent("wandb"):
  from rsl_rl.algorithms import PPO
  from rsl_rl.env import VecEnv
  from rsl_rl.models import MLPModel, RNNModel
  from rsl_rl.modules import EmpiricalNormalization
  from rsl_rl.runners import OnPolicyRunner
  from rsl_rl.utils import resolve_class

__all__ = [
  "PPO",
  "EmpiricalNormalization",
  "MLPModel",
  "OnPolicyRunner",
  "RNNModel",
  "VecEnv",
  "resolve_class",
]
