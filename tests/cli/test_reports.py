"""The commands that read runs: report, runs and diff."""

import os
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from mjrl.__main__ import main
from mjrl.cli.runs import moment
from mjrl.learn.atomic import write_json


@pytest.fixture
def logs(tmp_path, monkeypatch):
  """Two runs in ./logs, of which the newer one was killed."""
  monkeypatch.chdir(tmp_path)
  for name in list(os.environ):
    if name.startswith("MJRL_"):
      monkeypatch.delenv(name)
  folder = tmp_path / "logs" / "jumper" / "jumper.tripod"
  for name, seed in (("2026-01-02_10-00-00", 1), ("2026-01-03_10-00-00", 2)):
    (folder / name).mkdir(parents=True)
    (folder / name / "run.yaml").write_text(f"task: jumper.tripod\nseed: {seed}\n")
  summary = {"iterations": 7, "stopped_by": None, "reward_last": 12.5}
  write_json(folder / "2026-01-02_10-00-00" / "summary.json", summary)
  return folder


def test_the_report_is_of_the_newest_run_or_of_the_one_that_is_named(logs, capsys):
  # Guards: a report of another run; a page written where nobody asked for one.
  assert main(["report"]) == 0
  out = capsys.readouterr().out
  page = logs / "2026-01-03_10-00-00" / "report.html"
  assert f"run          {logs / '2026-01-03_10-00-00'}" in out and "unfinished" in out
  assert out.endswith(f"wrote {page}\n") and page.is_file()
  assert main(["report", "2026-01-02", "--no-page"]) == 0
  assert "reward       - -> 12.5" in capsys.readouterr().out
  assert not (logs / "2026-01-02_10-00-00" / "report.html").exists()


def test_runs_are_listed_and_filtered(logs, capsys):
  # Guards: a filter that is parsed and never applied; rows that are left out without a word.
  assert main(["runs"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in lines[1:]] == ["2026-01-03_10-00-00", "2026-01-02_10-00-00"]
  for flags, shown in (
    (["--state", "done"], "2026-01-02"),
    (["--since", "2026-01-03"], "2026-01-03"),
    (["--limit", "1"], "2026-01-03"),
  ):
    assert main(["runs", "--task", "jumper.tripod", *flags]) == 0
    header, row, *more = capsys.readouterr().out.splitlines()
    assert row.startswith(shown) and bool(more) == ("--limit" in flags), (flags, header)
  assert main(["runs", "--task", "jumper.flat"]) == 0
  assert "no such run" in capsys.readouterr().out


def test_two_runs_are_compared(logs, capsys):
  # Guards: A and B in each other's place.
  assert main(["diff", "2026-01-02", "2026-01-03"]) == 0
  out = capsys.readouterr().out
  assert "  seed: 1 -> 2" in out and "neither has a measured replay" in out
  (line,) = (line for line in out.splitlines() if line.startswith("state"))
  assert line.split() == ["state", "done", "unfinished"]


@pytest.mark.parametrize(
  "argv, code, message",
  [
    (["report", "nothing"], 2, "no run 'nothing' in"),
    (["report", "--log_dir", "empty"], 1, "no run in empty: train first"),
    (["runs", "--task", "jumper.tripos"], 2, "did you mean 'jumper.tripod'"),
    (["runs", "--since", "yesterday"], 2, "--since is 'yesterday'; it must be a date such as"),
    (["runs", "--limit", "0"], 2, "--limit is 0; it must be at least 1"),
    (["diff", "2026-01-02", "jumper"], 2, "no run 'jumper' in"),
    (["diff", "2026-01-02", "2026-01-02"], 2, "name two runs"),
  ],
)
def test_a_mistake_costs_a_line(logs, capsys, argv, code, message):
  # Guards: a traceback for a name that was mistyped.
  assert main(argv) == code
  assert message in capsys.readouterr().err


def test_a_time_before_now():
  # Guards: minutes for months, a day that begins at noon.
  now = datetime(2026, 1, 31, 12)
  assert moment("90m", now) == now - timedelta(minutes=90)
  assert moment("2w", now) == now - timedelta(days=14)
  assert moment("2026-01-31", now) == datetime(2026, 1, 31)


def test_reading_runs_loads_no_engine(logs):
  # Guards: seconds of torch before a table of files.
  code = (
    "import sys; from mjrl.__main__ import main; main(['runs']); main(['report', '--no-page']);"
    "print([m for m in ('torch', 'mujoco', 'warp', 'matplotlib') if m in sys.modules])"
  )
  env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
  assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
