"""The folder of a run, and the files that say what it was."""

import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from mjrl import yaml_text
from mjrl.learn.atomic import write_bytes, write_json
from mjrl.sim.versions import PACKAGES, WARP_PACKAGES, versions_of


def new_run_folder(log_dir: Path, robot: str, task: str) -> Path:
  """`<log_dir>/<robot>/<task>/<date>_<time>`, with a number behind it if that is taken."""
  return new_folder(log_dir / robot / task)


def new_folder(parent: Path) -> Path:
  """A folder that is named by the time, with a number behind it if that is taken."""
  stamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
  parent.mkdir(parents=True, exist_ok=True)
  for k in range(1000):
    folder = parent / (stamp if k == 0 else f"{stamp}_{k}")
    try:
      folder.mkdir()
    except FileExistsError:
      continue
    return folder
  raise FileExistsError(f"{parent}: a thousand runs began at {stamp}")


def write_run(folder: Path, config: Mapping[str, Any], record: Mapping[str, Any]) -> None:
  """`run.yaml`: what repeats the run as a configuration, and under `record` what it then was."""
  text = yaml_text.dump({**config, "record": {**record, **surroundings()}})
  write_bytes(folder / "run.yaml", text.encode())


def surroundings() -> dict[str, Any]:
  """What a result depends on beside its task: versions of packages and Python, and our commit."""
  return {
    "versions": versions_of(PACKAGES + WARP_PACKAGES),
    "python": sys.version.split()[0],
    "commit": _commit(),
  }


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
  """`summary.json`: what came of the run."""
  write_json(folder / "summary.json", summary)


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
