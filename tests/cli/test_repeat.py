"""A run is repeated by its run.yaml, to the bit, and goes on as what it was."""

import json
import sys

import pytest
import torch
import yaml

from mjrl.cli import planned, train
from mjrl.learn import checkpoints

TINY = {
  "recipe.rollout_steps": 4,
  "recipe.actor_hidden": "[16]",
  "recipe.critic_hidden": "[16]",
  "recipe.epochs": 1,
  "recipe.mini_batches": 2,
}
QUIET = ["--headless", "--no-tensorboard"]

MODULE = """
def shake(moment, *, by):  # a run without it is another run
  moment.env.commands.value = moment.env.commands.value + by
"""


def sets(values):
  return [word for path, value in values.items() for word in ("--set", f"{path}={value}")]


@pytest.fixture
def run(monkeypatch, tmp_path):
  """Train as the command does; the new run's folder."""
  monkeypatch.setattr(planned, "start_torch", lambda threads: torch.set_num_threads(1))
  monkeypatch.setattr(sys, "path", [*sys.path])

  def go(*argv):
    before = set(tmp_path.glob("logs/jumper/*/*"))
    assert train.main([*QUIET, *argv]) == 0
    (folder,) = set(tmp_path.glob("logs/jumper/*/*")) - before
    return folder

  yield go
  sys.modules.pop("shaking", None)


def tensors(value, path=""):
  if isinstance(value, dict):
    return {k: v for key, item in value.items() for k, v in tensors(item, f"{path}/{key}").items()}
  return {path: value}


def different(one, other, name):
  """Paths at which two runs' checkpoints of a name are not equal to the bit."""
  first, second = (tensors(checkpoints.read(folder / name)) for folder in (one, other))
  assert first.keys() == second.keys()
  return [
    path
    for path, value in first.items()
    if not (torch.equal(value, second[path]) if torch.is_tensor(value) else value == second[path])
  ]


def test_a_run_and_its_continuation_are_repeated_to_the_bit(run, tmp_path, capsys):
  # Guards: a run.yaml that lacks a seed, an override or an event, and repeats something else.
  (tmp_path / "shaking.py").write_text(MODULE)
  events = {"shake": {"call": "shaking:shake", "when": "iteration", "params": {"by": 0.1}}}
  config = {"task": "jumper.tripod", "num_envs": 8, "set": {"rewards.foot_slip.weight": -0.2}}
  (tmp_path / "some.yaml").write_text(yaml.safe_dump({**config, "events": events}))
  own = {**TINY, "events.push": "null", "recipe.learning_rate": "1e-3"}

  first = run("--config", "some.yaml", *sets(own), "--max_iterations", "2")
  again = run("--config", str(first / "run.yaml"))
  assert "may not repeat" not in capsys.readouterr().out
  assert different(first, again, "model_1.pt") == []
  unlike = run("--config", str(first / "run.yaml"), "--seed", "5")
  assert different(first, unlike, "model_1.pt") != []

  # A resumed run keeps what the first one set, and says which checkpoint it came from.
  (tmp_path / "some.yaml").write_text(yaml.safe_dump({"events": events}))
  go_on = ["--task", "jumper.tripod", "--num_envs", "8", "--max_iterations", "1"]
  resumed = run(*go_on, "--checkpoint", str(first), "--config", "some.yaml")
  assert "set by the checkpoint's run: rewards.foot_slip.weight=-0.2" in capsys.readouterr().out
  described = yaml.safe_load((resumed / "run.yaml").read_text())
  assert described["checkpoint"] == str(first / "model_1.pt")
  saved = [
    checkpoints.read(folder / name)["set"]
    for folder, name in ((first, "model_1.pt"), (resumed, "model_2.pt"))
  ]
  assert saved[0] == saved[1] == described["set"]
  assert saved[0] == {
    "rewards.foot_slip.weight": -0.2,
    "recipe.rollout_steps": 4,
    "recipe.actor_hidden": [16],
    "recipe.critic_hidden": [16],
    "recipe.epochs": 1,
    "recipe.mini_batches": 2,
    "events.push": None,
    "recipe.learning_rate": 0.001,
  }
  resumed_again = run("--config", str(resumed / "run.yaml"))
  assert "may not repeat" not in capsys.readouterr().out
  assert different(resumed, resumed_again, "model_2.pt") == []

  # And whoever reads the results can see what was not the task's own.
  summary = json.loads((resumed / "summary.json").read_text())
  assert (
    "rewards.foot_slip.weight: -0.1 -> -0.2 (set by the checkpoint's run)"
    in (summary["departures"])
  )
  record = yaml.safe_load((resumed / "run.yaml").read_text())["record"]
  assert record["departures"] == summary["departures"]


def test_what_has_changed_since_is_said(run, tmp_path, capsys):
  # Guards: a "repeated" run on another MuJoCo, or of a page that was edited, that nobody notices.
  tiny = ["--task", "jumper.tripod", "--num_envs", "8"]
  folder = run(*tiny, *sets(TINY), "--max_iterations", "1")
  content = yaml.safe_load((folder / "run.yaml").read_text())
  content["record"]["versions"]["mujoco"] = "3.9"
  content["record"]["task"]["rewards"]["gait"]["weight"] = 7.0
  content["record"]["recipe"]["epochs"] = 3
  (tmp_path / "then.yaml").write_text(yaml.safe_dump(content))
  capsys.readouterr()
  assert train.main([*QUIET, "--config", "then.yaml", "--dry-run"]) == 0
  lines = [line for line in capsys.readouterr().out.splitlines() if "may not repeat" in line]
  assert [line.rpartition("repeat: ")[2].split(" -> ")[0] for line in lines] == [
    "task.rewards.gait.weight: 7.0",
    "recipe.epochs: 3",
    "versions.mujoco: 3.9",
  ]
