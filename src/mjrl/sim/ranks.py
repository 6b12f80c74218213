"""Which process of a distributed run this is."""

from collections.abc import Mapping
from dataclasses import dataclass

_NEEDED = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Ranks:
  """The numbers that torchrun gives each process.

  rank              among all processes; the first leads: it prints and writes
  local_rank        among those of this node, and the index of its GPU
  world_size        processes in all
  local_world_size  processes of this node, which share its CPUs
  """

  rank: int = 0
  local_rank: int = 0
  world_size: int = 1
  local_world_size: int = 1

  @property
  def alone(self) -> bool:
    """Whether there is one process only."""
    return self.world_size == 1

  @property
  def first(self) -> bool:
    """Whether this is the process that prints and writes."""
    return self.rank == 0

  @classmethod
  def from_environment(cls, environ: Mapping[str, str]) -> "Ranks":
    """What torchrun has put into the environment; alone where it has not, or started one process.

    Raises:
      ValueError: a variable is missing or is no number that it could be.
    """
    world_size = _number(environ, "WORLD_SIZE", 1, low=1)
    if world_size == 1:
      return ALONE
    missing = [name for name in _NEEDED if name not in environ]
    if missing:
      raise ValueError(
        f"WORLD_SIZE is {world_size}, but {', '.join(missing)} is not set: start a distributed run "
        "with torchrun, or unset WORLD_SIZE"
      )
    local_rank = _number(environ, "LOCAL_RANK", 0, low=0)
    return cls(
      rank=_number(environ, "RANK", 0, low=0, below=world_size),
      local_rank=local_rank,
      world_size=world_size,
      local_world_size=_number(environ, "LOCAL_WORLD_SIZE", local_rank + 1, low=local_rank + 1),
    )


ALONE = Ranks()


def _number(
  environ: Mapping[str, str], name: str, default: int, *, low: int, below: int | None = None
) -> int:
  text = environ.get(name, str(default))
  if not text.isdecimal() or int(text) < low or (below is not None and int(text) >= below):
    upper = "" if below is None else f" and below {below}"
    raise ValueError(f"{name} is {text!r}; it must be a whole number from {low} on{upper}")
  return int(text)
