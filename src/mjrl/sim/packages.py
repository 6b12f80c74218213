"""The packages that mjrl needs: whether they are there, load, and have the tested versions."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

IMPORT_S = 120.0  # for all packages together; a cold disk takes long
# Distributions whose module has another name.
_MODULES = {
  "pillow": "PIL",
  "python-dotenv": "dotenv",
  "pyyaml": "yaml",
  "rsl-rl-lib": "rsl_rl",
  "warp-lang": "warp",
}
# Says the name before it loads a module: a crash of one is then seen to be its own.
_LOADER = """
import importlib, json, sys
for name in sys.argv[1:]:
  print(json.dumps([name, None]), flush=True)
  try:
    importlib.import_module(name)
    error = ""
  except BaseException as found:
    error = f"{type(found).__name__}: {found}"
  print(json.dumps([name, error]), flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Package:
  """A package that mjrl, or an extra of it, asks for.

  extra      that asks for it; "" for mjrl itself
  wanted     versions that do, as pip writes them
  installed  version; None if it is not there
  tested     version that mjrl is tested with; None where that is not known
  problem    why it cannot be used, in words; "" if nothing is known against it
  """

  name: str
  extra: str
  wanted: str
  installed: str | None
  tested: str | None
  problem: str


def checkout() -> Path | None:
  """The folder with pyproject.toml and constraints.txt, where mjrl runs from one."""
  folder = Path(__file__).parents[3]
  return folder if (folder / "pyproject.toml").is_file() else None


def packages() -> list[Package]:
  """Those that mjrl needs, and those of its extras; what is needed has been loaded for trial."""
  found = [_looked_up(*one) for one in requirements(checkout())]
  modules = {_module(one.name): one.name for one in found if not (one.extra or one.problem)}
  broken = {modules[module]: why for module, why in load(list(modules)).items() if why}
  return [one if one.name not in broken else _with_problem(one, broken[one.name]) for one in found]


def requirements(folder: Path | None) -> list[tuple[Requirement, str, str | None]]:
  """Each requirement, the extra it belongs to, and the tested version.

  Args:
    folder: of the checkout, whose files are newer than what was installed from it; None asks the
      installation, which does not know the tested versions.
  """
  tested: dict[str, str] = {}
  if folder is None:
    lines = [(Requirement(line), "") for line in requires("mjrl") or []]
    split = [(one, _extra_of(one)) for one, _ in lines]
  else:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    split = [(Requirement(line), "") for line in project["dependencies"]]
    for extra, lines in project["optional-dependencies"].items():
      split += [(Requirement(line), extra) for line in lines]
    tested = _pins((folder / "constraints.txt").read_text(encoding="utf-8").splitlines())
  return [(one, extra, tested.get(_normal(one.name))) for one, extra in split]


def load(modules: Sequence[str], loader: str = _LOADER) -> dict[str, str]:
  """Load modules in another process; name to why it could not be, "" where it could.

  One that ends the process is found, and the rest is loaded without it.
  """
  command = [sys.executable, "-W", "ignore", "-c", loader, *modules]
  environ = os.environ | {"GIT_PYTHON_REFRESH": "quiet", "WARP_LOG_LEVEL": "30"}
  try:
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=IMPORT_S)
    said, why = done.stdout, f"the process that loaded it ended with code {done.returncode}"
  except subprocess.TimeoutExpired as error:
    said = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    why = f"it did not load within {IMPORT_S:g} s"
  found: dict[str, str | None] = {}
  for line in said.splitlines():
    if line.startswith("["):
      name, error = json.loads(line)
      found[name] = error
  last = next((name for name, error in found.items() if error is None), None)
  results = {name: error for name, error in found.items() if error is not None}
  if last is None:
    return results
  return results | {last: why} | load([m for m in modules if m not in results and m != last])


def _looked_up(requirement: Requirement, extra: str, tested: str | None) -> Package:
  try:
    installed = version(requirement.name)
  except PackageNotFoundError:
    installed = None
  wanted = str(requirement.specifier)
  problem = ""
  if installed is None:
    problem = "not installed"
  elif not requirement.specifier.contains(installed, prereleases=True):
    problem = f"version {installed}, and {wanted} is needed"
  return Package(
    name=requirement.name,
    extra=extra,
    wanted=wanted,
    installed=installed,
    tested=tested,
    problem=problem,
  )


def _with_problem(package: Package, problem: str) -> Package:
  return Package(**(vars(package) | {"problem": f"does not load: {problem}"}))


def _pins(lines: Iterable[str]) -> dict[str, str]:
  pairs = (line.partition("#")[0].strip().split("==") for line in lines)
  return {_normal(pair[0]): pair[1] for pair in pairs if len(pair) == 2}


def _extra_of(requirement: Requirement) -> str:
  """The extra that a requirement of the installation stands behind."""
  text = str(requirement.marker or "")
  return text.partition("extra ==")[2].strip(" \"'") if "extra ==" in text else ""


def _module(name: str) -> str:
  return _MODULES.get(_normal(name), _normal(name).replace("-", "_"))


def _normal(name: str) -> str:
  """A distribution's name as indices compare it."""
  return name.lower().replace("_", "-").replace(".", "-")
