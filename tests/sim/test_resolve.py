import os
import re
import subprocess
import sys

import pytest

from mjrl.sim import cpus, resolve
from mjrl.sim.cpus import usable_cpus
from mjrl.sim.cuda import graphs_in_words
from mjrl.sim.ranks import ALONE, Ranks
from mjrl.sim.resolve import BackendUnavailable

DEFAULTS = {"native": 128, "warp": 4096}


@pytest.fixture
def machine(monkeypatch):
  """Pretend a machine: its usable CPUs, CUDA devices, mujoco_warp, and CUDA graphs."""

  def pretend(*, cpus=8, cuda=0, warp_installed=True, graphs="on"):
    monkeypatch.setattr(resolve, "usable_cpus", lambda: cpus)
    found = f"{cuda} CUDA devices" if cuda else "no CUDA driver"
    monkeypatch.setattr(resolve, "cuda_devices", lambda: (cuda, found))
    spec = object() if warp_installed else None
    monkeypatch.setattr(resolve.importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(resolve, "cuda_graphs", lambda index: graphs)

  return pretend


def asked(**given):
  return resolve.resolve(**{"num_envs": None, "default_num_envs": DEFAULTS} | given)


def test_auto_takes_the_cpu_where_cuda_is_missing_and_says_so(machine):
  # Guards: a laptop user gets an IndexError, or CPU training with a GPU's env count.
  machine(cuda=0)
  got = asked()
  assert (got.name, got.device, got.num_envs) == ("native:cpu", "cpu", 128)
  assert got.reasons["backend"] == "auto: no CUDA driver"


def test_auto_takes_cuda_where_it_is_there(machine):
  # Guards: an A100 idles while the CPU trains.
  machine(cuda=2)
  got = asked()
  assert (got.name, got.device, got.num_envs, got.threads) == ("warp:cuda", "cuda:0", 4096, 0)


def test_native_runs_on_a_cuda_machine(machine):
  # Guards: a GPU machine on which the CPU cannot be asked for.
  machine(cuda=1)
  got = asked(backend="native")
  assert got.name == "native:cpu" and got.reasons["backend"] == "given" and got.cuda_graphs == ""


def test_another_device_than_the_first_can_be_asked_for(machine):
  # Guards: two trainings on one GPU while the other idles.
  machine(cuda=2, graphs="off: no memory pools")
  got = asked(device="cuda:1")
  assert (got.name, got.device) == ("warp:cuda", "cuda:1")
  assert got.reasons["backend"] == "auto: device cuda:1 was given"
  assert got.cuda_graphs == "off: no memory pools"


def test_sizes_are_for_warp_alone(machine):
  # Guards: a flag that does nothing.
  machine(cuda=1)
  got = asked(nconmax=24, njmax=96)
  assert (got.nconmax, got.njmax) == (24, 96)
  with pytest.raises(ValueError, match="--njmax has no effect on native"):
    asked(backend="native", njmax=96)


@pytest.mark.parametrize(
  ("first", "engine", "got"),
  [
    ({"backend": "native"}, "warp", ("warp:cuda", "cuda:0", 0)),
    ({"backend": "native"}, "warp:cuda:1", ("warp:cuda", "cuda:1", 0)),
    ({"backend": "native"}, "warp:cpu", ("warp:cpu", "cpu", 0)),
    ({}, "native", ("native:cpu", "cpu", 5)),
    ({}, "warp:cpu", ("warp:cpu", "cpu", 0)),
  ],
)
def test_an_engine_to_compare_with_has_as_many_envs(machine, first, engine, got):
  # Guards: two engines compared with different numbers of envs, or one compared with itself.
  machine(cuda=2)
  one = asked(num_envs=7, **first)
  other = resolve.resolve_other(engine, one, cpu_threads=5)
  assert (other.name, other.device, other.threads) == got and other.num_envs == 7
  assert ("WARNING" in other.reasons["device"]) == (engine == "warp:cpu")


@pytest.mark.parametrize(
  ("pretended", "engine", "error", "says"),
  [
    ({}, "warp", BackendUnavailable, "no CUDA driver; compare with warp:cpu, which is slow"),
    ({"warp_installed": False}, "warp:cpu", BackendUnavailable, r"pip install mujoco-warp\)$"),
    ({"cuda": 1}, "warp:cuda:3", BackendUnavailable, "no device cuda:3"),
    ({"cuda": 1}, "native:cuda", BackendUnavailable, "native runs on the CPU only"),
    ({}, "native", ValueError, "is native on cpu, .* measured first: compare with warp"),
    ({}, "warp:gpu", ValueError, "no device 'gpu'"),
    ({}, "wrap", ValueError, "did you mean 'warp'"),
  ],
)
def test_an_engine_that_cannot_be_compared_with_is_refused(machine, pretended, engine, error, says):
  # Guards: a comparison that falls back to another engine than the one that was named.
  machine(**pretended)
  with pytest.raises(error, match=says):
    resolve.resolve_other(engine, asked(backend="native"), cpu_threads=0)


@pytest.mark.parametrize(
  ("driver", "pools", "setting", "says"),
  [
    (13000, True, "1", "on"),
    (12020, True, "1", "off: the driver is of CUDA 12.2, and 12.4 is needed; WARNING"),
    (12080, False, "1", "off: the device has no memory pools; WARNING"),
    (12080, True, "False", "off: WARP_ENABLE_MEMPOOLS_AT_INIT is False; WARNING"),
  ],
)
def test_why_there_are_no_cuda_graphs_is_said(driver, pools, setting, says):
  # Guards: an A100 five times slower than a desktop card, and nobody knows why (mjlab#1056).
  assert graphs_in_words(driver, pools, setting).startswith(says)


def test_auto_with_device_cpu_takes_native_on_a_cuda_machine(machine):
  # Guards: "--device cpu" quietly choosing warp's serial debugging path.
  machine(cuda=1)
  assert asked(device="cpu").name == "native:cpu"


@pytest.mark.parametrize(
  ("pretend", "given", "missing"),
  [
    ({"cuda": 0}, {"backend": "warp"}, "no CUDA driver"),
    ({"cuda": 0}, {"device": "cuda:0"}, "no CUDA driver"),
    ({"cuda": 1}, {"device": "cuda:1"}, "no device cuda:1, only 1 CUDA"),
    ({"cuda": 1, "warp_installed": False}, {"backend": "warp"}, "mujoco_warp is not installed"),
    ({"warp_installed": False}, {"backend": "warp", "device": "cpu"}, "mujoco_warp is not"),
    ({"cuda": 1}, {"backend": "native", "device": "cuda:0"}, "runs on the CPU only"),
  ],
)
def test_an_explicit_choice_never_falls_back(machine, pretend, given, missing):
  # Guards: asking for the GPU and getting the CPU, found out hours later.
  machine(**pretend)
  with pytest.raises(BackendUnavailable, match=missing) as refused:
    asked(**given)
  assert "--backend" in str(refused.value), "the error says what to do"


def test_warp_on_the_cpu_says_that_it_is_for_debugging(machine):
  # Guards: somebody trains for a night on a path that is 40 times slower.
  machine(cuda=0)
  got = asked(backend="warp", device="cpu")
  assert (
    got.name == "warp:cpu" and "WARNING: warp on the CPU is for debugging" in got.reasons["device"]
  )


@pytest.mark.parametrize(
  ("cpus", "num_envs", "cpu_threads", "threads"),
  [(2, 64, 0, 2), (64, 64, 0, 8), (8, 3, 0, 3), (1, 64, 0, 1), (2, 64, 5, 5)],
)
def test_threads_follow_the_rule_unless_given(machine, cpus, num_envs, cpu_threads, threads):
  # Guards: a pool of twice the CPUs (38 % slower), and a printed setting that is never delivered.
  machine(cpus=cpus)
  got = asked(num_envs=num_envs, cpu_threads=cpu_threads)
  assert got.threads == threads
  assert ("WARNING" in got.reasons["threads"]) == (threads > cpus)


@pytest.mark.parametrize("cpus", [1, 2, 4, 6, 64])
def test_neither_pool_oversubscribes(machine, cpus):
  # Guards: torch's threads spinning while the physics works.
  machine(cpus=cpus)
  got = asked()
  assert max(got.threads, got.torch_threads) <= cpus
  if cpus <= 4:
    assert got.torch_threads == 1


@pytest.mark.parametrize(
  ("given", "says"),
  [
    ({"num_envs": 0}, "num_envs is 0"),
    ({"cpu_threads": -1}, "cpu_threads is -1"),
    ({"backend": "nativ"}, "did you mean 'native'"),
    ({"device": "gpu"}, "no device 'gpu'"),
    ({"device": "cuda:x"}, "no device 'cuda:x'"),
    ({"default_num_envs": {"warp": 1}}, "Give --num_envs"),
  ],
)
def test_a_value_that_cannot_be_is_refused_by_name(machine, given, says):
  # Guards: a typo that is taken for the default.
  machine()
  with pytest.raises(ValueError, match=says):
    asked(**given)


def two_of(rank, world_size=4):
  """The second or first process of a node that has two of four."""
  return Ranks(rank=rank, local_rank=rank % 2, world_size=world_size, local_world_size=2)


def test_processes_of_a_node_share_its_cpus(machine):
  # Guards: eight threads per process on eight CPUs, which all wait for one another.
  machine(cpus=8)
  got = asked(ranks=two_of(1))
  assert (got.threads, got.torch_threads) == (4, 1)
  assert got.reasons["threads"].startswith("auto: 4 usable CPUs for each of 2 processes")
  assert asked(ranks=two_of(1), cpu_threads=6).threads == 6
  machine(cpus=1)
  assert asked(ranks=two_of(1)).threads == 1


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_each_process_has_a_gpu_of_its_own(machine, device):
  # Guards: all processes of a node on its first GPU.
  machine(cuda=2)
  assert [asked(device=device, ranks=two_of(rank)).device for rank in (2, 3)] == [
    "cuda:0",
    "cuda:1",
  ]
  assert asked(backend="warp", device="cpu", ranks=two_of(1)).device == "cpu"


@pytest.mark.parametrize(
  ("cuda", "given", "error", "says"),
  [
    (2, {"device": "cuda:1"}, ValueError, "leave --device out"),
    (1, {}, BackendUnavailable, "2 processes on this node need a GPU each, .* only 1 CUDA"),
    (1, {"backend": "warp"}, BackendUnavailable, "--nproc_per_node 1"),
  ],
)
def test_processes_that_would_share_a_gpu_are_refused(machine, cuda, given, error, says):
  # Guards: two processes that fight for one GPU, or wait for one another in NCCL.
  machine(cuda=cuda)
  with pytest.raises(error, match=says):
    asked(ranks=two_of(1), **given)


TORCHRUN = {
  "WORLD_SIZE": "4",
  "RANK": "3",
  "LOCAL_RANK": "1",
  "LOCAL_WORLD_SIZE": "2",
  "MASTER_ADDR": "127.0.0.1",
  "MASTER_PORT": "29500",
}


def test_ranks_are_those_of_torchrun():
  # Guards: a process that takes itself for another, or for the only one.
  assert Ranks.from_environment(TORCHRUN) == two_of(3)
  assert Ranks.from_environment({}) is ALONE
  assert Ranks.from_environment(TORCHRUN | {"WORLD_SIZE": "1", "RANK": "0"}) is ALONE


@pytest.mark.parametrize(
  ("changes", "says"),
  [
    ({"RANK": None}, "RANK is not set: start a distributed run with torchrun"),
    ({"RANK": "4"}, "RANK is '4'; it must be a whole number from 0 on and below 4"),
    ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two'"),
    ({"LOCAL_WORLD_SIZE": "1"}, "LOCAL_WORLD_SIZE is '1'; it must be a whole number from 2 on"),
  ],
)
def test_half_a_distributed_run_is_refused(changes, says):
  # Guards: a WORLD_SIZE that a cluster left in the environment, and a run that waits for nobody.
  environ = {k: v for k, v in (TORCHRUN | changes).items() if v is not None}
  with pytest.raises(ValueError, match=re.escape(says)):
    Ranks.from_environment(environ)


def test_every_field_has_a_reason(machine):
  # Guards: a banner line without its why.
  machine()
  got = asked(num_envs=4)
  assert set(got.reasons) == {"backend", "device", "num_envs", "threads", "torch_threads"}
  assert got.reasons["num_envs"] == "given"


def test_resolving_imports_neither_torch_nor_an_engine():
  # Guards: a refusal that takes as long as loading torch, or that needs CUDA to be installed.
  code = (
    "import sys; from mjrl.sim.resolve import resolve;"
    "resolve(num_envs=1, default_num_envs={});"
    "print([m for m in ('torch', 'mujoco', 'warp', 'numpy') if m in sys.modules])"
  )
  env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
  assert done.stdout.strip() == "[]", done.stderr


# What a process may use: affinity and cgroup quota, from faked files.


def write(root, files):
  for path, text in files.items():
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
  return root


@pytest.mark.parametrize(
  ("files", "expected"),
  [
    ({}, 16),  # no cgroups, as on macOS
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 16),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
    (  # the tightest of a group and its parents binds
      {
        "proc/self/cgroup": "0::/user/job\n",
        "sys/fs/cgroup/user/job/cpu.max": "max 100000\n",
        "sys/fs/cgroup/user/cpu.max": "350000 100000\n",
      },
      3,
    ),
    (  # a container that sees its host's path, and its own limits at the mount
      {
        "proc/self/cgroup": "0::/docker/0f3a\n",
        "sys/fs/cgroup/cpu.max": "400000 100000\n",
      },
      4,
    ),
    (
      {
        "proc/self/cgroup": "5:memory:/job\n4:cpu,cpuacct:/job\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "300000\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
      },
      3,
    ),
    (
      {
        "proc/self/cgroup": "4:cpu:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
      },
      16,
    ),
  ],
)
def test_cpus_follow_the_container_quota(tmp_path, monkeypatch, files, expected):
  # Guards: 16 threads in a container that may use 2 CPUs.
  monkeypatch.setattr(cpus, "_affinity_cpus", lambda: 16)
  assert usable_cpus(root=write(tmp_path, files)) == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_cpus_follow_the_affinity_mask(tmp_path):
  # Guards: `taskset -c 0` starting as many threads as the machine has cores.
  before = os.sched_getaffinity(0)
  os.sched_setaffinity(0, {min(before)})
  try:
    assert usable_cpus(root=tmp_path) == 1
  finally:
    os.sched_setaffinity(0, before)
