"""One seed, several streams of random numbers that have nothing to do with one another."""

import numpy as np


def streams(seed: int, count: int, rank: int = 0) -> list[int]:
  """Seeds for `count` streams.  The same generator seeded alike would repeat itself in each.

  Args:
    seed: of all of them.
    count: how many.
    rank: of a process of a distributed run; each has others, the first those of a run of one.
  """
  sequence = np.random.SeedSequence(seed, spawn_key=(rank,) if rank else ())
  return sequence.generate_state(count).tolist()
