from datetime import datetime

from mjrl.measure.runs.record import RunRecord
from mjrl.measure.runs.table import HEADER, chosen, row


def test_a_row_says_what_came_of_a_run(make_run, measured):
  # Guards: a column under another's header, a finding that is over counted as one.
  findings = [
    {"rule": "std-stuck", "iteration": 19, "evidence": "0.5", "at_the_end": False},
    {"rule": "early-ends", "iteration": 29, "evidence": "90 %", "at_the_end": True},
  ]
  done = make_run("2026-01-02_10-00-00", summary={"findings": findings}, measured=measured)
  assert dict(zip(HEADER, row(RunRecord(done)), strict=True)) == {
    "run": "2026-01-02_10-00-00",
    "task": "jumper.tripod",
    "state": "done",
    "iterations": "3",
    "reward": "52",
    "tracking": "75 %, 75 %",
    "level": "2",
    "findings": "early-ends",
    "replay": "0 %..50 %, 317 falls",
  }
  killed = make_run("2026-01-03_10-00-00", iterations=0, summary=None)
  assert row(RunRecord(killed))[2:] == ("unfinished", "-", "-", "-, -", "-", "-", "-")


def test_runs_are_chosen(make_run, tmp_path):
  # Guards: a filter that keeps the others.
  make_run("2026-01-01_10-00-00", task="jumper.flat")
  make_run("2026-01-02_10-00-00", summary={"stopped_by": "SIGINT"})
  make_run("2026-01-03_10-00-00", summary={"failed": "OSError: no"})
  make_run("2026-01-04_10-00-00", summary=None)
  any_run = {"task": None, "since": None, "state": None}

  def days(**wanted):
    runs = chosen(tmp_path / "logs", **any_run | wanted)
    return [int(run.folder.name[8:10]) for run in runs]

  assert days() == [4, 3, 2, 1]
  assert days(task="jumper.flat") == [1]
  assert days(since=datetime(2026, 1, 2, 10)) == [4, 3, 2]
  for state, day in (("done", 1), ("stopped", 2), ("failed", 3), ("unfinished", 4)):
    assert days(state=state) == [day]
