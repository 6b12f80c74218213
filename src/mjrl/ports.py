"""A port to serve on."""

import socket

LOCAL = "127.0.0.1"
PORTS_TRIED = 20
_PORTS = 65536


def free_port(first: int, host: str = LOCAL) -> int | None:
  """The first port from `first` on that nothing listens on, or None after twenty tries.

  Raises:
    OSError: host is no address of this machine's.
  """
  family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
  for port in (0, *range(first, min(first + PORTS_TRIED, _PORTS))):
    with socket.socket(family, kind, protocol) as probe:
      try:
        probe.bind((address[0], port, *address[2:]))
      except OSError:
        if port == 0:  # any would do, so that it is the address that will not
          raise
        continue
      if port:
        return port
  return None
