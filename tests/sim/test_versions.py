import re
from pathlib import Path

import pytest

from mjrl.sim.versions import TESTED, versions_in_doubt

ROOT = Path(__file__).parents[2]


def test_the_tested_versions_are_those_that_are_installed_for_tests():
  # Guards: a warning about the versions that everybody is told to install.
  pinned = dict(
    re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
  )
  assert {name: pinned[name] for name in TESTED} == TESTED
  assert versions_in_doubt(TESTED) == ""


@pytest.mark.parametrize(
  ("other", "says"),
  [
    ({"mujoco-warp": "4.1.0"}, "mujoco 4.0.0 and mujoco-warp 4.1.0 are of different releases"),
    ({"warp-lang": "1.20.0"}, r"not the tested versions: warp-lang 1.20.0 \(tested: 1.19.0\)"),
    ({"mujoco": "4.0.1"}, r"not the tested versions: mujoco 4.0.1 \(tested: 4.0.0\)"),
  ],
)
def test_another_version_is_named(other, says):
  # Guards: 190 000 steps/s that become 11 000 after an upgrade (mujoco_warp#789).
  assert re.match("WARNING: " + says, versions_in_doubt(TESTED | other))
