import pytest

from mjrl.measure.runs.find import find_run, runs_in


def test_the_newest_is_that_which_began_last(make_run, tmp_path):
  # Guards: yesterday's run in a report, because somebody has measured it since; two of one second.
  old = make_run("2026-01-02_10-00-00")
  twin = make_run("2026-01-03_10-00-00_2", task="jumper.flat")
  make_run("2026-01-03_10-00-00")
  (old / "measure.txt").write_text("later than all")
  logs = tmp_path / "logs"
  assert [run.name[-8:] for run in runs_in(logs)] == ["-00-00_2", "10-00-00", "10-00-00"]
  assert find_run(logs, None) == twin


def test_a_run_has_many_names(make_run, tmp_path, monkeypatch):
  # Guards: another run than the one that was named; a name that is refused where it is plain.
  a = make_run("2026-01-02_10-00-00")
  b = make_run("2026-01-03_10-00-00", task="jumper.flat")
  logs = tmp_path / "logs"
  for name in (a.name, str(a), str(a / "model_2.pt"), "jumper.tripod", str(a.parent), "2026-01-02"):
    assert find_run(logs, name) == a, name
  assert find_run(logs, str(logs)) == b
  monkeypatch.chdir(a.parent)
  assert find_run(logs, a.name) == a  # a path of the current folder


def test_a_name_that_is_no_run_names_the_choices(make_run, tmp_path):
  # Guards: a report of some run for a name that was mistyped, or that fits several.
  logs = tmp_path / "logs"
  with pytest.raises(FileNotFoundError, match="train first"):
    find_run(logs, None)
  with pytest.raises(FileNotFoundError, match="is --log_dir right"):
    find_run(logs, "jumper.tripod")
  make_run("2026-01-02_10-00-00")
  make_run("2026-01-02_11-00-00")
  with pytest.raises(ValueError, match=r"did you mean 'jumper\.tripod'"):
    find_run(logs, "jumper.tripos")
  with pytest.raises(ValueError, match=r"the name of 2 runs; give the path of one: .*10-00-00"):
    find_run(logs, "2026-01-02")
  (empty := tmp_path / "empty").mkdir()
  with pytest.raises(FileNotFoundError, match="no run in"):
    find_run(logs, str(empty))


def test_folders_that_are_no_runs_are_left_out(make_run, tmp_path):
  # Guards: the folder of a sweep in a table of runs; a run that was killed before it wrote
  # anything, and is missing there.
  run = make_run("2026-01-02_10-00-00")
  sweep = tmp_path / "logs" / "sweeps" / "2026-01-04_10-00-00"
  sweep.mkdir(parents=True)
  (sweep / "results.json").write_text("[]")
  begun = run.parent / "2026-01-03_10-00-00"
  begun.mkdir()
  assert runs_in(tmp_path / "logs") == [begun, run]
