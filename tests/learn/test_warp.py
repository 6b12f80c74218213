"""A training on the warp engine, from the flags' values to the files."""

import json

import pytest
import torch
import yaml

from mjrl.learn import checkpoints
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.sim.resolve import resolve


@pytest.fixture
def on_warp(small, tmp_path):
  """Train the small task on warp:cpu, with sizes that other tests have compiled kernels for."""
  task = small.__class__(**vars(small) | {"recipes": {"warp": small.recipes["native"]}})

  def run(**more):
    resolved = resolve(
      backend="warp",
      device="cpu",
      num_envs=8,
      default_num_envs={},
      nconmax=more.pop("nconmax", 24),
      njmax=80,
    )
    given = {"seed": 1, "max_iterations": None, "checkpoint": None}
    given |= {"options": Options(), "stop": StopAsked(), "command": "train.py"}
    code = train(task=task, resolved=resolved, log_dir=tmp_path, **given | more)
    assert code == 0
    (newest,) = sorted(tmp_path.rglob("summary.json"), key=lambda p: p.stat().st_mtime)[-1:]
    return newest.parent

  return run


def test_a_training_on_warp_leaves_its_files_and_can_be_resumed(on_warp, capsys):
  # Guards: an engine that steps in a test, and cannot be trained on or gone on with.
  first = on_warp()
  summary = json.loads((first / "summary.json").read_text())
  assert (summary["backend"], summary["iterations"], summary["lost"]) == ("warp:cpu", 2, {})
  before = checkpoints.read(first / "model_1.pt")
  assert all(v.isfinite().all() for v in before["actor_state_dict"].values())
  assert "24 contacts and 80 constraint rows per env (given)" in capsys.readouterr().out
  config = yaml.safe_load((first / "run.yaml").read_text())
  assert (config["nconmax"], config["njmax"]) == (24, 80)  # or a repeated run would measure anew
  second = on_warp(checkpoint=first / "model_1.pt", max_iterations=1)
  assert "the world goes on where it was" in capsys.readouterr().out
  after = checkpoints.read(second / "model_2.pt")["actor_state_dict"]
  weights = "mlp.0.weight"
  assert not torch.equal(after[weights], before["actor_state_dict"][weights])


def test_lost_contacts_stand_in_the_log_once_and_in_the_summary(on_warp, capsys):
  # Guards: a run that learned to walk on feet that sink in, and looks like any other.
  folder = on_warp(nconmax=1)
  out = capsys.readouterr().out
  assert out.count("contacts lost in ") == 1 and "cure: --nconmax" in out
  (lost,) = json.loads((folder / "summary.json").read_text())["lost"].items()
  assert lost[0] == "contacts; cure: --nconmax" and lost[1] > 8
