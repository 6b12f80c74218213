"""What a run's folder says of the run, whatever is missing in it."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from mjrl import yaml_text
from mjrl.learn import curves, findings, rules
from mjrl.learn.checkpoints import BEST, iteration_of
from mjrl.learn.curves import Curves
from mjrl.measure import files
from mjrl.measure.measured import Measured
from mjrl.measure.runs.find import RUN_FILES

STATES = ("done", "stopped", "failed", "unfinished")


class RunRecord:
  """A run's folder.  Its parts are read when they are asked for; a part that is not there is None.

  folder   of the run
  troubles  file to what is wrong with it, of those that were read
  """

  def __init__(self, folder: Path) -> None:
    """Of a folder that is there."""
    self.folder = folder
    self.troubles: dict[str, str] = {}

  @cached_property
  def config(self) -> Mapping[str, Any] | None:
    """`run.yaml`."""
    return self._mapping("run.yaml", yaml_text.load)

  @cached_property
  def summary(self) -> Mapping[str, Any] | None:
    """`summary.json`."""
    return self._mapping("summary.json", json.loads)

  @cached_property
  def curves(self) -> Curves:
    """`scalars.csv`."""
    return curves.read(self.folder)

  @cached_property
  def measured(self) -> Measured | None:
    """`measure/measure.json`."""
    path = self.folder / "measure" / "measure.json"
    if not path.is_file():
      return None
    try:
      return files.read_json(path)
    except (OSError, ValueError) as error:
      self.troubles["measure/measure.json"] = str(error)
      return None

  @cached_property
  def about(self) -> rules.About | None:
    """What the rules need to know."""
    record = self.of_record
    try:
      return rules.about(record["task"], record["recipe"]) if record else None
    except (KeyError, TypeError):
      self.troubles["run.yaml"] = "it is of another version of mjrl"
      return None

  @cached_property
  def findings(self) -> list[dict[str, Any]] | None:
    """What the run found, or would have, had it come to its end; None where nothing can be said."""
    if self.summary and "findings" in self.summary:
      return self.summary["findings"]
    if self.about is None or not self.curves.rows:
      return None
    return findings.replayed(self.curves, self.about).plain()

  @property
  def of_record(self) -> Mapping[str, Any]:
    """What the run was, as `run.yaml` keeps it; empty where it does not."""
    return (self.config or {}).get("record", {})

  @property
  def task(self) -> str:
    """The task's name; where nothing in the folder says it, that of the folder around it."""
    said = (self.summary or {}).get("task") or (self.config or {}).get("task")
    return said or self.folder.parent.name

  @cached_property
  def checkpoints(self) -> list[Path]:
    """By iteration, the newest last; not the best."""
    found = [path for path in self.folder.glob("model_*.pt") if iteration_of(path) >= 0]
    return sorted(found, key=iteration_of)

  @property
  def best(self) -> Path | None:
    """`model_best.pt`."""
    path = self.folder / BEST
    return path if path.is_file() else None

  @cached_property
  def videos(self) -> list[Path]:
    """Every MP4 in the folder."""
    return sorted(self.folder.rglob("*.mp4"))

  @property
  def state(self) -> str:
    """One of `STATES`: how the run ended; without a summary it is at work, or was killed."""
    if self.summary is None:
      return "unfinished"
    if self.summary.get("failed"):
      return "failed"
    return "stopped" if self.summary.get("stopped_by") else "done"

  @cached_property
  def written(self) -> datetime:
    """When the run last wrote there; what others left, such as reports, does not count."""
    files = [path for name in RUN_FILES for path in self.folder.glob(name)]
    return datetime.fromtimestamp(max(p.stat().st_mtime for p in files or [self.folder]))

  def _mapping(self, name: str, load: Callable[[str], Any]) -> Mapping[str, Any] | None:
    path = self.folder / name
    if not path.is_file():
      return None
    try:
      content = load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
      self.troubles[name] = str(error)
      return None
    if isinstance(content, Mapping):
      return content
    self.troubles[name] = "it holds no mapping of names to values"
    return None
