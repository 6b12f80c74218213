"""Sweeps: every combination runs in a process of its own, and what came of it is in one table."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from mjrl.cli import train
from mjrl.learn import checkpoints

SCRIPT = Path(__file__).parents[2] / "scripts/train.py"
TINY = {
  "recipe.rollout_steps": 4,
  "recipe.actor_hidden": [16],
  "recipe.critic_hidden": [16],
  "recipe.epochs": 1,
  "recipe.mini_batches": 2,
}
FILE = {"task": "jumper.tripod", "num_envs": 4, "headless": True, "tensorboard": False, "set": TINY}

# Fails for one of the runs only, and so late that no check can foresee it.
MODULE = """
def fail_at(moment, *, iteration):
  if moment.iteration == iteration:
    raise RuntimeError("as asked")
"""


def start(tmp_path, *argv, out=subprocess.PIPE):
  environ = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
  return subprocess.Popen(
    [sys.executable, "-u", str(SCRIPT), "--config", "sweep.yaml", *argv],
    stdout=out,
    stderr=subprocess.STDOUT,
    text=True,
    cwd=tmp_path,
    env=os.environ | environ,
    start_new_session=True,
  )


def results(tmp_path):
  (path,) = tmp_path.glob("logs/sweeps/*/results.json")
  return json.loads(path.read_text())


def test_every_run_leaves_a_row(tmp_path):
  # Guards: a run that fails and takes the rest with it, a value that reaches no run, a row that is
  # of another run.
  (tmp_path / "failing.py").write_text(MODULE)
  fail = {"call": "failing:fail_at", "when": "iteration", "params": {"iteration": 1}}
  sweep = {"max_iterations": [1, 2], "rewards.foot_slip.weight": [-0.2]}
  evaluated = {"eval_every": 1, "num_eval_episodes": 1}
  content = {**FILE, **evaluated, "sweep": sweep, "events": {"fail": fail}}
  (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
  process = start(tmp_path, "--seed", "7", "--set", "episode_s=1")
  out, _ = process.communicate(timeout=120)
  assert process.returncode == 1, out
  assert "run 1 of 2: max_iterations=1, rewards.foot_slip.weight=-0.2" in out

  first, second = results(tmp_path)
  assert (first["exit_code"], second["exit_code"]) == (0, 1)
  assert [row["iterations"] for row in (first, second)] == [1, 2]
  assert first["seed"] == second["seed"] == 7 and first["folder"] != second["folder"]
  assert first["rewards.foot_slip.weight"] == -0.2 and "track_linear_velocity" in first
  saved = checkpoints.read(Path(first["folder"]) / "model_0.pt")
  assert saved["set"] == TINY | {"rewards.foot_slip.weight": -0.2, "episode_s": 1.0}

  (path,) = tmp_path.glob("logs/sweeps/*/results.csv")
  rows = list(csv.DictReader(path.read_text().splitlines()))
  assert [row["exit_code"] for row in rows] == ["0", "1"]
  table = out[out.rindex("\ntask ") :].splitlines()
  assert 0 <= first["eval/success"] <= 1 and "eval/feet_down" in first
  assert "eval/success" in table[1] and "eval/feet_down" not in table[1]  # too many for a screen
  assert table[2].split()[:3] == ["jumper.tripod", "7", "1"] and first["folder"] in table[2]


def test_a_stop_stops_the_run_and_the_sweep(tmp_path):
  # Guards: Ctrl-C that ends one run of a hundred, one that is lost without a checkpoint, and a
  # training that goes on after its sweep.
  content = {**FILE, "max_iterations": 100_000, "sweep": {"seed": [1, 2]}}
  (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(content))
  process = start(tmp_path)
  for line in process.stdout:
    if "Learning iteration 2/" in line:
      (child,) = psutil.Process(process.pid).children()
      assert os.getpgid(child.pid) != process.pid  # or a terminal asks it too, and twice is at once
      process.send_signal(signal.SIGINT)
      break
  out, _ = process.communicate(timeout=60)
  assert process.returncode == 130, out
  assert "run 2 of 2" not in out and "stopped by SIGINT" in out
  first, second = results(tmp_path)
  assert (first["exit_code"], second["exit_code"]) == (130, None)
  assert list(Path(first["folder"]).glob("model_*.pt"))


def test_a_closed_terminal_stops_them_too(tmp_path):
  # Guards: a training that goes on, unseen, when its sweep has hung up; and a sweep that fails
  # because it can print no more.
  content = {**FILE, "max_iterations": 100_000, "sweep": {"seed": [1, 2]}}
  (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(content))
  ours, theirs = os.openpty()
  process = start(tmp_path, out=theirs)
  os.close(theirs)
  with open(ours, encoding="utf-8") as terminal:
    next(line for line in terminal if "Learning iteration 2/" in line)
    (child,) = psutil.Process(process.pid).children()
  process.send_signal(signal.SIGHUP)
  assert process.wait(timeout=60) == 129
  first, second = results(tmp_path)
  assert (first["exit_code"], second["exit_code"]) == (129, None)
  assert not child.is_running() and list(Path(first["folder"]).glob("model_*.pt"))


def test_a_dry_run_lists_the_runs(called, tmp_path, capsys):
  # Guards: twelve runs where six were meant.
  content = {"task": "hop.flat", "sweep": {"seed": [1, 2], "recipe.learning_rate": [1e-3, 5e-4]}}
  (tmp_path / "sweep.json").write_text(json.dumps(content))
  assert train.main(["--config", "sweep.json", "--dry-run"]) == 0
  assert capsys.readouterr().out.splitlines() == [
    "run 1 of 4: seed=1, recipe.learning_rate=0.001",
    "run 2 of 4: seed=1, recipe.learning_rate=0.0005",
    "run 3 of 4: seed=2, recipe.learning_rate=0.001",
    "run 4 of 4: seed=2, recipe.learning_rate=0.0005",
    "dry run: nothing was built",
  ]
  assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"] and not called.train


@pytest.mark.parametrize(
  ("text", "argv", "says"),
  [
    ("sweep: {sede: [1]}", [], "nothing to sweep has the name 'sede'; did you mean 'seed'"),
    ("sweep: {seed: 1}", [], "sweep: seed must be a list of values, and is 1"),
    ("sweep: {seed: []}", [], "must be a list of values"),
    ("sweep: {seed: [1, x]}", [], 'seed: "x" does not do'),
    ("sweep: {seed: [1, -1]}", [], "run 2 of 2: seed=-1: seed in some.yaml is -1"),
    ("sweep: {task: [hop.flat, hop.flt]}", [], "there is no task 'hop.flt'"),
    ("sweep: {episode_s: [1, 0]}", [], "run 2 of 2: episode_s=0: set in some.yaml: episode_s=0"),
    ("sweep: {rewards.fot_slip.weight: [1]}", [], "did you mean 'foot_slip'"),
    ("sweep: {seed: [1]}\nseed: 3", [], "seed is swept and set"),
    ("sweep: {seed: [1]}", ["--seed", "2"], "--seed is given, and some.yaml sweeps it"),
    ("sweep: {episode_s: [1, 2]}", ["--set", "episode_s=3"], "--set has another value for it"),
    (
      "sweep: {log_dir: [a, b]}",
      [],
      "log_dir cannot be swept: the table of a sweep lies in it; give --log_dir",
    ),
    ("sweep: 3", [], "sweep must be a mapping"),
  ],
)
def test_a_mistake_is_found_before_the_first_run(called, tmp_path, capsys, text, argv, says):
  # Guards: the last of twelve runs refused in the morning; a value of a sweep that has no effect.
  task = "" if "task" in text else "task: hop.flat\n"
  (tmp_path / "some.yaml").write_text(task + text)
  assert train.main(["--config", "some.yaml", *argv]) == 2
  err = capsys.readouterr().err
  assert says in err and err.count("\n") == 1
  assert [path.name for path in tmp_path.iterdir()] == ["some.yaml"] and not called.train


def test_no_run_goes_on_from_another_of_the_sweep(called, tmp_path, capsys, write_checkpoint):
  # Guards: seeds that are compared, of which each had the training of those before it.
  path = tmp_path / "logs/jumper/hop.flat/run/model_1.pt"
  write_checkpoint(path)
  (tmp_path / "some.yaml").write_text("task: hop.flat\nsweep: {seed: [1, 2]}\n")
  sweep = ["--config", "some.yaml", "--dry-run"]
  for start in (["--resume"], ["--checkpoint", str(path.parent)]):
    assert train.main([*sweep, *start]) == 2
    assert f"name a file, such as --checkpoint {path}" in capsys.readouterr().err
  assert train.main([*sweep, "--checkpoint", str(path)]) == 0
