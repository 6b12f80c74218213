import subprocess
import sys

import pytest

from mjrl import tasks
from mjrl.envs.scene import compile_scene
from mjrl.sim import warp_sizes
from mjrl.sim.memory import available_bytes, check_memory, check_room
from mjrl.sim.resolve import Resolved

MIB = 2**20


def test_a_request_that_fits_is_let_through():
  # Guards: a guess so careful that nobody can use the machine.
  check_memory(80, 1 * MIB, available=100 * MIB)


def test_a_request_that_does_not_fit_names_what_would():
  # Guards: a machine that swaps for a minute and then kills the run.
  with pytest.raises(ValueError, match=r"--num_envs 101 needs about 0\.1 GiB.*at most 90 envs fit"):
    check_memory(101, 1 * MIB, available=100 * MIB)
  check_memory(20, 1 * MIB, available=100 * MIB, fixed_bytes=60 * MIB)
  with pytest.raises(ValueError, match=r"needs about 0\.4 GiB.*at most 30 envs fit"):
    check_memory(350, 1 * MIB, available=100 * MIB, fixed_bytes=60 * MIB)
  with pytest.raises(ValueError, match="not even one env fits"):
    check_memory(1, 1 * MIB, available=100 * MIB, fixed_bytes=95 * MIB)


def test_processes_of_a_node_share_its_memory():
  # Guards: two processes that each take what is free.
  check_memory(45, 1 * MIB, available=100 * MIB, sharing=2)
  with pytest.raises(ValueError, match=r"in each of 2 processes.*at most 45 envs fit"):
    check_memory(46, 1 * MIB, available=100 * MIB, sharing=2)


TAKES = """
import psutil
from mjrl import tasks
from mjrl.envs.scene import compile_scene
from mjrl.sim.memory import engine_bytes_per_env
from mjrl.sim.native import NativeBackend

model = compile_scene(tasks.build("jumper.tripod"))
before = psutil.Process().memory_info().rss
backend = NativeBackend(model, 400, threads=1)
backend.step(4)
print(psutil.Process().memory_info().rss - before, 400 * engine_bytes_per_env(model))
"""


def test_the_estimate_is_not_below_what_the_engine_takes():
  # Guards: an estimate that lets through what will not fit, once the model or the engine grows.
  # In a process of its own: here, the engine may get memory that other tests have given back.
  done = subprocess.run([sys.executable, "-c", TAKES], capture_output=True, text=True, check=True)
  taken, estimated = map(int, done.stdout.split())
  assert 0.4 * estimated < taken < estimated


def test_memory_is_what_the_machine_has_left():
  # Guards: a limit in the wrong unit.
  assert 50 * MIB < available_bytes() < 2**50


def resolved(**given):
  return Resolved(
    **{"backend": "warp", "device": "cpu", "threads": 0, "torch_threads": 1, "reasons": {}} | given
  )


def test_warp_s_need_is_estimated_from_its_arrays():
  # Guards: 100 000 envs that are let through because another engine would hold them.
  model = compile_scene(tasks.build("jumper.tripod"))
  check_room(resolved(num_envs=8), model)
  with pytest.raises(
    ValueError, match=r"--num_envs 100000000 needs about .* GiB are free; at most"
  ):
    check_room(resolved(num_envs=10**8), model)
  few, many = (warp_sizes.bytes_per_env(model, nconmax=nconmax, njmax=80) for nconmax in (16, 1016))
  assert 20 * 1024 < few < MIB and many - few > 1000 * 200  # a contact is that large


def test_the_memory_of_the_gpu_is_asked(monkeypatch):
  # Guards: the host's memory taken for the GPU's.
  model = compile_scene(tasks.build("jumper.tripod"))
  monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (100 * MIB, 200 * MIB))
  gpu = resolved(device="cuda:1", num_envs=5000)
  with pytest.raises(
    ValueError, match=r"needs about .* and 0\.1 GiB are free on cuda:1; at most \d"
  ):
    check_room(gpu, model)
