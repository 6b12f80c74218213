"""The architecture: imports point down the list, and the command line is light."""

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "mjrl"
LAYERS = ("robots", "sim", "view", "envs", "learn", "export", "measure", "tasks", "cli")


def imported(source, package):
  """The dotted names that a module imports, wherever in it; package is the one it lies in."""
  names = set()
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Import):
      names |= {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
      parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
      base = ".".join([*parents, *([node.module] if node.module else [])])
      names |= {f"{base}.{alias.name}" for alias in node.names}
  return names


def upward(source, package):
  """What a module imports from a layer above its own."""
  here = LAYERS.index(package.split(".")[1])
  layers = {name: name.split(".")[1] for name in imported(source, package) if name[:5] == "mjrl."}
  return sorted(n for n, layer in layers.items() if layer in LAYERS[here + 1 :])


def test_imports_point_down():
  # Guards: a layer that quietly comes to know the ones above it, until nothing can be taken out.
  files = sorted(SRC.glob("*/**/*.py"))
  assert len(files) > 5
  wrong = {}
  for path in files:
    package = ".".join(path.relative_to(SRC.parent).parts[:-1])
    assert package.split(".")[1] in LAYERS, f"{path} lies in no layer"
    found = upward(path.read_text(encoding="utf-8"), package)
    wrong |= {str(path.relative_to(ROOT)): found} if found else {}
  assert not wrong


def test_every_way_to_import_is_seen():
  # Guards: this file passing because it overlooks a spelling.
  spellings = {
    "import mjrl.tasks": "mjrl.sim",
    "import mjrl.tasks.flat as f": "mjrl.sim",
    "from mjrl import tasks": "mjrl.sim",
    "from mjrl.tasks import flat": "mjrl.sim",
    "from .. import tasks": "mjrl.sim",
    "from ..tasks import flat": "mjrl.sim",
    "from ... import tasks": "mjrl.sim.inner",
    "def f():\n  from mjrl import tasks": "mjrl.sim",
  }
  for source, package in spellings.items():
    assert upward(source, package), source
  for source in ("from . import native", "from ..robots import jumper", "import mujoco"):
    assert not upward(source, "mjrl.sim"), source


def test_scripts_only_call_the_command_line():
  # Guards: a task's vocabulary in a script.
  for path in sorted((ROOT / "scripts").glob("*.py")):
    names = imported(path.read_text(encoding="utf-8"), "")
    ours = {name for name in names if name.startswith("mjrl")}
    assert all(name.startswith("mjrl.cli.") for name in ours), f"{path.name} imports {ours}"


def test_the_command_line_loads_no_engine():
  # Guards: seconds of torch before --help, and a run whose OpenMP settings come too late for torch.
  modules = ["mjrl.cli." + path.stem for path in sorted((SRC / "cli").glob("*.py"))]
  code = (
    f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
    "print([m for m in ('torch', 'mujoco', 'warp', 'rsl_rl') if m in sys.modules])"
  )
  env = os.environ | {"PYTHONPATH": os.pathsep.join([str(SRC.parent), *filter(None, sys.path)])}
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
  assert done.stdout.strip() == "[]", done.stdout + done.stderr
