from mjrl.measure.runs.diff import configuration, outcomes, replays
from mjrl.measure.runs.record import RunRecord


def test_what_differs_is_told_and_what_does_not_is_not(make_run, measured):
  # Guards: a weight that was changed and is not shown, or drowned in what is the same; two columns
  # in each other's place.
  one = RunRecord(make_run("2026-01-02_10-00-00", measured=measured))
  other = RunRecord(
    make_run("2026-01-03_10-00-00", seed=2, summary={"reward_last": 99.0}, iterations=4)
  )
  assert configuration(one, other) == ["seed: 1 -> 2"]
  rows = {label: cells for label, *cells in outcomes(one, other)}
  assert rows["iterations"] == ["3", "4"] and rows["reward, last"] == ["52", "99"]
  assert rows["track_linear_velocity of its weight"] == ["75 %", "75 %"]
  table = {label: cells for label, *cells in replays(one, other)}
  assert table["forward 0.4 m/s, turn +0.5 rad/s: achieved of commanded"] == ["50 %, 0 %", "-"]
  assert table["stand: drift"] == ["20.0 cm/s", "-"]


def test_a_change_within_the_task_is_found(make_run, described):
  # Guards: an override that only the task's description shows.
  one, other = (RunRecord(make_run(f"2026-01-0{k}_10-00-00")) for k in (2, 3))
  task = other.of_record["task"]
  task["rewards"]["pose"]["weight"] = 3.0
  assert configuration(one, other) == ["task.rewards.pose.weight: 1.0 -> 3.0"]


def test_a_run_without_a_record_is_named(make_run):
  # Guards: two runs that look alike because one of them could not be read.
  one, other = (make_run(f"2026-01-0{k}_10-00-00") for k in (2, 3))
  (other / "run.yaml").unlink()
  (line,) = configuration(RunRecord(one), RunRecord(other))
  assert line == f"{other} has no run.yaml that can be read"
