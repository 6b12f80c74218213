import importlib.util
import os

import pytest
from packaging.requirements import Requirement

from mjrl.sim import packages

PROJECT = """
[project]
dependencies = ["numpy>=1.26", "mujoco>=99", "not_there"]
[project.optional-dependencies]
more = ["also-not-there>=1"]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
  (tmp_path / "pyproject.toml").write_text(PROJECT)
  (tmp_path / "constraints.txt").write_text("# tested\nNumPy==0.0.1\nmujoco==4.0.0\n")
  monkeypatch.setattr(packages, "checkout", lambda: tmp_path)


def test_what_is_missing_or_too_old_is_found(project):
  # Guards: an installation called whole because its metadata is that of last month's checkout.
  found = {one.name: one for one in packages.packages()}
  assert found["numpy"].problem == "" and found["numpy"].tested == "0.0.1"
  assert "and >=99 is needed" in found["mujoco"].problem
  assert found["not_there"].problem == "not installed" and not found["not_there"].extra
  assert found["also-not-there"].extra == "more"


def test_a_module_that_ends_the_process_is_the_one_to_blame(tmp_path, monkeypatch):
  # Guards: a library that crashes while it loads taking the doctor with it, or its neighbours.
  (tmp_path / "fine_a.py").write_text("")
  (tmp_path / "crash_b.py").write_text("import os; os._exit(7)")
  (tmp_path / "raise_c.py").write_text("raise OSError('libxyz.so is not there')")
  (tmp_path / "fine_d.py").write_text("print('hello')")
  monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path)]))
  found = packages.load(["fine_a", "crash_b", "raise_c", "fine_d"])
  assert found["fine_a"] == found["fine_d"] == ""
  assert "ended with code 7" in found["crash_b"]
  assert found["raise_c"] == "OSError: libxyz.so is not there"


def test_every_requirement_has_its_module():
  # Guards: a package called broken because its module has another name.
  folder = packages.checkout()
  needed = [one.name for one, extra, _ in packages.requirements(folder) if not extra]
  assert len(needed) > 15
  assert [name for name in needed if not importlib.util.find_spec(packages._module(name))] == []


def test_an_installation_without_a_checkout_is_read_from_its_metadata(monkeypatch):
  # Guards: extras taken for what mjrl cannot do without.
  lines = ["mujoco>=4", 'viser>=0.2; extra == "web"']
  monkeypatch.setattr(packages, "requires", lambda _: lines)
  assert packages.requirements(None) == [
    (Requirement(lines[0]), "", None),
    (Requirement(lines[1]), "web", None),
  ]
