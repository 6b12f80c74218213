"""Which viewer a run has, and whether it can be had: asked before anything is built."""

import importlib.util
from dataclasses import dataclass
from typing import Literal

from mjrl.ports import LOCAL, PORTS_TRIED, free_port

PORT = 8080


@dataclass(frozen=True, kw_only=True)
class Choice:
  """A window, a page for browsers at host and port (or the next free one), or none."""

  kind: Literal["window", "web", "none"] = "none"
  host: str = LOCAL
  port: int = PORT


def check_web(host: str, port: int) -> None:
  """Refuse a page that could not be served.

  Raises:
    ValueError: a package is missing, the host is not this machine's, or no port is free.
  """
  # One without an origin is some folder of that name.
  for package in ("viser", "mjviser"):
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
      raise ValueError(
        f"--viewer web needs the package {package}, which is not installed: "
        "pip install 'mjrl[web]', or in a checkout pip install -e '.[web]'"
      )
  try:
    found = free_port(port, host)
  except OSError as error:
    raise ValueError(
      f"--viewer_host {host}: nothing can be served there ({error.strerror}); 127.0.0.1 is for "
      "this machine alone, 0.0.0.0 for all that can reach it"
    ) from None
  if found is None:
    raise ValueError(f"--viewer_port {port}: neither it nor the next {PORTS_TRIED - 1} are free")
