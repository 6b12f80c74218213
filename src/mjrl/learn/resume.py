"""`resume_<N>.pt`: the world at the end of iteration N, to go on from `model_<N>.pt` to the bit.

Without it a resumed run starts its episodes anew; with it, on native:cpu, it ends with the same
tensors as a run that was never stopped.  It is written before its checkpoint, and older ones are
removed after it, so that whenever a run is killed the newest checkpoint has its world.
"""

from pathlib import Path
from typing import Any

from mjrl.learn import checkpoints


def path_for(folder: Path, iteration: int) -> Path:
  """The file that belongs to the checkpoint of an iteration in a run's folder."""
  return folder / f"resume_{iteration}.pt"


def write(folder: Path, iteration: int, backend: str, world: dict[str, Any]) -> None:
  """Write the world as it was at the end of an iteration, whole or not at all."""
  saved = {"iteration": iteration, "backend": backend, "world": world}
  checkpoints.write(path_for(folder, iteration), saved)


def remove_others(folder: Path, iteration: int) -> None:
  """Remove the worlds of other iterations: they are large, and only the newest is gone on from."""
  for path in folder.glob("resume_*.pt"):
    if path != path_for(folder, iteration):
      path.unlink(missing_ok=True)


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
  path = path_for(checkpoint.parent, iteration)
  if not path.is_file():
    return None, f"there is no {path.name} beside the checkpoint"
  try:
    saved = checkpoints.unpickle(path)
  except (OSError, ValueError) as error:
    return None, str(error)
  if saved.get("iteration") != iteration:
    return None, f"{path.name} is of iteration {saved.get('iteration')}, not of its name's"
  if saved["backend"] != backend:
    return None, f"{path.name} is of {saved['backend']}, this run of {backend}"
  had = saved["world"]["env"]["buffers"]["action"].shape[0]
  if had != num_envs:
    return None, f"{path.name} has {had} envs, this run {num_envs}"
  if any(saved["world"]["memory"].values()) != memory:
    had, has = ("none", "one") if memory else ("one", "none")
    return None, f"{path.name} has {had} of the memory that networks carry along, this run {has}"
  return saved["world"], ""
