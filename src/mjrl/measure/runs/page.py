"""The report of a run as one HTML page that needs nothing beside it."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from mjrl import yaml_text
from mjrl.learn.atomic import write_bytes
from mjrl.learn.findings import PAGE
from mjrl.learn.rules import RULES
from mjrl.measure import report
from mjrl.measure.runs import panels
from mjrl.measure.runs.facts import departures, facts
from mjrl.measure.runs.record import RunRecord

NAME = "report.html"

_IN_SECTIONS = ("findings", "departures", "replay")  # facts that have one of their own
_MOST_BYTES = 30 * 2**20  # of a video within the page; a longer one is named
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1180px; padding: 0 1em;
  color: #222; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 1.8em 0 .5em;
  border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; } td, th { padding: .15em .8em .15em 0; vertical-align: top;
  text-align: left; }
th { font-weight: 600; white-space: nowrap; }
table.figures td, table.figures th { text-align: right; border-bottom: 1px solid #eee; }
table.figures td:first-child, table.figures th:first-child { text-align: left; }
.finding { border-left: 4px solid #c0392b; padding: .2em .8em; margin: .6em 0; }
.past { border-color: #bbb; color: #555; }
img, svg, video { max-width: 100%; height: auto; } code, pre { font-size: 12px; }
pre { overflow-x: auto; background: #f6f6f6; padding: 1em; }
"""


def write_page(run: RunRecord) -> Path:
  """Write `report.html` into the run's folder, whole or not at all."""
  path = run.folder / NAME
  write_bytes(path, page(run).encode())
  return path


def page(run: RunRecord) -> str:
  """The page: what can be relied on, findings, curves, the replay, departures, the settings."""
  said = facts(run)
  table = {label: lines for label, lines in said.items() if label not in _IN_SECTIONS}
  curves = panels.svg(run)
  sections = {
    "What can be relied on": _labelled(table),
    "Findings": _findings(run, said["findings"]),
    "Departures from the task": _list(departures(run)),
    "What the robot did": _replay(run, said["replay"]),
    "Video": "".join(map(_video, run.videos)),
    "Curves": curves or "<p>There is no scalars.csv with an iteration in it.</p>",
    "Files": _list(_files(run)),
    "Settings and versions": _settings(run),
  }
  title = escape(f"{run.task} {run.folder.name}")
  body = "".join(f"<h2>{name}</h2>\n{text}\n" for name, text in sections.items() if text)
  return (
    f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}</body></html>\n"
  )


def _labelled(facts: Mapping[str, Sequence[str]]) -> str:
  rows = (
    f"<tr><th>{escape(label)}</th><td>{'<br>'.join(map(escape, lines))}</td></tr>"
    for label, lines in facts.items()
  )
  return f"<table>{''.join(rows)}</table>"


def _findings(run: RunRecord, lines: Sequence[str]) -> str:
  if not run.findings:
    return _list(lines)
  return "".join(
    f'<div class="finding{"" if found["at_the_end"] else " past"}">'
    f"<b>{escape(found['rule'])}</b>, from iteration {found['iteration']} on"
    f"{'' if found['at_the_end'] else ', no longer so at the end'}. "
    f"{escape(_meaning(found['rule']))}<br>{escape(found['evidence'])}<br>"
    f"What to do: <code>{PAGE}#{escape(found['rule'])}</code></div>"
    for found in run.findings
  )


def _meaning(rule: str) -> str:
  """What a rule looks for; nothing for one of another version."""
  return ((RULES[rule].__doc__ or "") if rule in RULES else "").strip()


def _replay(run: RunRecord, lines: Sequence[str]) -> str:
  measured = run.measured
  if measured is None:
    return _list(lines)
  header, *rows = report.rows(measured)
  head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
  body = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in rows)
  about = measured.circumstances
  parts = [
    _list([*lines, *report.circumstances(measured), *report.warnings(measured)]),
    f'<table class="figures"><tr>{head}</tr>{body}</table>',
    "<p>How the replay differs from training:</p>" + _list(about.differences_from_training),
  ]
  picture = run.folder / "measure" / "measure.png"
  if picture.is_file():
    data = b64encode(picture.read_bytes()).decode()
    parts.append(f'<img alt="measure.png" src="data:image/png;base64,{data}">')
  return "".join(parts)


def _video(path: Path) -> str:
  if path.stat().st_size > _MOST_BYTES:
    return f"<p><code>{escape(str(path))}</code> is too long to be within this page.</p>"
  data = b64encode(path.read_bytes()).decode()
  return f'<p>{escape(path.name)}</p><video controls src="data:video/mp4;base64,{data}"></video>'


def _settings(run: RunRecord) -> str:
  if run.config is None:
    return "<p>There is no run.yaml that can be read.</p>"
  record = run.of_record
  about = {key: record[key] for key in ("command", "versions", "python", "commit") if key in record}
  settings = {key: value for key, value in run.config.items() if key != "record"}
  return f"<pre>{escape(yaml_text.dump(settings | about))}</pre>"


def _files(run: RunRecord) -> list[str]:
  """Files of the run, checkpoints but for the newest and the best left out."""
  older = set(run.checkpoints[:-1])
  paths = sorted(path for path in run.folder.rglob("*") if path.is_file() and path not in older)
  lines = [
    f"{path.relative_to(run.folder)} ({_size(path)})"
    for path in paths
    if not path.name.startswith(".") and path.name != NAME
  ]
  return lines + ([f"{len(older)} older checkpoints"] if older else [])


def _size(path: Path) -> str:
  size = path.stat().st_size
  return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"


def _list(lines: Iterable[str]) -> str:
  return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
