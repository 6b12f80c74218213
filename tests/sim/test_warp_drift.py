"""How far robots on both engines drift apart, as benchmarks/gpu_check.py measures it on a GPU."""

import importlib.util
from pathlib import Path

import pytest

from mjrl.sim.native import NativeBackend
from mjrl.sim.warp import WarpBackend

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"


@pytest.fixture(scope="module")
def gpu_check():
  spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def test_200_control_steps_stay_within_the_tolerances(gpu_check, monkeypatch):
  # Guards: an error of a step that adds up; and a check on the GPU that passes whatever it finds.
  set_ctrl, calls = NativeBackend.set_ctrl, []

  def permuted_at_last(backend, ctrl):
    calls.append(ctrl)
    set_ctrl(backend, ctrl if len(calls) <= 200 else ctrl.roll(1, 0))

  def without_measuring_sizes(device, num_envs, model):  # which takes longer than all the rest
    return WarpBackend(model, num_envs, device, nconmax=24, njmax=80)

  monkeypatch.setattr(NativeBackend, "set_ctrl", permuted_at_last)
  monkeypatch.setattr(gpu_check, "_open", without_measuring_sizes)
  flags = gpu_check.Flags(device="cpu")
  found = gpu_check.agreement(flags, each=2, after=(1, 10, 50, 200, 201))
  within = {when: far.pop("within tolerances") for when, far in found.items()}
  assert list(within.values()) == [True] * 4 + [False], found
  for far in found.values():
    assert far.keys() == gpu_check.TOLERANCES.keys()
    assert far["qpos"] > 0  # another engine, in float32
