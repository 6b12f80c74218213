"""Versions of the packages that results depend on, and whether those of the engine go together."""

from collections.abc import Iterable, Mapping

from mjrl.names import version_of

# What is named where versions are shown or kept, as pip calls it.
PACKAGES = ("mjrl", "mujoco", "torch", "rsl-rl-lib", "numpy")  # of every run
WARP_PACKAGES = ("mujoco-warp", "warp-lang")
EXPORT_PACKAGES = ("onnx", "onnxruntime")

# As in constraints.txt.
TESTED = {"mujoco": "4.0.0", "mujoco-warp": "4.0.0", "warp-lang": "1.19.0"}


def versions_of(packages: Iterable[str]) -> dict[str, str]:
  """Package to installed version."""
  return {name: version_of(name) for name in packages}


def versions_in_doubt(installed: Mapping[str, str] | None = None) -> str:
  """What is wrong with the versions of warp's parts, in words; "" if nothing.

  Another version of one part has cost a factor of ten in speed, and contacts, without an error.

  Args:
    installed: distribution to version; None asks.
  """
  have = installed or versions_of(TESTED)
  mujoco, mjwarp = have["mujoco"], have["mujoco-warp"]
  cure = "pip install -c constraints.txt -e ."
  if mujoco.split(".")[:2] != mjwarp.split(".")[:2]:
    return (
      f"WARNING: mujoco {mujoco} and mujoco-warp {mjwarp} are of different releases and do not "
      f"belong together; {cure}"
    )
  others = [f"{name} {have[name]} (tested: {v})" for name, v in TESTED.items() if have[name] != v]
  return f"WARNING: not the tested versions: {', '.join(others)}; {cure}" if others else ""
