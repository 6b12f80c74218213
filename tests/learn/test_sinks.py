"""The scalars of a run, wherever they are written."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mjrl.learn.failures import Failures
from mjrl.learn.sinks import Droppable, csv_file, open_sinks


def read_csv(folder):
  """The rows of `scalars.csv`, each a dict of the cells that are not empty."""
  with (folder / "scalars.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
  assert all(None not in row and None not in row.values() for row in rows)  # as many as the header
  return [{name: float(cell) for name, cell in row.items() if cell} for row in rows]


def read_events(folder):
  """The same of TensorBoard's event file, by iteration."""
  events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
  events.Reload()
  rows = {}
  for name in events.Tags()["scalars"]:
    for point in events.Scalars(name):
      rows.setdefault(point.step, {})[name] = point.value
  return rows


ROWS = [
  {"b": 0.1, "a": 1e-300},
  {"b": 1 / 3, "Perf/env_steps": 12_345_678_901},
  {"b": 0.25, "a": 2.0},
  {"with, comma": -1e22, "a": float("inf")},
]


def test_the_table_gets_a_column_where_a_name_appears(tmp_path):
  # Guards: cells under another column's name, a number cut to six digits, a row that is too short
  # for a reader of tables.
  (_, sink) = open_sinks(tmp_path, "tensorboard", {}, Failures())
  for iteration, row in enumerate(ROWS, 7):
    sink.write(iteration, row)
    found = read_csv(tmp_path)  # after each: a run may be looked at, or killed, at any time
    assert found == [{"iteration": k, **ROWS[k - 7]} for k in range(7, iteration + 1)]
  header = (tmp_path / "scalars.csv").read_text().splitlines()[0]
  assert header == 'iteration,b,a,Perf/env_steps,"with, comma"'


@pytest.mark.parametrize("killed_in", ["append_bytes", "write_bytes"])
def test_a_kill_loses_no_row(tmp_path, monkeypatch, killed_in):
  # Guards: the rows of hours, gone because the run was killed while a column was added.
  sink = csv_file.CsvFile(tmp_path)
  sink.write(0, {"a": 1.0})
  sink.write(1, {"a": 2.0})

  class Killed(BaseException):
    pass

  def kill(*_):
    raise Killed

  replace = os.replace
  monkeypatch.setattr(csv_file, "append_bytes", kill)
  if killed_in == "write_bytes":
    monkeypatch.setattr(os, "replace", kill)
    with pytest.raises(Killed):
      sink.write(2, {"a": 3.0, "b": 4.0})
    monkeypatch.setattr(os, "replace", replace)
    assert [row["a"] for row in read_csv(tmp_path)] == [1, 2]
  else:
    sink.write(2, {"a": 3.0, "b": 4.0})
    assert [row["a"] for row in read_csv(tmp_path)] == [1, 2, 3]


@pytest.fixture
def no_room():
  """Lets files grow to a size and no further: a write beyond it is cut short, as on a full disk."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("which", [0, 1], ids=["event file", "scalars.csv"])
def test_a_full_disk_ends_no_run_and_leaves_whole_rows(tmp_path, no_room, capsys, which):
  # Guards: a run of days that ends for want of a curve, half a row or record that no reader gets
  # past, a warning per iteration, and curves that end with the first minute of a full disk.
  failures = Failures()
  sink = open_sinks(tmp_path, "tensorboard", {}, failures)[which]
  for iteration in (0, 1):
    sink.write(iteration, {"a": iteration + 0.1, "b": iteration + 0.3})
  (path,) = tmp_path.glob(["events*", "scalars.csv"][which])
  whole = path.read_bytes()
  no_room(len(whole) + 5)  # some bytes of a row fit
  sink.write(2, {"a": 2.1, "b": 2.3})
  sink.write(3, {"a": 3.1, "b": 3.3, "late": 1.0})
  assert path.read_bytes() == whole
  no_room(1_000_000)
  sink.write(4, {"a": 4.1, "b": 4.3, "late": 2.0})
  sink.close()
  rows = read_csv(tmp_path) if which else read_events(tmp_path)
  found = [row["a"] for row in (rows if which else map(rows.get, sorted(rows)))]
  assert found == pytest.approx([0.1, 1.1, 4.1])
  name = ["TensorBoard's event file", "scalars.csv"][which]
  out = capsys.readouterr().out
  assert out.count(f"could not write {name}: ") == len(failures.counts) and "; the run goes" in out
  assert sum(failures.counts.values()) == 2 and not failures.open


def test_a_file_that_could_not_be_begun_begins_later(tmp_path, no_room):
  # Guards: a run without curves, because it began on a full disk.
  failures = Failures()
  sinks = open_sinks(tmp_path, "tensorboard", {}, failures)
  no_room(3)
  for sink in sinks:
    sink.write(0, {"a": 0.5})
  no_room(1_000_000)
  for sink in sinks:
    sink.write(1, {"a": 1.5})
  assert read_csv(tmp_path) == [{"iteration": 1, "a": 1.5}]
  assert read_events(tmp_path) == {1: {"a": 1.5}}
  assert sum(failures.counts.values()) == 2


def test_a_console_on_a_full_disk_ends_no_run(small, make_runner, monkeypatch):
  # Guards: a run that survives the loss of a curve, and ends for want of the line that says so.
  runner = make_runner(small)
  with open("/dev/full", "w") as full:
    monkeypatch.setattr(sys, "stdout", full)
    failing = lambda: Failing("write")  # noqa: E731
    runner.sinks = [Droppable("the curves", failing, runner.failures), *runner.sinks]
    runner.learn(2)
    monkeypatch.undo()
    with pytest.raises(OSError):
      full.flush()  # it was full
    os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # so that it can be closed
  assert runner.saves.newest.name == "model_1.pt" and len(read_csv(runner.folder)) == 2
  assert runner.failures.counts["write to the curves: no more of this"] == 1


def test_a_name_is_the_same_everywhere(tmp_path):
  # Guards: a curve that is called otherwise, or is missing, in one of the files.
  sinks = open_sinks(tmp_path, "tensorboard", {}, Failures())
  for iteration, row in enumerate(ROWS[:3]):
    for sink in sinks:
      sink.write(iteration, row)
  table = {row.pop("iteration"): row for row in read_csv(tmp_path)}
  events = read_events(tmp_path)
  assert {k: set(row) for k, row in events.items()} == {k: set(row) for k, row in table.items()}
  assert events[1]["b"] == pytest.approx(1 / 3)


class Failing:
  """A sink that fails at one moment."""

  def __init__(self, moment):
    self.moment, self.calls = moment, []
    self._at("open")

  def write(self, iteration, scalars):
    self._at("write")

  def say(self, iteration, name, text):
    self._at("say")

  def close(self):
    self._at("close")

  def _at(self, moment):
    self.calls.append(moment)
    if moment == self.moment:
      raise RuntimeError("no more\nof this")


@pytest.mark.parametrize("moment", ["open", "write", "close"])
def test_a_sink_that_fails_is_dropped_and_the_run_goes_on(small, make_runner, capsys, moment):
  # Guards: a run that is over because nobody could be told of it, and one that says so each time.
  runner, opened = make_runner(small), []

  def open_it():
    opened.append(Failing.__new__(Failing))
    opened[0].__init__(moment)
    return opened[0]

  runner.sinks = [Droppable("the curves", open_it, runner.failures), *runner.sinks]
  runner.learn(3)
  assert runner.saves.newest.name == "model_2.pt"
  assert [row["iteration"] for row in read_csv(runner.folder)] == [0, 1, 2]
  calls = {"open": ["open"], "write": ["open", "write"]}
  assert opened[0].calls == calls.get(moment, ["open", "write", "write", "write", "close"])
  (line,) = (line for line in capsys.readouterr().out.splitlines() if "the curves" in line)
  assert line == "the curves: not written from here on, the run goes on: no more of this"
  assert runner.failures.counts == {"write to the curves: no more of this": 1}


@pytest.fixture
def alone(tmp_path):
  """Runs Python code as its own process, in which W&B knows nothing of this machine's user."""
  env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
  env |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
  home = tmp_path / "h"
  home.mkdir()
  names = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR", "NETRC")
  names += ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR")
  env |= dict.fromkeys(names, str(home)) | {"NETRC": str(home / "netrc")}
  # Nothing listens there: whatever a test does, it reaches no one.
  env |= {"WANDB_ERROR_REPORTING": "false", "WANDB_BASE_URL": "http://127.0.0.1:9"}

  started = []

  def start(code, **variables):
    process = subprocess.Popen(
      [sys.executable, "-u", "-c", code],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      cwd=tmp_path,
      env=env | variables,
    )
    started.append(process)
    return process

  yield start
  for process in started:  # of a test that failed
    with process:
      process.kill()


# Prints what W&B has of an offline run: its file is LevelDB's log, of protobuf messages.
READER = """
import json, struct, sys
from pathlib import Path
from wandb.proto.wandb_internal_pb2 import Record

(path,) = Path(sys.argv[1] if len(sys.argv) > 1 else ".").glob("**/offline-run-*/*.wandb")
data, at, whole = path.read_bytes(), 7, b""
found = {"config": {}, "history": [], "summary": {}, "path": str(path)}
value = lambda items: {item.key or "/".join(item.nested_key): json.loads(item.value_json)
                       for item in items}
while at + 7 <= len(data):
  if 32768 - at % 32768 < 7:
    at += 32768 - at % 32768
    continue
  _, length, kind = struct.unpack_from("<IHB", data, at)
  whole += data[at + 7 : at + 7 + length]
  at += 7 + length
  if kind not in (1, 4):
    continue
  record, whole = Record.FromString(whole), b""
  if record.HasField("run"):
    found |= {"project": record.run.project, "name": record.run.display_name}
    found["config"] |= value(record.run.config.update)
  if record.HasField("history"):
    found["history"].append(value(record.history.item))
  if record.HasField("summary"):
    found["summary"] |= value(record.summary.update)
  if record.HasField("exit"):
    found["exit_code"] = record.exit.exit_code
print(json.dumps(found))
"""

TRAIN = """
import sys
from dataclasses import replace
from pathlib import Path
from mjrl import tasks
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved

task = tasks.build("jumper.tripod")
recipe = replace(task.recipes["native"], rollout_steps=4, actor_hidden=(16,), critic_hidden=(16,))
print("wandb" in sys.modules)
with StopAsked() as stop:
  sys.exit(train(
    task=replace(task, recipes={"native": recipe}),
    resolved=Resolved(
      backend="native", device="cpu", num_envs=4, threads=1, torch_threads=1, reasons={}
    ),
    seed=5, max_iterations=100_000, checkpoint=None, log_dir=Path("logs"), command="as typed",
    options=Options(logger="wandb"), stop=stop,
  ))
"""


def finish(process):
  out, err = process.communicate(timeout=120)
  assert "Traceback" not in err, err
  return out, err


def test_a_run_on_wandb_has_the_same_names_and_stops_as_others_do(tmp_path, alone):
  # Guards: curves of other names, a run of which W&B knows neither task nor seed, one call per
  # scalar, an import of wandb for those who did not ask, and a Ctrl-C that wandb swallows.
  process = alone(TRAIN, WANDB_MODE="offline")
  assert process.stdout.readline() == "False\n"
  for line in process.stdout:
    if "Learning iteration 2/" in line:
      process.send_signal(signal.SIGINT)
      break
  out, err = finish(process)
  assert process.returncode == 128 + signal.SIGINT and "not written" not in out, out + err
  (folder,) = tmp_path.glob("logs/*/*/*")
  found = json.loads(finish(alone(READER))[0])

  assert Path(found["path"]).is_relative_to(folder.relative_to(tmp_path) / "wandb")
  assert found["project"] == "mjrl" and found["name"] == folder.name and found["exit_code"] == 0
  assert found["config"]["seed"] == 5 and found["config"]["command"] == "as typed"
  assert found["config"]["task"]["rewards"]["gait"]["weight"] == 1.0
  assert found["config"]["recipe"]["actor_hidden"] == [16]
  history = [
    {name: value for name, value in row.items() if not name.startswith("_")} | {"iteration": step}
    for row in found["history"]
    for step in [row["_step"]]
  ]
  assert len(history) >= 3 and history == read_csv(folder)
  assert set(read_events(folder)[0]) | {"iteration"} == set(history[0])


BROKEN = """
import sys
from pathlib import Path
from mjrl.learn.failures import Failures
from mjrl.learn.sinks import open_sinks

for sink in (sinks := open_sinks(Path("run"), "wandb", {"seed": 5}, Failures())):
  sink.write(3, {"a": 0.5})
  sink.say(3, "findings/too-much", "10 of 3")
try:
  if len(sys.argv) == 1:
    raise ZeroDivisionError
except ZeroDivisionError:
  for sink in sinks:
    sink.close()
sys.exit(7)
"""


def test_without_a_login_the_run_goes_on(tmp_path, alone):
  # Guards: a question on the terminal of a run that nobody watches, a wait for a network that is
  # not there, and an exit code that is wandb's.
  (tmp_path / "run").mkdir()
  process = alone(BROKEN, WANDB_MODE="online")
  out, _ = finish(process)
  (line,) = out.splitlines()
  assert line.startswith("Weights & Biases: not written from here on, the run goes on: nobody is")
  assert process.returncode == 7
  assert [row["iteration"] for row in read_csv(tmp_path / "run")] == [3]


def test_a_run_that_failed_is_marked_and_variables_of_wandb_rule(tmp_path, alone):
  # Guards: a crash that looks like a result on W&B, and a project of ours over the user's.
  (tmp_path / "run").mkdir()
  process = alone(BROKEN, WANDB_MODE="offline", WANDB_PROJECT="mine", WANDB_NAME="another")
  out, _ = finish(process)
  assert process.returncode == 7 and "not written" not in out
  found = json.loads(finish(alone(READER))[0])
  assert (found["project"], found["name"], found["exit_code"]) == ("mine", "another", 1)
  assert found["history"][0]["a"] == 0.5 and found["history"][0]["_step"] == 3
  assert found["summary"]["findings/too-much"] == "iteration 3: 10 of 3"
