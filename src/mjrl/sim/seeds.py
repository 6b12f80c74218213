"""One seed, several streams of random numbers that have nothing to do with one another."""

import numpy as np


def streams(seed: int, count: int) -> list[int]:
  """Seeds for `count` streams.  The same generator seeded alike would repeat itself in each."""
  return np.random.SeedSequence(seed).generate_state(count).tolist()
