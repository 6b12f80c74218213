import contextlib
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mjrl import tasks
from mjrl.envs.task import noiseless, obs
from mjrl.envs.terms import observations as o
from mjrl.export import player
from mjrl.export.export import export
from mjrl.export.reference import commands
from mjrl.export.runs import drive, open_env, quiet
from mjrl.learn import checkpoints
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.policy import NetworkPolicy, load_network
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread():
  """As the commands do: two pools of threads that wait for one another are 15 times slower."""
  torch.set_num_threads(1)


def tiny(task, **changes):
  """A task whose recipe is a moment's work."""
  recipe = replace(
    task.recipes["native"],
    num_envs=8,
    rollout_steps=4,
    actor_hidden=(16,),
    critic_hidden=(16,),
    epochs=1,
    mini_batches=2,
    **changes,
  )
  return replace(task, recipes={"native": recipe})


def trained(task, folder):
  """A checkpoint of a task after two iterations."""
  with contextlib.redirect_stdout(io.StringIO()):
    train(
      task=task,
      resolved=Resolved(
        backend="native", device="cpu", num_envs=8, threads=1, torch_threads=1, reasons={}
      ),
      seed=0,
      max_iterations=2,
      checkpoint=None,
      log_dir=folder,
      command="",
      options=Options(),
      stop=StopAsked(),
    )
  (checkpoint,) = folder.glob("*/*/*/model_*.pt")
  return checkpoint


def exported(task, checkpoint, **changes):
  """Where an export was written."""
  given = {"out": None, "format": "onnx", "allow_unmeasurable": False} | changes
  assert export(task=task, checkpoint=checkpoint, **given) == 0
  return given["out"] or checkpoint.parent / "exported"


def read(folder):
  return json.loads((folder / "layout.json").read_text(encoding="utf-8"))


@dataclass
class Exported:
  """A checkpoint, its export, and what the export was compared with."""

  task: Any
  checkpoint: Path
  folder: Path

  def __post_init__(self):
    saved = checkpoints.read(self.checkpoint)
    self.env = open_env(quiet(self.task), saved["recipe"]["history"])
    self.model = self.env.backend.model
    self.network = load_network(saved, self.env)
    self.frames = drive(self.env, NetworkPolicy(self.network), commands(read(self.folder)))

  @property
  def layout(self):
    """A copy to break."""
    return read(self.folder)

  def controller(self, layout):
    return player.Controller(layout, player.Network(self.folder / "actor.onnx", layout))

  def simulation(self, layout):
    return player.Simulation(self.folder / "scene.xml", layout)


@pytest.fixture(scope="session")
def make():
  """How to come by tasks, checkpoints and exports."""
  return SimpleNamespace(tiny=tiny, trained=trained, exported=exported, read=read)


@pytest.fixture(scope="session")
def tripod(tmp_path_factory):
  """An export of a policy that hardly learned anything."""
  task = tiny(tasks.build("jumper.tripod"))
  checkpoint = trained(task, tmp_path_factory.mktemp("some logs"))
  return Exported(task, checkpoint, exported(task, checkpoint, format="torchscript"))


@pytest.fixture(scope="session")
def everything():
  """A policy that reads each row of the library, in every way that a table can ask for."""
  task = tasks.build("jumper.tripod")
  clean = noiseless(task.observations["policy"])
  policy = {
    **task.observations["policy"],
    "joint_vel": replace(clean["joint_vel"], scale=0.05, clip=(-2.0, 3.0), delay_s=0.02),
    "base_lin_vel": obs(o.lin_vel_b, history=2),
    "exact": obs(o.joint_offset, delay_s=0.04, history=3),
    "height": obs(o.foot_height, noise=0.01, scale=10.0),
    "air": obs(o.foot_air_time, history=2),
    "contact": obs(o.foot_contact),
    "force": obs(o.foot_force_log, clip=(-1.5, 1.5)),
  }
  # Actions so large that feet leave the ground.
  return replace(
    tiny(task, history=None),
    observations={"policy": policy, "critic": noiseless(policy)},
  )
