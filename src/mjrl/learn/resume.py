"""`resume.pt`: the state of the world beside the newest checkpoint, to go on from to the bit.

Without it a resumed run starts its episodes anew; with it, on native:cpu, it ends with the same
tensors as a run that was never stopped.
"""

from pathlib import Path
from typing import Any

from mjrl.learn import checkpoints

NAME = "resume.pt"


def write(folder: Path, iteration: int, backend: str, world: dict[str, Any]) -> None:
  """Write the world as it was at the end of an iteration, whole or not at all."""
  saved = {"iteration": iteration, "backend": backend, "world": world}
  checkpoints.write(folder / NAME, saved)


def read(
  checkpoint: Path, iteration: int, backend: str, num_envs: int, memory: bool = False
) -> tuple[dict[str, Any] | None, str]:
  """The world that belongs to a checkpoint, or None and why there is none to go on with.

  Args:
    checkpoint: beside which it lies.
    iteration: of the checkpoint.
    backend: of this run.
    num_envs: of this run.
    memory: whether the networks have one.
  """
  path = checkpoint.parent / NAME
  if not path.is_file():
    return None, f"there is no {NAME} beside the checkpoint"
  try:
    saved = checkpoints.unpickle(path)
  except ValueError as error:
    return None, str(error)
  if saved.get("iteration") != iteration:
    return None, f"{NAME} is of iteration {saved.get('iteration')}, the checkpoint of {iteration}"
  if saved["backend"] != backend:
    return None, f"{NAME} is of {saved['backend']}, this run of {backend}"
  had = saved["world"]["env"]["buffers"]["action"].shape[0]
  if had != num_envs:
    return None, f"{NAME} has {had} envs, this run {num_envs}"
  if any(saved["world"]["memory"].values()) != memory:
    had, has = ("none", "one") if memory else ("one", "none")
    return None, f"{NAME} has {had} of the memory that networks carry along, this run {has}"
  return saved["world"], ""
