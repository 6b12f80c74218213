import json
import os
import subprocess
import sys

import pytest

from mjrl.cli import checkup, doctor
from mjrl.cli.checkup import Row
from mjrl.sim.packages import Package
from mjrl.sim.resolve import Resolved


@pytest.fixture
def looks(monkeypatch):
  """The doctor sees what a test says, and nothing that takes long."""
  common = {"device": "cpu", "num_envs": 1, "threads": 2, "torch_threads": 1}
  reasons = {"backend": "auto: no GPU", "threads": "auto: two", "torch_threads": "auto: one"}
  found = Resolved(backend="native", reasons=reasons, **common)
  monkeypatch.setattr(doctor, "auto", lambda: found)

  def see(*rows):
    monkeypatch.setattr(doctor, "checkup", lambda: iter([list(rows)]))

  return see


def row(status, cure=""):
  return Row(section="packages", name="onnx", status=status, found="1.2", cure=cure)


def test_only_what_mjrl_needs_fails_the_doctor(looks, capsys):
  # Guards: a script that goes on with a broken installation, or stops for want of a window.
  looks(row("ok"), row("note", "pip install more"))
  assert doctor.main([]) == 0
  out = capsys.readouterr().out
  assert "--backend auto takes native:cpu: no GPU" in out and "-> pip install more" in out
  looks(row("ok"), row("FAIL"))
  assert doctor.main([]) == 1
  assert "1 that mjrl needs: onnx" in capsys.readouterr().out
  assert doctor.main(["--json"]) == 1
  got = json.loads(capsys.readouterr().out)
  assert got["ok"] is False and got["rows"][1]["status"] == "FAIL"
  assert got["auto"]["backend"] == "native:cpu"


def package(**given):
  about = {"name": "x", "extra": "", "wanted": ">=1", "installed": "1.0", "tested": "1.0"}
  return Package(**(about | {"problem": ""} | given))


@pytest.mark.parametrize(
  ("given", "status"),
  [
    ({}, "ok"),
    ({"installed": "1.0+cpu"}, "ok"),
    ({"installed": "1.1"}, "note"),
    ({"tested": None}, "ok"),
    ({"problem": "not installed", "installed": None}, "FAIL"),
    ({"problem": "not installed", "extra": "web"}, "note"),
  ],
)
def test_how_bad_a_package_is(given, status):
  # Guards: an extra that stops everybody, and a missing requirement that stops nobody.
  found = checkup._package(package(**given))
  assert found.status == status
  assert bool(found.cure) == (status != "ok")


def test_a_gpu_that_torch_cannot_use_is_a_failure(monkeypatch):
  # Guards: auto taking a GPU that a CPU build of torch cannot reach, found out by a traceback.
  monkeypatch.setattr(checkup, "cuda_devices", lambda: (1, "1 CUDA device"))
  monkeypatch.setattr(checkup, "cuda_graphs", lambda index: "on")
  device = checkup.cuda_device.__annotations__["return"](
    name="A GPU", memory_bytes=8 << 30, driver="12.8"
  )
  monkeypatch.setattr(checkup, "cuda_device", lambda index: device)
  monkeypatch.setattr("torch.cuda.is_available", lambda: False)
  gpu, torch_row = checkup._gpu()
  assert (gpu.status, gpu.found) == ("ok", "A GPU, 8 GiB, driver for CUDA 12.8; CUDA graphs on")
  assert torch_row.status == "FAIL" and "--backend native" in torch_row.cure


def test_a_setting_that_stops_every_command_is_found(monkeypatch):
  # Guards: a doctor that finds all well where no command runs.
  monkeypatch.setenv("MJRL_NUM_ENVS", "many")
  (found,) = checkup._settings()
  assert found.status == "FAIL" and "MJRL_NUM_ENVS" in found.found


def test_the_engine_is_tried(monkeypatch):
  # Guards: an engine that is there and does not step.
  (found,) = checkup._engine()
  assert found.status == "ok"
  monkeypatch.setattr("mjrl.sim.native.NativeBackend.step", lambda *_: 1 / 0)
  (found,) = checkup._engine()
  assert found.status == "FAIL" and "ZeroDivisionError" in found.found


@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--task", "jumper.tripod"], "--task has no effect without --size"),
    (["--backend", "warp"], "--backend has no effect without --size"),
    (["--size"], "--size needs --task"),
    (["--size", "--task", "jumper.tripd"], "did you mean 'jumper.tripod'"),
  ],
)
def test_flags_that_do_nothing_are_refused(capsys, argv, says):
  # Guards: a user who believes that another engine was looked at.
  assert doctor.main(argv) == 2
  assert says in capsys.readouterr().err


def doctor_with(tmp_path, **modules):
  """The doctor, where modules of these names hold something else."""
  for name, text in modules.items():
    (tmp_path / f"{name}.py").write_text(text)
  path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
  environ = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
  command = [sys.executable, "-m", "mjrl", "doctor"]
  return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path)


def test_the_doctor_outlives_what_is_broken(tmp_path):
  # Guards: a doctor that needs what it is to find missing, and ends in a traceback.
  broken = dict.fromkeys(
    ("torch", "mujoco", "warp", "matplotlib", "onnxruntime"), "raise ImportError('libz.so')"
  )
  done = doctor_with(tmp_path, **broken)
  assert done.returncode == 1 and done.stderr == ""
  for line in ("FAIL  torch", "FAIL  mujoco", "FAIL  native:cpu", "ImportError: libz.so"):
    assert line in done.stdout
  assert "ok    psutil" in done.stdout and "--backend auto takes" in done.stdout


def test_without_the_smallest_things_it_says_what_to_install(tmp_path):
  # Guards: the same of what the command line itself is made of.
  done = doctor_with(tmp_path, tyro="raise ModuleNotFoundError('no tyro', name='tyro')")
  assert done.returncode == 1 and done.stderr.count("\n") == 1
  assert "needs tyro, which is not installed: pip install" in done.stderr
