"""A training run from start to end."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from tensordict import TensorDict

from mjrl.envs.env import Env
from mjrl.envs.recipe import for_envs
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import at_run
from mjrl.learn import checkpoints
from mjrl.learn import train as training
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.policy import load_policy
from mjrl.learn.profile import table
from mjrl.learn.run_folder import new_run_folder
from mjrl.learn.train import train
from mjrl.sim.native import NativeBackend
from mjrl.sim.resolve import Resolved


def resolved(num_envs=8, threads=2):
  return Resolved(
    backend="native", device="cpu", num_envs=num_envs, threads=threads, torch_threads=1, reasons={}
  )


@pytest.fixture
def run(small, tmp_path):
  """Train the small recipe; the exit code and the run's folder."""

  def go(task=small, **changes):
    options = {
      "task": task,
      "resolved": resolved(),
      "seed": 3,
      "max_iterations": None,
      "checkpoint": None,
      "log_dir": tmp_path / "logs",
      "command": "train.py --task jumper.tripod",
      "options": Options(),
      "stop": StopAsked(),
    }
    before = set((tmp_path / "logs").glob("jumper/*/*"))
    code = train(**options | changes)
    (folder,) = set((tmp_path / "logs").glob("jumper/*/*")) - before
    return code, folder

  return go


def test_a_run_leaves_its_files(run, capsys):
  # Guards: a run of which nobody can say what it was, or what came of it.
  code, folder = run()
  assert code == 0 and folder.parent.name == "jumper.tripod"
  assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?", folder.name)
  names = {path.name.split(".")[0] for path in folder.iterdir()}
  assert {"run", "model_1", "resume_1", "events", "scalars", "summary"} == names

  described = yaml.safe_load((folder / "run.yaml").read_text())
  assert described["seed"] == 3 and described["num_envs"] == 8 and described["max_iterations"] == 2
  assert (described["backend"], described["device"]) == ("native", "cpu")
  record = described["record"]
  assert record["recipe"]["rollout_steps"] == 4
  assert record["task"]["rewards"]["gait"]["weight"] == 1.0
  assert record["versions"]["mujoco"].startswith("4.")
  assert record["command"] == "train.py --task jumper.tripod"

  summary = json.loads((folder / "summary.json").read_text())
  assert summary["iterations"] == 2 and summary["env_steps"] == 2 * 4 * 8
  assert summary["stopped_by"] is None and summary["checkpoint"] == "model_1.pt"
  assert summary["tracking"]["track_linear_velocity"]["weight"] == 2.0
  assert summary["curriculum"]["Curriculum/command/level"] == 0

  saved = torch.load(folder / "model_1.pt", weights_only=True)
  assert saved["iteration"] == 1 and saved["env_steps"] == 64
  assert saved["actor_state_dict"]["mlp.0.weight"].shape == (16, 3 * 3 + 2 + 4 * 20)  # one frame
  assert saved["task"] == record["task"] and saved["recipe"] == record["recipe"]
  out = capsys.readouterr().out
  for label in (
    "Mean action std",
    "Mean value loss",
    "Metrics/wrong_feet",
    "ETA",
    "Steps per second",
  ):
    assert out.count(f"{label}:") == 2, label
  assert "Learning iteration 0/1" in out and "Learning iteration 1/1" in out
  assert "Updates skipped" not in out  # which is a line where there are any
  assert str(folder / "model_1.pt") in out


def test_two_runs_at_once_get_two_folders(run):
  # Guards: a run that writes into another's folder because both began in the same second.
  folders = [run(max_iterations=1)[1] for _ in range(2)]
  assert folders[0] != folders[1]


def test_runs_that_begin_at_once_get_a_folder_each(tmp_path, monkeypatch):
  # Guards: the same, of runs that look at the same moment, before any has made its folder.
  barrier, mkdir = threading.Barrier(16), Path.mkdir

  def slow(*args, **more):
    time.sleep(0.01)
    mkdir(*args, **more)

  monkeypatch.setattr(Path, "mkdir", slow)

  def begin(_):
    barrier.wait()
    return new_run_folder(tmp_path, "jumper", "jumper.tripod")

  with ThreadPoolExecutor(16) as pool:
    folders = list(pool.map(begin, range(16)))
  assert len(set(folders)) == 16


def test_a_stop_while_building_leaves_no_folder(run, tmp_path, capsys):
  # Guards: an empty run folder that looks like a run, after Ctrl-C in the first second.
  stop = StopAsked()
  stop.signal = signal.SIGINT
  with pytest.raises(ValueError, match="unpack"):  # there is no folder
    run(stop=stop)
  assert "stopped before the run began: no folder was made" in capsys.readouterr().out


def test_a_signal_while_tensorboard_starts_is_heard(run, monkeypatch):
  # Guards: a stop before the first iteration that leaves a server running, or no summary.
  real, servers = subprocess.Popen, []

  def interrupted(*args, **more):
    servers.append(real(*args, **more))
    signal.raise_signal(signal.SIGTERM)
    return servers[0]

  monkeypatch.setattr(training, "write_run", lambda *_, **__: None)  # it asks git, by Popen too
  monkeypatch.setattr(subprocess, "Popen", interrupted)
  with StopAsked() as stop:
    code, folder = run(stop=stop, options=Options(tensorboard_port=6200))
  assert code == 128 + signal.SIGTERM
  assert servers[0].poll() is not None
  summary = json.loads((folder / "summary.json").read_text())
  assert summary["stopped_by"] == "SIGTERM" and summary["iterations"] == 0
  assert summary["checkpoint"] is None


def weights(folder, name):
  saved = checkpoints.read(folder / name)
  return {
    **saved["actor_state_dict"],
    **{f"c.{k}": v for k, v in saved["critic_state_dict"].items()},
  }


def test_the_seed_decides_on_any_number_of_threads(run):
  # Guards: the same command, another policy (mjlab#1023).
  first, again = (weights(run(resolved=resolved(threads=t))[1], "model_1.pt") for t in (1, 2))
  other = weights(run(seed=4)[1], "model_1.pt")
  assert all(torch.equal(value, again[key]) for key, value in first.items())
  assert not torch.equal(first["mlp.0.weight"], other["mlp.0.weight"])


def test_a_resumed_run_goes_on(run, small, capsys):
  # Guards: an index that repeats, a learning rate or a curriculum that jumps back (rsl_rl#221,
  # mjlab#802, mjlab PR 484), a run that overwrites the one it came from.
  recipe = replace(small.recipes["native"], desired_kl=1e-9, epochs=4)  # so that the rate falls
  task = replace(small, recipes={"native": recipe})
  _, folder = run(task, max_iterations=3)
  path = folder / "model_2.pt"
  saved = checkpoints.read(path)
  saved["curriculum"]["command"] |= {"level": 2, "steps": 100}
  saved["curriculum"]["gait_width"] |= {"average": 1.0}
  checkpoints.write(path, saved)
  before = {p.name: p.read_bytes() for p in folder.iterdir()}
  capsys.readouterr()

  _, second = run(task, checkpoint=path, max_iterations=1)
  out = capsys.readouterr().out
  assert f"resumed {path} at iteration 3; running 1 more, through 3" in out
  assert "Learning iteration 3/3" in out and out.count("Learning iteration") == 1
  assert second != folder and {p.name: p.read_bytes() for p in folder.iterdir()} == before
  resumed = checkpoints.read(second / "model_3.pt")
  assert resumed["iteration"] == 3 and resumed["env_steps"] == 4 * 4 * 8
  assert resumed["curriculum"]["command"]["level"] == 2
  assert resumed["curriculum"]["command"]["steps"] == 104
  assert resumed["curriculum"]["gait_width"]["next_iteration"] == 4
  assert 0.9 < resumed["curriculum"]["gait_width"]["average"] < 1.3
  rates = [c["optimizer_state_dict"]["param_groups"][0]["lr"] for c in (saved, resumed)]
  assert rates[0] < 5e-4 and rates[1] <= rates[0]
  assert yaml.safe_load((second / "run.yaml").read_text())["checkpoint"] == str(path)


def test_what_is_restored_is_what_was_saved(small, make_runner):
  # Guards: networks that are loaded and an optimiser that is not.
  runner, other = make_runner(small), make_runner(small, seed=1)
  runner.learn(2)
  other.restore(checkpoints.read(runner.saves.newest), None)
  assert other.next_iteration == 2 and other.env_steps == runner.env_steps
  assert other.alg.learning_rate == runner.alg.learning_rate
  first, second = runner.alg.save(), other.alg.save()
  for part in ("actor_state_dict", "critic_state_dict"):
    assert all(torch.equal(value, second[part][key]) for key, value in first[part].items())
  for key, state in first["optimizer_state_dict"]["state"].items():
    for name, value in state.items():
      assert torch.equal(value, second["optimizer_state_dict"]["state"][key][name]), name
  assert other.mjrl_env.save_curriculum() == runner.mjrl_env.save_curriculum()
  other.learn(1)  # and it can go on
  assert other.saves.newest.name == "model_2.pt"


def test_checkpoints_are_saved_every_so_often(small, make_runner):
  # Guards: a crash that costs the whole run.
  runner = make_runner(small, save_every=2)
  runner.learn(5)
  assert sorted(p.name for p in runner.folder.glob("model_*.pt")) == [
    "model_1.pt",
    "model_3.pt",
    "model_4.pt",
  ]


written = []


def note(moment):
  """A task's own event that wants every checkpoint."""
  written.append(moment.checkpoint.name)


def test_each_checkpoint_is_written_once(small, make_runner):
  # Guards: a task's own event that exports, or uploads, the last one twice.
  written.clear()
  task = replace(small, events=small.events | {"note": at_run("checkpoint", note)})
  make_runner(task, save_every=2).learn(4)
  assert written == ["model_1.pt", "model_3.pt"]


def test_a_stop_ends_after_the_step_and_saves(small, make_runner, stop_when):
  # Guards: a stop that waits for the end of the run, or forgets what was learned.
  runner, asked = make_runner(small), []

  def stop():
    asked.append(None)
    return len(asked) > 12

  runner.learn(100, stop=stop_when(stop))
  assert len(asked) == 13
  assert runner.next_iteration == 2  # in the middle of the third rollout of four steps
  assert runner.saves.newest.name == f"model_{runner.next_iteration - 1}.pt"
  assert checkpoints.read(runner.saves.newest)["iteration"] == runner.next_iteration - 1


@pytest.mark.parametrize("kind", ["cut short", "another task", "other networks"])
def test_a_wrong_checkpoint_stops_before_anything_is_built(run, small, tmp_path, monkeypatch, kind):
  # Guards: minutes of building before "size mismatch", and an empty run folder in the logs.
  _, folder = run(max_iterations=1)
  path = folder / "model_0.pt"
  saved = checkpoints.read(path)
  if kind == "cut short":
    path.write_bytes(path.read_bytes()[:1000])
  if kind == "another task":
    checkpoints.write(path, {**saved, "task": {**saved["task"], "name": "jumper.flat"}})
  if kind == "other networks":
    checkpoints.write(path, {**saved, "recipe": {**saved["recipe"], "actor_hidden": [17]}})

  def built(*_):
    raise AssertionError("something was built")

  monkeypatch.setattr(training, "compile_scene", built)
  folders = set((tmp_path / "logs").glob("*/*/*"))
  with pytest.raises(ValueError, match=re.escape(str(path))):
    run(checkpoint=path)
  assert set((tmp_path / "logs").glob("*/*/*")) == folders


SCRIPT = """
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from mjrl import tasks
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved

task = tasks.build("jumper.tripod")
recipe = replace(task.recipes["native"], rollout_steps=4, actor_hidden=(16,), critic_hidden=(16,))
with StopAsked() as stop:
  sys.exit(train(
    task=replace(task, recipes={"native": recipe}),
    resolved=Resolved(
      backend="native", device="cpu", num_envs=4, threads=1, torch_threads=1, reasons={}
    ),
    seed=0, max_iterations=100_000, checkpoint=None, log_dir=Path("logs"), command="",
    options=Options(), stop=stop,
  ))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_exits(tmp_path, number):
  # Guards: Ctrl-C that is ignored, loses the work, or ends in a stack trace (IsaacLab#178).
  process = subprocess.Popen(
    [sys.executable, "-u", "-c", SCRIPT],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    cwd=tmp_path,
    env=os.environ
    | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
  )
  for line in process.stdout:
    if "Learning iteration 2/" in line:
      process.send_signal(number)
      break
  out, err = process.communicate(timeout=60)
  assert process.returncode == 128 + number, err
  assert "Traceback" not in err
  (folder,) = tmp_path.glob("logs/jumper/jumper.tripod/*")
  (path,) = folder.glob("model_*.pt")
  assert checkpoints.read(path)["iteration"] >= 2
  summary = json.loads((folder / "summary.json").read_text())
  assert summary["stopped_by"] == number.name and summary["checkpoint"] == path.name
  assert f"stopped by {number.name}" in out


def test_the_policy_of_a_checkpoint_is_the_one_that_was_trained(small, make_runner):
  # Guards: a replay that feeds raw observations to a policy trained on normalised ones
  # (playground#267), or that samples.
  runner = make_runner(small)
  runner.learn(3)
  saved = checkpoints.read(runner.saves.newest)
  assert saved["recipe"]["history"] == 1
  backend = NativeBackend(compile_scene(small), 5, 1)
  env = Env(small, backend, 9, history=saved["recipe"]["history"])
  policy = load_policy(saved, env)
  actor = runner.alg.get_policy()
  actor.eval()
  assert actor.obs_normalizer.count > 0
  for _ in range(4):
    observations = env.observations()
    with torch.no_grad():
      expected = actor(TensorDict(observations, batch_size=[5]))
    action = policy(observations)
    assert torch.equal(action, expected) and torch.equal(action, policy(observations))
    env.step(action)


def test_a_policy_of_another_width_is_refused(small, make_runner):
  # Guards: "size mismatch" and a page of numbers.
  runner = make_runner(small)
  runner.learn(1)
  saved = checkpoints.read(runner.saves.newest)
  env = Env(small, NativeBackend(compile_scene(small), 2, 1), 0, history=5)
  with pytest.raises(ValueError, match=r"policy does not fit task jumper\.tripod"):
    load_policy(saved, env)


def test_episodes_and_rewards_reach_the_log(small, make_runner):
  # Guards: a mean reward that is of nothing.
  task = replace(small, episode_s=0.1)
  runner = make_runner(task)
  runner.learn(3)
  log = runner.last_log
  assert log["Train/mean_episode_length"] == 5
  assert log["Episode_Termination/time_out"] == 1
  assert log["Episode_Reward/upright"] == pytest.approx(1, abs=0.05)
  assert log["Perf/env_steps"] == 3 * 4 * 8 and log["Policy/mean_std"] == pytest.approx(
    0.5, abs=0.05
  )
  assert runner.episodes.first_reward is not None


def test_the_log_reaches_tensorboard(small, make_runner):
  # Guards: curves that miss what the console shows, or start at iteration 1.
  from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

  runner = make_runner(small)
  runner.learn(2)
  events = EventAccumulator(str(runner.folder))
  events.Reload()
  assert set(runner.last_log) <= set(events.Tags()["scalars"])
  points = events.Scalars("Policy/mean_std")
  assert [p.step for p in points] == [0, 1]
  assert points[1].value == pytest.approx(runner.last_log["Policy/mean_std"])


def test_a_profile_that_is_lost_is_said(run, tmp_path, capsys):
  # Guards: exit code 0 and a word about the console, with nothing at --profile_output.
  (tmp_path / "file").write_text("")
  path = tmp_path / "file" / "times.json"
  code, folder = run(options=Options(profile=True, profile_output=path))
  assert code == 1 and (folder / "summary.json").exists()
  out = capsys.readouterr().out
  (line,) = (line for line in out.splitlines() if "could not" in line)
  assert line.startswith("could not write the profile: ") and not line.endswith("goes on")
  assert f"profile: {path}" not in out


def test_fewer_envs_make_longer_rollouts(small, run):
  # Guards: a run of 64 envs that learns from half the samples, because the recipe is made for 128.
  _, folder = run(resolved=resolved(num_envs=3))
  described = yaml.safe_load((folder / "run.yaml").read_text())
  assert described["record"]["recipe"]["rollout_steps"] == 11  # four steps of eight envs
  recipe = small.recipes["native"]
  lengths = [for_envs(recipe, num_envs).rollout_steps for num_envs in (1, 4, 8, 32)]
  assert lengths == [32, 8, 4, 4]


def test_a_run_shows_its_profile_whatever_its_end(run, tmp_path, capsys, monkeypatch):
  # Guards: a profile that a stopped run keeps to itself.
  path = tmp_path / "new" / "times.json"
  options = Options(profile=True, profile_output=path)
  asked = []
  monkeypatch.setattr(
    training.StopAsked, "__bool__", lambda _: asked.append(None) or len(asked) > 5 * 4 - 2
  )
  run(max_iterations=100, options=options)
  out, report = capsys.readouterr().out, json.loads(path.read_text())
  assert table(report) in out and f"profile: {path}" in out
  assert "profile of 3 iterations, after 1 of warm-up, not counted" in out

  asked.clear()
  run(max_iterations=1, options=options)  # and one that was its warm-up alone
  assert "profile: nothing to show" in capsys.readouterr().out
  assert json.loads(path.read_text())["run"] is None
