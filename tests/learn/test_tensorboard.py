"""TensorBoard beside a run: never in its way."""

import socket
import subprocess
import sys

import pytest

from mjrl.learn.tensorboard import TensorBoard


@pytest.fixture
def taken():
  """A port on which somebody listens."""
  with socket.socket() as holder:
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    yield holder.getsockname()[1]


def test_no_free_port_costs_one_line(taken, tmp_path, monkeypatch, capsys):
  # Guards: a run that fails because its curves cannot be shown.
  monkeypatch.setattr("mjrl.ports.PORTS_TRIED", 1)
  with TensorBoard(tmp_path, taken):
    pass
  out = capsys.readouterr().out
  assert "no free port" in out and out.count("\n") == 1


def test_a_failing_start_costs_one_line(tmp_path, monkeypatch, capsys):
  # Guards: the same, where no process can be started.
  def refuse(*_, **__):
    raise PermissionError("no")

  monkeypatch.setattr(subprocess, "Popen", refuse)
  with TensorBoard(tmp_path, 6100):
    pass
  out = capsys.readouterr().out
  assert "did not start (no)" in out and out.count("\n") == 1


def test_none_starts_nothing(tmp_path, monkeypatch, capsys):
  # Guards: a server that was switched off.
  monkeypatch.setattr(subprocess, "Popen", None)
  with TensorBoard(tmp_path, None):
    pass
  assert capsys.readouterr().out == "" and list(tmp_path.iterdir()) == []


def test_it_shows_the_runs_beside_and_ends_with_the_run(tmp_path, monkeypatch, capsys):
  # Guards: a server that outlives its run, or that shows one run alone.
  started = []

  class Sleeper(subprocess.Popen):
    """A child in TensorBoard's place, which takes seconds to start."""

    def __init__(self, command, **options):
      started.append((command, options))
      super().__init__([sys.executable, "-c", "import time; time.sleep(600)"], **options)

  monkeypatch.setattr(subprocess, "Popen", Sleeper)
  folder = tmp_path / "task" / "run"
  folder.mkdir(parents=True)
  with TensorBoard(folder, 6100) as board:
    process = board._process
    assert process.poll() is None
  assert process.poll() is not None
  ((command, options),) = started
  assert command[command.index("--logdir") + 1] == str(folder.parent)
  assert command[command.index("--host") + 1] == "127.0.0.1"
  assert options["start_new_session"]  # Ctrl-C is for the run
  assert f"http://127.0.0.1:{command[command.index('--port') + 1]}" in capsys.readouterr().out
