"""The folder of a run, and the files that say what it was."""

import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from mjrl.learn.atomic import write_bytes
from mjrl.names import version_of

_PACKAGES = ("mujoco", "mujoco-warp", "warp-lang", "rsl-rl-lib", "torch", "numpy", "mjrl")


def new_run_folder(log_dir: Path, robot: str, task: str) -> Path:
  """`<log_dir>/<robot>/<task>/<date>_<time>`, with a number behind it if that is taken."""
  stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
  parent = log_dir / robot / task
  parent.mkdir(parents=True, exist_ok=True)
  for k in range(1000):
    folder = parent / (stamp if k == 0 else f"{stamp}_{k}")
    try:
      folder.mkdir()
    except FileExistsError:
      continue
    return folder
  raise FileExistsError(f"{parent}: a thousand runs began at {stamp}")


def write_run(folder: Path, **content: Any) -> None:
  """`run.yaml`: what is needed to see, and repeat, how the run came about."""
  content |= {
    "versions": {name: version_of(name) for name in _PACKAGES},
    "python": sys.version.split()[0],
    "commit": _commit(),
  }
  text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
  write_bytes(folder / "run.yaml", text.encode())


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
  """`summary.json`: what came of the run."""
  write_bytes(folder / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())


def _commit() -> str | None:
  """Commit of the checkout that this file lies in, with "-dirty" behind it if files were changed.

  None where there is no git, or where the file is installed and not of a checkout: the repository
  around it is then somebody else's.
  """
  here = Path(__file__)

  def git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(
      command, cwd=here.parent, capture_output=True, text=True, timeout=5, check=True
    )
    return done.stdout.strip()

  try:
    git("ls-files", "--error-unmatch", here.name)
    changed = git("status", "--porcelain", "--untracked-files=no")
    return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
  except (OSError, subprocess.SubprocessError):
    return None
