"""`resume.pt`: the state of the world beside the newest checkpoint, to go on from to the bit.

Without it a resumed run starts its episodes anew; with it, on native:cpu, it ends with the same
tensors as a run that was never stopped.
"""

import io
from pathlib import Path
from typing import Any

import torch

from mjrl.learn.atomic import write_bytes
from mjrl.learn.checkpoints import unpickle

NAME = "resume.pt"


def write(folder: Path, iteration: int, backend: str, world: dict[str, Any]) -> None:
  """Write the world as it was at the end of an iteration, whole or not at all."""
  buffer = io.BytesIO()
  torch.save({"iteration": iteration, "backend": backend, "world": world}, buffer)
  write_bytes(folder / NAME, buffer.getvalue())


def read(
  checkpoint: Path, iteration: int, backend: str, num_envs: int
) -> tuple[dict[str, Any] | None, str]:
  """The world that belongs to a checkpoint, or None and why there is none to go on with."""
  path = checkpoint.parent / NAME
  if not path.is_file():
    return None, f"there is no {NAME} beside the checkpoint"
  try:
    saved = unpickle(path)
  except ValueError as error:
    return None, str(error)
  if saved.get("iteration") != iteration:
    return None, f"{NAME} is of iteration {saved.get('iteration')}, the checkpoint of {iteration}"
  if saved["backend"] != backend:
    return None, f"{NAME} is of {saved['backend']}, this run of {backend}"
  had = saved["world"]["env"]["buffers"]["action"].shape[0]
  if had != num_envs:
    return None, f"{NAME} has {had} envs, this run {num_envs}"
  return saved["world"], ""
