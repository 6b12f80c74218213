"""One run in two processes on this machine's CPU, which end with the same networks."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.learn import checkpoints, distributed
from mjrl.learn.distributed import check_alike, others_reachable
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.sim.native import NativeBackend
from mjrl.sim.resolve import Resolved
from mjrl.sim.seeds import streams

WAIT_S = 60  # far more than it takes; what hangs is to fail

# The train command with a small recipe, whose numbers anneal and whose ladder is climbed at once.
# Each process leaves what it ended with in rank<k>.pt, and what it put into the common log.
SCRIPT = """
import math, os, signal, sys
from dataclasses import replace
import torch
from mjrl import tasks
from mjrl.cli import train

rank, build = os.environ["RANK"], tasks.build

def small(name):
  task = build(name)
  recipe = replace(task.recipes["native"], rollout_steps=4, actor_hidden=(16,),
    critic_hidden=(16,), epochs=2, mini_batches=2, save_every=10, num_envs=8, max_iterations=24)
  ladder = replace(task.curriculum, dwell_steps=8, min_holds=1, bar_base_m_s=9, bar_base_rad_s=9)
  command = replace(task.command, standing=0.0, hold_s=(1.0, 1.2))
  return replace(task, episode_s=1.1, command=command, curriculum=ladder,
    recipes={"native": recipe})

def watched(runner, *args, **kwargs):
  env, alg, sums, finished, actions = runner.mjrl_env, runner.alg, [], [], []
  end_iteration, take_finished = env.end_iteration, env.take_finished
  act, process, optimise, updates = alg.act, alg.process_env_step, alg.optimizer.step, []

  def end(index, pool):
    sums.append([])
    return end_iteration(index, lambda mine: (sums[-1].append(mine.clone()), pool(mine))[1])

  def take():
    finished.append(take_finished())
    return finished[-1]

  def note(obs):
    actions.append(act(obs))
    return actions[-1]

  def poison(obs, rewards, dones, extras):  # one process meets a bad number, in its second rollout
    if rank == "1" and len(actions) == 6:
      rewards = rewards.clone().fill_(math.nan)
    process(obs, rewards, dones, extras)

  def die(closure=None):  # within the update of iteration 4, which has four
    updates.append(None)
    if rank == "1" and "DIE" in os.environ and len(updates) == 4 * 4 + 3:
      os.kill(os.getpid(), signal.SIGKILL)
    optimise(closure)

  env.end_iteration, env.take_finished, alg.act, alg.process_env_step = end, take, note, poison
  alg.optimizer.step = die
  try:
    learn(runner, *args, **kwargs)
  finally:
    torch.save({
      "networks": alg.save(), "learning_rate": alg.learning_rate, "skipped": alg.skipped_updates,
      "curriculum": env.save_curriculum(), "numbers": env.rewards.numbers,
      "returns": runner.episodes.save()["returns"], "log": runner.last_log, "sums": sums,
      "finished": sum(finished, []), "action": actions[0], "metrics": list(env.metrics.rows),
      "rewards": list(env.rewards.rows),
    }, f"rank{rank}.pt")

torch.set_num_threads(1)
from mjrl.learn.runner import Runner
from mjrl.learn import checkpoints, run_folder
learn, Runner.learn, tasks.build = Runner.learn, watched, small

def refuse(path, data):
  raise AssertionError(f"{path} is not this process's to write")

if rank == "1":
  checkpoints.write_bytes = run_folder.write_bytes = refuse
sys.exit(train.main(sys.argv[1:]))
"""
FLAGS = ["--task", "jumper.tripod", "--num_envs", "4", "--headless", "--no-tensorboard"]


@pytest.fixture
def start(tmp_path):
  """Start processes in the test's folder; those that are left are ended with the test."""
  (tmp_path / "script.py").write_text(SCRIPT)
  started = []

  def go(command, **environ):
    process = subprocess.Popen(
      [sys.executable, "-u", *command],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      cwd=tmp_path,
      env=os.environ
      | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
      | environ,
    )
    started.append(process)
    return process

  yield go
  for process in started:
    if process.poll() is None:
      process.kill()
    process.communicate()


@pytest.fixture
def start_two(start):
  """Start the script twice, as torchrun does: rank 0 first."""

  def go(*flags):
    with socket.socket() as probe:
      probe.bind(("127.0.0.1", 0))
      port = probe.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    command = ["script.py", *FLAGS, *flags]
    return [start(command, RANK=str(k), LOCAL_RANK=str(k), **common) for k in range(2)]

  return go


def wait_for_iteration(process, number):
  """Read what a process prints until an iteration is done."""
  seen = []
  for line in process.stdout:
    seen.append(line)
    if f"Learning iteration {number}/" in line:
      return
  raise AssertionError("".join(seen) + process.stderr.read())


def same(first, second, path=""):
  """Paths at which two trees of plain values and tensors are not equal to the bit."""
  if isinstance(first, dict):
    assert first.keys() == second.keys()
    return [p for k in first for p in same(first[k], second[k], f"{path}/{k}")]
  if isinstance(first, list | tuple):
    return same(dict(enumerate(first)), dict(enumerate(second)), path)
  equal = torch.equal(first, second) if torch.is_tensor(first) else first == second
  return [] if equal else [path]


def assert_in_step(ranks):
  """Two processes hold the same networks, optimiser, learning rate, curricula and reward table."""
  for part in ("networks", "learning_rate", "skipped", "curriculum", "numbers", "returns"):
    assert same(ranks[0][part], ranks[1][part]) == [], part


def finish(tmp_path, processes):
  """Wait for both; what they printed, and what they ended with."""
  said = [process.communicate(timeout=WAIT_S) for process in processes]
  return said, [torch.load(tmp_path / f"rank{k}.pt") for k in range(2)]


def run_folder(tmp_path):
  (folder,) = tmp_path.glob("logs/jumper/jumper.tripod/*")
  return folder


def test_two_processes_learn_one_policy(tmp_path, start_two):
  # Guards: processes that drift apart and never say so (their optimisers, normalisers, learning
  # rates, curricula, a bad number met by one alone), exploration that is the same in all, and a
  # log of the first one's envs only; two processes of half the envs each whose rollouts are as
  # long as those of one with half; files that two write at once.
  iterations = 24  # the recipe's, whose 8 envs are 4 in each process
  # Three episodes, two of which are the first process's.
  processes = start_two("--seed", "3", "--eval_every", "12", "--num_eval_episodes", "3")
  said, ranks = finish(tmp_path, processes)
  assert [process.returncode for process in processes] == [0, 0], said
  assert_in_step(ranks)
  assert ranks[0]["networks"]["actor_state_dict"]["obs_normalizer.count"] == iterations * 2 * 4 * 4
  assert ranks[0]["skipped"] == 4  # two epochs of two mini-batches
  assert ranks[0]["curriculum"]["command"]["level"] > 0
  initial = {"gait_width": 3.0, "speed_width": 0.5}
  assert all(ranks[0]["curriculum"][name]["average"] != value for name, value in initial.items())
  assert not torch.equal(ranks[0]["action"], ranks[1]["action"])
  assert same(ranks[0]["sums"], ranks[1]["sums"])  # their envs are not each other's copies

  log, other_log = (rank["log"] for rank in ranks)
  assert log["eval/episodes"] == 3
  evaluated = [name for name in log if name.startswith("eval/") and name != "eval/seconds"]
  assert len(evaluated) > 10 and all(log[name] == other_log[name] for name in evaluated)
  last = [rank["sums"][-1] for rank in ranks]  # metrics, rewards, feet, ends of episodes
  metrics, rewards, feet, _ = [first + other for first, other in zip(*last, strict=True)]
  for k, name in enumerate(ranks[0]["metrics"]):
    if metrics[1, k] > 0:
      assert log[f"Metrics/{name}"] == pytest.approx(float(metrics[0, k] / metrics[1, k]))
  if rewards[-1] > 0:
    for name, ended in zip(ranks[0]["rewards"], rewards[:-1] / rewards[-1] / 1.1, strict=True):
      assert log[f"Episode_Reward/{name}"] == pytest.approx(float(ended))
  assert log["Feet/LF/duty"] == pytest.approx(float(feet[0] / feet[-1]))
  finished = [rank["finished"] for rank in ranks]
  assert all(finished)
  assert sorted(ranks[0]["returns"]) == sorted(r for part in finished for r, _ in part)
  assert log["Perf/env_steps"] == iterations * 2 * 4 * 4

  (out, err), (silent, err_of_other) = said
  assert silent == "" and err == "" and err_of_other == ""
  assert "4 (given), in each of 2 processes: 8 in all" in out
  folder = run_folder(tmp_path)
  names = sorted(path.name.split(".")[0] for path in folder.iterdir())
  assert names == [
    "events",
    "model_19",
    "model_23",
    "model_9",
    "model_best",
    "run",
    "scalars",
    "summary",
  ]
  saved = checkpoints.read(folder / f"model_{iterations - 1}.pt")
  assert same(saved["actor_state_dict"], dict(ranks[1]["networks"]["actor_state_dict"])) == []
  summary = json.loads((folder / "summary.json").read_text())
  assert summary["processes"] == 2 and summary["num_envs"] == 4 and summary["failed"] is None


def one_process(tmp_path, small, checkpoint=None):
  """A run of one process in this one; its checkpoint."""
  resolved = Resolved(
    backend="native", device="cpu", num_envs=4, threads=1, torch_threads=1, reasons={}
  )
  before = set(tmp_path.glob("**/model_*.pt"))
  train(
    task=small,
    resolved=resolved,
    seed=0,
    max_iterations=2,
    checkpoint=checkpoint,
    log_dir=tmp_path / "alone",
    command="",
    options=Options(),
    stop=StopAsked(),
  )
  (path,) = set(tmp_path.glob("**/model_*.pt")) - before
  return path


def test_a_signal_to_one_process_stops_all_and_a_resumed_run_is_in_step(tmp_path, start_two, small):
  # Guards: a process that stops alone while the others wait for it for good; a first process that
  # is ended before it has written; a run of one process that several cannot go on from.
  path = one_process(tmp_path, small)
  processes = start_two("--checkpoint", str(path), "--max_iterations", "100000")
  wait_for_iteration(processes[0], 4)
  processes[1].send_signal(signal.SIGTERM)
  said, ranks = finish(tmp_path, processes)
  assert [process.returncode for process in processes] == [128 + signal.SIGTERM] * 2, said
  assert said[0][1] == "" and said[1] == ("", "")
  assert_in_step(ranks)
  folder = run_folder(tmp_path)
  summary = json.loads((folder / "summary.json").read_text())
  assert summary["stopped_by"] == "SIGTERM"
  saved = checkpoints.read(folder / summary["checkpoint"])
  assert saved["iteration"] >= 4
  # The first two iterations were of one process and four envs, and rollouts twice as long.
  assert saved["env_steps"] == 2 * 8 * 4 + (saved["iteration"] - 1) * 2 * 4 * 4
  assert same(saved["optimizer_state_dict"], ranks[1]["networks"]["optimizer_state_dict"]) == []


def test_a_process_that_is_killed_ends_the_run(tmp_path, start, small):
  # Guards: survivors that wait for a dead process for good, hours of learning that are lost with
  # it, a stack trace of the network's, and a checkpoint that one process cannot go on from.
  launch = ["-m", "torch.distributed.run", "--standalone", "--local_addr", "127.0.0.1"]
  launch += ["--nproc_per_node", "2", "script.py", *FLAGS, "--max_iterations", "100000"]
  launcher = start(launch, DIE="1")
  wait_for_iteration(launcher, 3)
  _, err = launcher.communicate(timeout=WAIT_S)
  assert launcher.returncode != 0
  says = [line for line in err.splitlines() if line.startswith("error: ")]
  assert len(says) == 1 and "rank 0: another process of this run has died" in says[0], err
  assert not re.search(r'File ".*src/mjrl', err)  # torchrun's own report stays
  summary = json.loads((run_folder(tmp_path) / "summary.json").read_text())
  assert summary["failed"].startswith("ConnectionError")
  path = run_folder(tmp_path) / summary["checkpoint"]
  saved = checkpoints.read(path)
  assert path.name == "model_3.pt" and saved["iteration"] == 3
  assert saved["env_steps"] == 4 * 2 * 4 * 4
  # Whole iterations are in it, one of them skipped, and no part of the one in which it died.
  taken = {int(state["step"]) for state in saved["optimizer_state_dict"]["state"].values()}
  assert taken == {3 * 4}

  alone = checkpoints.read(one_process(tmp_path, small, path))
  assert alone["iteration"] == 5


def test_processes_that_were_started_differently_are_refused(monkeypatch):
  # Guards: a node with another .env file, whose part of the gradient is of another task.
  monkeypatch.setattr(distributed, "gathered", lambda setup: [setup, setup | {"num_envs": 16}])
  with pytest.raises(ValueError, match=r"rank 1 was started differently.*num_envs: 8 -> 16"):
    check_alike(num_envs=8, task={"name": "a"})
  check_alike(num_envs=16)


def test_another_error_is_not_told_as_a_lost_process():
  # Guards: a defect that is blamed on the network.
  with pytest.raises(RuntimeError, match="shapes"), others_reachable():
    raise RuntimeError("shapes do not match")


def test_each_process_draws_its_own_numbers():
  # Guards: K times the same samples, and a first process that is not the run of one.
  assert streams(7, 2) == streams(7, 2, rank=0)
  drawn = [seed for rank in range(8) for seed in streams(7, 2, rank)]
  assert len(set(drawn)) == 16


def test_an_env_that_follows_does_not_climb(small):
  # Guards: a ladder that is on two levels at once.
  ladder = replace(small.curriculum, dwell_steps=1, min_holds=1, bar_base_m_s=9, bar_base_rad_s=9)
  command = replace(small.command, standing=0.0)
  task = replace(small, episode_s=1.1, curriculum=ladder, command=command)
  levels = []
  for leads in (True, False):
    env = Env(task, NativeBackend(compile_scene(task), 2, 1), 0, leads=leads)
    for _ in range(60):
      env.step(torch.zeros(2, len(env.robot.gait_joints)))
    levels.append(env.ladder.level)
  assert levels[0] > 0 and levels[1] == 0
