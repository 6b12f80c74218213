"""What is said of a run, on the console and on the page, whatever is missing in its folder."""

import os
import re
from html import unescape

import pytest

from mjrl.measure.files import read_json, write_json
from mjrl.measure.report import report
from mjrl.measure.runs import panels
from mjrl.measure.runs.facts import facts
from mjrl.measure.runs.page import page, write_page
from mjrl.measure.runs.record import RunRecord
from mjrl.measure.runs.text import text


def test_a_finished_run_is_told_by_its_own_numbers(make_run, measured):
  # Guards: a number of the report under another's label, or from another place than is said.
  findings = [
    {"rule": "std-stuck", "iteration": 19, "evidence": "std 0.5", "at_the_end": False},
    {"rule": "early-ends", "iteration": 29, "evidence": "90 %", "at_the_end": True},
  ]
  more = {"findings": findings, "departures": ["rewards.pose.weight: 1.0 -> 2.0 (--set)"]}
  more |= {"updates_skipped": 4, "file_failures": {"write the checkpoint: no room": 2}}
  said = facts(RunRecord(make_run("2026-01-02_10-00-00", summary=more, measured=measured)))
  assert said["state"] == ["done"] and said["task"] == ["jumper.tripod, robot jumper"]
  assert said["departures"] == ["rewards.pose.weight: 1.0 -> 2.0 (--set)"]
  assert said["engine"] == ["native:cpu, 64 envs, seed 1"]
  assert said["length"] == ["3 iterations (9 asked for); 9,216 control steps; wall time 0:01:15"]
  assert said["checkpoint"][0].endswith("2026-01-02_10-00-00/model_2.pt")
  assert said["reward"][0] == "50 -> 52" and "eased until iteration 900" in said["reward"][1]
  assert said["tracking"] == [
    "track_linear_velocity 1.5 of 2 (75 %)",
    "track_angular_velocity 1.5 of 2 (75 %)",
  ]
  assert said["ladder"][0].startswith("level 2 of 0..3; linear error - m/s (bar -)")
  assert said["exploration"] == ["action std 0.48, began at 0.5"]
  assert said["findings"] == [
    "std-stuck, from iteration 19 on: std 0.5 (no longer so at the end); what to do: "
    "docs/reading_a_run.md#std-stuck",
    "early-ends, from iteration 29 on: 90 %; what to do: docs/reading_a_run.md#early-ends",
  ]
  assert said["trouble"] == [
    "write the checkpoint: no room: 2 times",
    "updates skipped, whose gradients were not finite: 4",
  ]
  assert said["replay"] == ["of model_7.pt, and the newest is model_2.pt"]


def test_a_killed_run_is_told_from_its_curves(make_run):
  # Guards: no report of the run that needs one most; numbers of a run that had no end taken for one
  # that had; guesses where nothing was written.
  said = facts(RunRecord(make_run("2026-01-02_10-00-00", summary=None, set={"rewards.x": 2.0})))
  assert said["state"][0].startswith("unfinished: there is no summary.json")
  assert said["departures"] == ["rewards.x = 2.0 (set)"]
  assert said["length"] == ["3 iterations (9 asked for); 9,216 control steps; wall time 0:00:09"]
  assert said["reward"][0] == "50 -> 52"
  assert said["tracking"][0] == "track_linear_velocity 1.2 of 2 (60 %)"
  assert said["ladder"][0].startswith("level 1 of 0..3")
  assert said["findings"] == ["none (of 3 iterations)"]
  assert said["replay"][0].startswith("- (a finished run is not a result; measure it: python")


def test_a_report_does_not_wake_the_dead(make_run):
  # Guards: a run that was killed yesterday and was "last written" a second ago, by its own report.
  folder = make_run("2026-01-02_10-00-00", summary=None)
  for path in folder.iterdir():
    os.utime(path, (1e9, 1e9))
  (folder / "report.html").write_text("")
  assert "last written 2001-09-" in facts(RunRecord(folder))["state"][0]


@pytest.mark.parametrize("left", [(), ("run.yaml",), ("summary.json",), ("scalars.csv",)])
def test_what_is_missing_is_shown_as_missing(make_run, left):
  # Guards: a report that fails on half a folder, or fills the other half with zeros.
  folder = make_run("2026-01-02_10-00-00", iterations=2 if left else 0)
  for path in folder.iterdir():
    if path.name not in left:
      path.unlink()
  run = RunRecord(folder)
  said = facts(run)
  assert said["checkpoint"] == ["none"] and said["replay"][0].startswith("-")
  if "summary.json" not in left:
    assert said["state"][0].startswith("unfinished")
  if not left:
    assert said["engine"] == ["-, - envs, seed -"] and said["exploration"][0].startswith(
      "action std -"
    )
    assert (
      said["reward"] == ["- -> -"] and said["departures"] == ["-"] and said["tracking"] == ["-"]
    )
    assert said["length"] == ["- iterations; - control steps; wall time -"]
    assert said["findings"] == ["- (there are no curves)"]
  if left == ("scalars.csv",):  # of which there is something to draw, and nothing else
    assert "<svg" in page(run)


@pytest.mark.parametrize(
  "name, content",
  [
    ("summary.json", '{"task": "jumper.trip'),
    ("summary.json", "[1, 2]"),
    ("run.yaml", "record: {task: [}"),
    ("run.yaml", "record: {task: {}, recipe: {}}"),
    ("measure/measure.json", "{"),
    ("measure/measure.json", '{"schema": "mjrl/measure/0"}'),
    ("scalars.csv", "iteration,a\n0,1\n1,"),
  ],
)
def test_a_file_that_was_cut_or_is_of_another_version_is_named(
  make_run, measured, monkeypatch, name, content
):
  # Guards: a traceback in place of a report, or a report that is silent on what it could not read.
  folder = make_run("2026-01-02_10-00-00", measured=measured)
  (folder / name).write_text(content)
  monkeypatch.setattr(panels, "svg", lambda run: "")  # a second each
  run = RunRecord(folder)
  said = text(run)
  assert page(run)
  if name != "scalars.csv":  # whose whole rows are read
    assert f"unreadable   {name}: " in said


def test_a_measurement_is_read_as_it_was_written(measured, tmp_path):
  # Guards: a figure that the report shows as another, or as missing.
  write_json(tmp_path / "measure.json", measured)
  assert report(read_json(tmp_path / "measure.json")) == report(measured)


def test_the_page_needs_nothing_beside_it(make_run, measured):
  # Guards: a page that is empty on a colleague's machine; a name with a < that breaks it; a part
  # that the console has and the page has not.
  evidence = "a < b & c"
  found = {"rule": "early-ends", "iteration": 1, "evidence": evidence, "at_the_end": True}
  summary = {"findings": [found], "departures": ["one <departure>"]}
  folder = make_run("2026-01-02_10-00-00", summary=summary, measured=measured)
  (folder / "measure" / "measure.png").write_bytes(b"\x89PNG picture")
  (folder / "videos").mkdir()
  (folder / "videos" / "walk.mp4").write_bytes(b"film")
  path = write_page(RunRecord(folder))
  html = path.read_text(encoding="utf-8")
  assert path == folder / "report.html"
  sources = re.findall(r'(?:src|href)="([^"#]+)', html)
  assert [source[:15] for source in sources] == ["data:image/png;", "data:video/mp4;"]
  assert not re.search(r"<(?:script|link)\b", html)
  assert html.count("<svg") == 1 and "mean reward" in html
  plain = unescape(re.sub(r"<[^>]+>", " ", html.replace("<br>", "\n")))
  for word in (evidence, "one <departure>", "docs/reading_a_run.md#early-ends", "walk.mp4"):
    assert word in plain, word
  for cell in ("achieved of commanded", "50 %, 0 %", "20.0 cm/s", "a.task on native:cpu"):
    assert cell in plain, cell
