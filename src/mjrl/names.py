"""Words for messages: nearest names and versions.  Below every layer: it imports none of them."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version


def nearest(name: str, valid: Iterable[str]) -> str:
  """The part of an error that names the choices: the nearest first, then all."""
  choices = list(valid)
  close = get_close_matches(name, choices, n=1)
  hint = f"did you mean {close[0]!r}? " if close else ""
  return f"{hint}valid names: {', '.join(choices)}"


def version_of(distribution: str) -> str:
  """Version of an installed distribution, or that it is not installed."""
  try:
    return version(distribution)
  except PackageNotFoundError:
    return "not installed"
