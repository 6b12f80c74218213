"""Runs that are killed, run out of disk, or are told to stop, at every moment of a save.

One process imports torch once and forks for every run, because a start costs more than the run.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from mjrl.learn import checkpoints, resume
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.learn.verify import compare
from mjrl.sim.resolve import Resolved

ITERATIONS = 4
RESOLVED = Resolved(
  backend="native", device="cpu", num_envs=4, threads=1, torch_threads=1, reasons={}
)

# What the runs share: `run(folder)` trains there, `fork(work)` does it in a process of its own and
# gives its exit code, and every step of writing a file calls `at(step, name)`.
COMMON = """
import json, os, random, resource, signal, sys, tempfile, time
from dataclasses import replace
from pathlib import Path
import torch
from mjrl import tasks
from mjrl.learn import atomic
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.runner import Runner
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved

torch.set_num_threads(1)
task = tasks.build("jumper.tripod")
recipe = replace(
  task.recipes["native"], num_envs=4, rollout_steps=4, actor_hidden=(16,), critic_hidden=(16,),
  save_every=1, epochs=1, mini_batches=1
)
at = lambda step, name: None

def run(folder, iterations=4):
  with StopAsked() as stop:
    return train(
      task=replace(task, recipes={"native": recipe}),
      resolved=Resolved(
        backend="native", device="cpu", num_envs=4, threads=1, torch_threads=1, reasons={}
      ),
      seed=0, max_iterations=iterations, checkpoint=None, log_dir=Path(folder), command="",
      options=Options(keep_last=1), stop=stop,
    )

def fork(work, said=os.devnull, wait=True):
  read, write = os.pipe()  # a console, unlike a file, has no limit
  child = os.fork()
  if child == 0:
    os.dup2(write, 1)
    code = 99
    try:
      code = work()
      sys.stdout.flush()
    finally:
      os._exit(code)
  os.close(write)
  if not wait:
    return child, read
  with open(read) as console:
    Path(said).write_text(console.read())
  return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def watched(owner, name, which):
  real = getattr(owner, name)
  def watch(*args, **more):
    at(name, which(*args, **more))
    return real(*args, **more)
  setattr(owner, name, watch)

class Halves:
  def __init__(self, file):
    self.file = file
  def __enter__(self):
    return self
  def __exit__(self, *_):
    self.file.close()
  def __getattr__(self, name):
    return getattr(self.file, name)
  def write(self, data):
    self.file.write(data[: len(data) // 2])
    self.file.flush()
    at("write", "")
    self.file.write(data[len(data) // 2 :])

last = lambda path: str(path).rpartition("/")[2]
watched(tempfile, "mkstemp", lambda **given: given["prefix"])
watched(os, "fsync", lambda handle: "")
watched(os, "chmod", lambda path, mode: "")
watched(os, "replace", lambda old, new: last(new))
watched(Path, "unlink", lambda path, **_: last(path))
fdopen = os.fdopen
os.fdopen = lambda handle, mode, *_: Halves(fdopen(handle, mode)) if "w" in mode else (
  fdopen(handle, mode)
)
"""

EVERY_STEP = (
  COMMON
  + """
steps = []
at = lambda step, name: steps.append([step, name])
code = fork(lambda: (run("rehearsal"), Path("steps.json").write_text(json.dumps(steps)))[0])
steps = json.loads(Path("steps.json").read_text())
names = [name for _, name in steps]
first, after = names.index(".resume_1.pt."), names.index(".resume_2.pt.")

def stop_at(number, moment):
  left = [moment]
  def at_step(step, name):
    if left[0] == 0:
      os.kill(os.getpid(), number)
    left[0] -= 1
  return at_step

def run_to(number, moment):
  global at
  at = stop_at(number, moment)
  return run(f"{number.name}/{moment}")

codes = {
  number.name: [fork(lambda: run_to(number, moment)) for moment in moments]
  for number, moments in (
    (signal.SIGKILL, range(first, after)),
    (signal.SIGTERM, range(first, after, 4)),
  )
}
print(json.dumps({"steps": steps, "first": first, "after": after, "codes": codes}))
"""
)

AT_ANY_TIME = (
  COMMON
  + """
rng = random.Random(0)
for k in range(6):
  child, console = fork(lambda: run(f"any/{k}", 10_000), wait=False)
  while not list(Path(f"any/{k}").glob("*/*/*/model_*.pt")):
    time.sleep(0.01)
  time.sleep(rng.uniform(0, 0.2))
  os.kill(child, signal.SIGKILL)
  os.close(console)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""
)

FULL_DISK = (
  COMMON
  + """
save = Runner.save_checkpoint

def run_with(full, bytes_left):
  def saving(runner):
    now = runner.next_iteration - 1 in full
    limit = bytes_left if now else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    save(runner)
  Runner.save_checkpoint = saving
  return run("logs-" + "-".join(map(str, full)))

codes = [
  fork(lambda: run_with([1, 2], 1_000), "passing.txt"),
  fork(lambda: run_with([2, 3], 40_000), "at the end.txt"),
  fork(lambda: run_with([3], 100)),
]
print(json.dumps(codes))
"""
)


def forked(script, folder):
  """What a script printed, as JSON, and its errors; run in a folder."""
  env = os.environ | {
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    "OMP_NUM_THREADS": "1",
  }
  done = subprocess.run(
    [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, env=env
  )
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout or "null"), done.stderr


@pytest.fixture
def tiny(small):
  """The task of the scripts."""
  recipe = replace(small.recipes["native"], num_envs=4, save_every=1, epochs=1, mini_batches=1)
  return replace(small, recipes={"native": recipe})


def go_on(task, log_dir, path, through):
  """Resume from a checkpoint through an iteration; the last checkpoint."""
  code = train(
    task=task,
    resolved=RESOLVED,
    seed=99,
    max_iterations=through - checkpoints.iteration_of(path),
    checkpoint=path,
    log_dir=log_dir,
    command="",
    options=Options(),
    stop=StopAsked(),
  )
  assert code == 0
  return checkpoints.find(log_dir, "jumper", "jumper.tripod", None)


def test_a_run_killed_at_any_step_of_a_save_is_resumed_to_the_bit(tiny, tmp_path):
  # Guards: a kill that takes the last good checkpoint, leaves half of one in its place, prunes
  # what it still needs, or leaves networks of one iteration beside the world of another.
  found, _ = forked(EVERY_STEP, tmp_path)
  steps, first, after = found["steps"], found["first"], found["after"]
  one_save = [step for step, _ in steps[first:after]]
  writing = ["mkstemp", "write", "fsync", "chmod", "replace", "fsync"]
  assert one_save == [*writing, *writing, "unlink", "unlink"]
  assert found["codes"]["SIGKILL"] == [-signal.SIGKILL] * len(one_save)
  there = steps.index(["replace", "model_1.pt"])
  straight = checkpoints.find(tmp_path / "rehearsal", "jumper", "jumper.tripod", None)
  for moment in range(first, after):
    logs = tmp_path / "SIGKILL" / str(moment)
    path = checkpoints.find(logs, "jumper", "jumper.tripod", None)
    assert path.name == ("model_1.pt" if moment > there else "model_0.pt"), steps[moment]
    world, why = resume.read(path, checkpoints.iteration_of(path), "native:cpu", 4)
    assert world is not None, (steps[moment], why)
    resumed = go_on(tiny, tmp_path / "resumed" / str(moment), path, ITERATIONS - 1)
    assert not [p for p in resumed.parent.iterdir() if p.name.endswith(".tmp")]
    different = compare("", checkpoints.read(straight), checkpoints.read(resumed)).different
    assert not [path for path in different if not path.startswith("recipe/")], steps[moment]
  # A signal that can be heard lets the save end, and stops the run after it.
  assert set(found["codes"]["SIGTERM"]) == {128 + signal.SIGTERM}
  for moment in range(first, after, 4):
    logs = tmp_path / "SIGTERM" / str(moment)
    path = checkpoints.find(logs, "jumper", "jumper.tripod", None)
    assert path.name == "model_1.pt" and checkpoints.read(path)["iteration"] == 1
    assert json.loads((path.parent / "summary.json").read_text())["stopped_by"] == "SIGTERM"


def test_a_run_killed_at_any_time_can_be_resumed(tiny, tmp_path):
  # Guards: what the list of steps overlooks.
  forked(AT_ANY_TIME, tmp_path)
  for k in range(6):
    logs = tmp_path / "any" / str(k)
    path = checkpoints.find(logs, "jumper", "jumper.tripod", None)
    iteration = checkpoints.iteration_of(path)
    assert resume.read(path, iteration, "native:cpu", 4)[0] is not None
    resumed = go_on(tiny, tmp_path / "resumed", path, iteration + 1)
    assert checkpoints.read(resumed)["iteration"] == iteration + 1


def test_a_full_disk_ends_no_run(tmp_path):
  # Guards: a traceback after hours of training, because for a minute the disk was full; and a run
  # that ends well without its last checkpoint.
  codes, errors = forked(FULL_DISK, tmp_path)
  assert codes == [0, 1, 1], errors
  runs = [tmp_path / "logs-1-2", tmp_path / "logs-2-3", tmp_path / "logs-3"]
  newest = [checkpoints.find(logs, "jumper", "jumper.tripod", None) for logs in runs]
  assert [path.name for path in newest] == ["model_3.pt", "model_1.pt", "model_2.pt"]
  for path in newest:
    checkpoints.read(path)
    assert not list(path.parent.glob(".*"))
  assert not (newest[2].parent / "summary.json").exists()  # not even that had room
  said = [(tmp_path / f"{name}.txt").read_text() for name in ("passing", "at the end")]
  for text, path, failures in zip(said, newest, (2, 3), strict=False):  # the end tries again
    (line,) = [line for line in text.splitlines() if "write the checkpoint" in line]
    assert line.startswith("could not write the checkpoint: [Errno 27] File too large: '")
    assert "model_" in line
    counts = json.loads((path.parent / "summary.json").read_text())["file_failures"]
    assert counts["write the checkpoint: File too large"] == failures
  assert "the last checkpoint could not" in said[1]
  assert f"the newest whole one is {newest[1].relative_to(tmp_path)}" in said[1]
  assert "the last checkpoint could not" not in said[0]
