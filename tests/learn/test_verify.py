"""`python -m mjrl verify`: it sees a difference, and says where."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from mjrl.cli import verify as command
from mjrl.envs.task import at_reset
from mjrl.learn import verify as verifying
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.verify import compare, verify
from mjrl.sim.resolve import Resolved

MANY = Resolved(backend="native", device="cpu", num_envs=1, threads=2, torch_threads=1, reasons={})
NAMES = [
  "the same seed again",
  "1 thread against 2",
  "stopped after 2 iterations, and resumed",
  "stopped in the middle of iteration 3, and resumed",
]


@pytest.fixture(autouse=True)
def short(monkeypatch, tmp_path):
  """Less of everything, and an empty folder to see what is left behind in."""
  for name, value in (
    ("NUM_ENVS", 4),
    ("_ROLLOUT_STEPS", 6),
    ("_ITERATIONS", 4),
    ("_STOP_AFTER", 2),
  ):
    monkeypatch.setattr(verifying, name, value)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("TMPDIR", str(tmp_path))
  monkeypatch.setattr("tempfile.tempdir", None)


def test_a_task_of_ours_repeats_and_nothing_is_left_behind(tmp_path, small):
  # Guards: a proof that trains into the user's logs, or that compares nothing.
  checks = list(verify(task=small, resolved=MANY, seed=5, stop=StopAsked()))
  assert [check.name for check in checks] == NAMES
  for check in checks:
    assert check.equal and check.same["actor"] == 9, check
    assert {"actor", "critic", "optimizer", "curriculum", "world"} <= set(check.same)
    assert check.same["world"] > 30
  assert list(tmp_path.iterdir()) == []


drawn = itertools.count()


def draw_of_its_own(world, env_ids):
  """An event that no seed decides."""
  world.start_qvel[env_ids] += 1e-3 * next(drawn)


def test_a_task_that_does_not_repeat_is_seen(small):
  # Guards: a proof of anything.
  own = at_reset(draw_of_its_own)
  task = replace(small, episode_s=0.1, events=small.events | {"own": own})
  checks = list(verify(task=task, resolved=MANY, seed=5, stop=StopAsked()))
  assert [check.name for check in checks] == NAMES
  for check in checks:
    assert not check.equal
    assert check.different["actor/mlp.0.weight"] > 0
    assert any(path.startswith("world/") for path in check.different)


def test_each_training_is_what_its_name_says(small, monkeypatch):
  # Guards: one thread compared with one, or a run that was stopped at its end.
  runs = []

  def noted(**given):
    code = training(**given)
    (path,) = given["log_dir"].rglob("model_*.pt")
    runs.append((given["resolved"].threads, bool(given["checkpoint"]), path.name))
    return code

  training = verifying.train
  monkeypatch.setattr(verifying, "train", noted)
  list(verify(task=small, resolved=MANY, seed=5, stop=StopAsked()))
  assert runs == [
    (2, False, "model_3.pt"),
    (2, False, "model_3.pt"),
    (1, False, "model_3.pt"),
    (2, False, "model_1.pt"),
    (2, True, "model_3.pt"),
    (2, False, "model_1.pt"),
    (2, True, "model_3.pt"),
  ]


def test_a_stop_ends_it(tmp_path, small):
  # Guards: Ctrl-C that ends one training of seven, or leaves a folder in /tmp.
  stop = StopAsked()
  checks = verify(task=small, resolved=MANY, seed=5, stop=stop)
  next(checks)
  stop.signal = 2
  assert list(checks) == [] and list(tmp_path.iterdir()) == []


def test_bits_are_compared():
  # Guards: 0 for -0, a float for a double, a number that is missing, and NaN that is never itself.
  one = {"a": [torch.tensor([1.0, 2.0]), 3], "b": {"x": torch.tensor(0.0), "y": math_nan()}}
  assert compare("", one, one).same == {"a": 2, "b": 2}
  other = {"a": [torch.tensor([1.0, 2.5]), 3], "b": {"x": torch.tensor(-0.0), "z": 1}}
  check = compare("", one, other)
  assert check.same == {"a": 1}
  assert check.different == {"a/0": 0.5, "b/x": 0.0, "b/y": None, "b/z": None}
  assert not compare("", {"a": torch.zeros(2)}, {"a": torch.zeros(2).double()}).equal
  assert not compare("", {"a": torch.zeros(2)}, {"a": torch.zeros(1, 2)}).equal
  assert not compare("", {"a": 1}, {"a": True}).equal


def math_nan():
  return torch.tensor(float("nan"))


@pytest.mark.parametrize("repeats", [True, False])
def test_the_command_says_it_and_exits_with_it(small, monkeypatch, capsys, tmp_path, repeats):
  # Guards: exit code 0 for a machine on which runs do not repeat.
  own = {} if repeats else {"own": at_reset(draw_of_its_own)}
  task = replace(small, episode_s=0.1, events=small.events | own)
  monkeypatch.setattr("mjrl.tasks.build", lambda name: task)
  code = command.main(["--task", "jumper.tripod", "--json", "deep/proof.json"])
  out = capsys.readouterr().out
  assert code == (0 if repeats else 1)
  assert out.count("the same seed again: equal") == repeats
  assert ("NOT EQUAL: actor/mlp.0.weight, largest difference " in out) != repeats
  assert out.strip().endswith("equal to the bit" if repeats else "not repeat on this machine")
  written = json.loads((tmp_path / "deep" / "proof.json").read_text())
  assert written["equal"] == repeats and len(written["checks"]) == 4
  assert written["checks"][0]["same"]["critic"] > 0 or not repeats


def python(*words, cwd):
  env = os.environ | {"PYTHONPATH": os.pathsep.join([str(cwd), *filter(None, sys.path)])}
  command = [sys.executable, "-m", "mjrl", *words]
  return subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd)


def test_the_commands_are_listed_without_torch(tmp_path):
  # Guards: seconds of torch before a line of help, and a typing mistake that ends in a traceback.
  (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
  listed, helped = python(cwd=tmp_path), python("verify", "--help", cwd=tmp_path)
  assert listed.returncode == 0 and "verify" in listed.stdout, listed.stderr
  assert helped.returncode == 0 and "--seed" in helped.stdout, helped.stderr
  wrong = python("verfy", cwd=tmp_path)
  assert wrong.returncode == 2 and "did you mean 'verify'" in wrong.stderr
  task = python("verify", "--task", "jumper.tripd", cwd=tmp_path)
  assert task.returncode == 2 and "did you mean 'jumper.tripod'" in task.stderr
  seed = python("verify", "--seed", "-1", cwd=tmp_path)
  assert seed.returncode == 2 and "--seed is -1; it must be at least 0" in seed.stderr
