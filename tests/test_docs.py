"""What the documentation points to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def anchors(page: Path) -> set[str]:
  """The anchors of a page: of its headings, as they are made from their words, and of rows."""
  text = page.read_text(encoding="utf-8")
  headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
  named = set(re.findall(r'<a id="([^"]+)">', text))
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings} | named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
  # Guards: a picture or a page that was renamed, and a heading that was reworded.
  for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
    if re.match(r"[a-z]+:", target):
      continue
    name, _, anchor = target.partition("#")
    there = (page.parent / name) if name else page
    assert there.exists(), f"{page.name} links to {target}"
    if anchor:
      assert anchor in anchors(there), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_of_commands_exist(page):
  # Guards: a command in the documentation with a flag that was renamed.
  from mjrl.cli.flags import ExportFlags, PlayFlags, TrainFlags

  for script, flags in (("train", TrainFlags), ("play", PlayFlags), ("export", ExportFlags)):
    known = {name.replace("_", "-") for name in vars(flags())} | {"help"}
    known |= {f"no-{name}" for name in known}
    for line in re.findall(rf"scripts/{script}\.py.*$", page.read_text(), re.MULTILINE):
      for flag in re.findall(r"--([a-zA-Z][\w.-]*)", line):
        assert re.sub("[_.]", "-", flag) in known, f"{page.name}: {line.strip()}"


def test_every_finding_has_its_row():
  # Guards: a finding whose link leads nowhere, and a row about a finding that there is no more.
  from mjrl.learn.findings import PAGE
  from mjrl.learn.rules import RULES

  rows = re.findall(
    r'^\| <a id="([^"]+)"></a>\*\*(.+?)\*\*', (ROOT / PAGE).read_text(), re.MULTILINE
  )
  assert [anchor for anchor, _ in rows] == list(RULES) == [name for _, name in rows]


def test_overrides_of_the_documentation_are_taken():
  # Guards: a path that users copy, and that a task page has renamed.
  from mjrl import tasks
  from mjrl.cli.changes import parse_sets
  from mjrl.envs.overrides import override

  text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
  sets = set(re.findall(r"`((?:\w+\.)*\w+=[^` ]+)`", text))
  for page in PAGES:
    sets |= set(re.findall(r"--set (\w\S*=[^\s`]+)", page.read_text(encoding="utf-8")))
  assert len(sets) > 12
  rough = override(tasks.build("jumper.tripod"), "native", {"terrain.ground": "rough"})
  for word in sets:
    override(rough, "native", parse_sets([word]))
