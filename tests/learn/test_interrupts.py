"""The first signal asks, the second ends."""

import os
import pty
import signal
import subprocess
import sys

import pytest

HEAD = """
import fcntl, os, signal, sys, termios, time
from pathlib import Path
from mjrl.learn.interrupts import StopAsked
"""


def start(code, **streams):
  env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
  return subprocess.Popen([sys.executable, "-c", HEAD + code], env=env, **streams)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_the_process_at_once(first, second):
  # Guards: a run that cannot be ended, because the code it hangs in lets no handler of Python's in.
  code = f"""
with StopAsked() as stop:
  signal.raise_signal({int(first)})
  assert stop and stop.exit_code == 128 + {int(first)}
  assert signal.getsignal({int(second)}) == signal.SIG_DFL
  signal.raise_signal({int(second)})
"""
  process = start(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
  out, err = process.communicate()
  assert process.returncode == -second, err
  assert f"{first.name}: stopping after this step" in out


def test_a_terminal_that_closes_does_not_lose_the_work(tmp_path):
  # Guards: a broken ssh connection, which hangs up twice and takes the console away, so that the
  # next printed line ends the run before its checkpoint.
  proof = tmp_path / "saved"
  code = f"""
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # a terminal of its own
with StopAsked() as stop:
  print("ready", flush=True)
  while not stop:
    time.sleep(0.01)
  os.kill(os.getpid(), signal.SIGHUP)
  print("going on", flush=True)
  Path({str(proof)!r}).write_text("whole")
sys.exit(stop.exit_code)
"""
  mine, its = pty.openpty()
  process = start(code, stdin=its, stdout=its, stderr=its, start_new_session=True)
  os.close(its)
  while b"ready" not in os.read(mine, 1000):
    pass
  os.close(mine)
  assert process.wait() == 128 + signal.SIGHUP
  assert proof.read_text() == "whole"
