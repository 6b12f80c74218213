import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import pytest

from mjrl import tasks
from mjrl.cli import planned, play, prepare
from mjrl.envs.describe import describe
from mjrl.learn import checkpoints

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def clean_machine(monkeypatch, tmp_path):
  """An empty current folder, no settings and no display, whatever the user's shell has."""
  for name in list(os.environ):
    if name.startswith("MJRL_") or name in ("DISPLAY", "WAYLAND_DISPLAY"):
      monkeypatch.delenv(name)
  monkeypatch.chdir(tmp_path)


@dataclass
class Called:
  """What the work functions were given, and whether torch was started."""

  train: list = field(default_factory=list)
  play: list = field(default_factory=list)
  torch_threads: list = field(default_factory=list)


@pytest.fixture
def called(monkeypatch):
  """Two small tasks, and work functions that only note how they were called."""
  calls = Called()
  entries = {
    name: tasks.Entry(
      description=f"{name} for tests.",
      robot="jumper",
      num_envs={"native": 16, "warp": 512},
      page="mjrl.tasks.none",
    )
    for name in ("hop.flat", "hop.stairs")
  }

  def work(name, note):
    module = ModuleType(name)
    setattr(module, name.rpartition(".")[2], lambda **given: note.append(given) or 0)
    monkeypatch.setitem(sys.modules, name, module)

  tripod = tasks.build("jumper.tripod")
  envs = entries["hop.flat"].num_envs
  recipes = {name: replace(r, num_envs=envs[name]) for name, r in tripod.recipes.items()}
  tripod = replace(tripod, recipes=recipes)
  monkeypatch.setattr(tasks, "TASKS", entries)
  monkeypatch.setattr(tasks, "build", lambda name: replace(tripod, name=name))
  work("mjrl.learn.train", calls.train)
  work("mjrl.measure.play", calls.play)
  for module in (planned, play):
    monkeypatch.setattr(module, "start_torch", calls.torch_threads.append)
  monkeypatch.setattr(prepare.sys, "platform", "linux")
  return calls


@pytest.fixture
def write_checkpoint(called):
  """Write what a run of a task leaves, on native:cpu, with other numbers in its recipe."""

  def write(path, task="hop.flat", overrides=None, **recipe):
    page = tasks.build(task)
    trained = replace(page.recipes["native"], **recipe)
    saved = {"actor_state_dict": {}, "backend": "native:cpu", "curriculum": {}, "iteration": 1}
    saved |= {"task": describe(page), "recipe": describe(trained), "set": overrides or {}}
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoints.write(path, saved)

  return write


@pytest.fixture
def script(tmp_path):
  """Run a script as a user does; returns the finished process."""

  def run(name, *args, **environ):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environ
    command = [sys.executable, str(ROOT / "scripts" / name), *args]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)

  return run
