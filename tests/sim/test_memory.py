import pytest

from mjrl import tasks
from mjrl.envs.scene import compile_scene
from mjrl.sim.memory import available_bytes, check_memory, engine_bytes_per_env
from mjrl.sim.native import NativeBackend

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


def test_the_estimate_is_not_below_what_the_engine_takes():
  # Guards: an estimate that lets through what will not fit, once the model or the engine grows.
  import psutil

  model = compile_scene(tasks.build("jumper.tripod"))
  envs = 400
  before = psutil.Process().memory_info().rss
  backend = NativeBackend(model, envs, threads=1)
  backend.step(4)
  taken = psutil.Process().memory_info().rss - before
  estimated = envs * engine_bytes_per_env(model)
  assert 0.4 * estimated < taken < estimated


def test_memory_is_what_the_machine_has_left():
  # Guards: a limit in the wrong unit.
  assert 50 * MIB < available_bytes() < 2**50
