"""A port to serve on."""

import contextlib
import socket

import pytest

from mjrl.ports import free_port


@pytest.fixture
def taken():
  """A port on which somebody listens."""
  with socket.socket() as holder:
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    yield holder.getsockname()[1]


def test_a_port_that_is_taken_is_passed_over(taken):
  # Guards: a second run that shows the first one's curves, or none.
  port = free_port(taken)
  assert port is not None and taken < port < taken + 20


def test_there_is_no_port_after_the_last():
  # Guards: an OverflowError at port 65536 that ends the run.
  with socket.socket() as holder:
    with contextlib.suppress(OSError):  # somebody else holds it: as good
      holder.bind(("127.0.0.1", 65535))
      holder.listen()
    assert free_port(65535) is None


def test_an_address_of_another_machine_is_refused_at_once():
  # Guards: twenty ports tried, one after the other, and the blame on the last.
  with pytest.raises(OSError):
    free_port(8080, "192.0.2.1")
