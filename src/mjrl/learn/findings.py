"""What a run finds wrong with itself, from its own curves: once each, with the numbers.

Every finding has its row in docs/reading_a_run.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mjrl.learn.curves import Curves
from mjrl.learn.rules import RULES, About

PAGE = "docs/reading_a_run.md"
EVERY = 10
"""Iterations between two looks: no rule is about a shorter time."""


@dataclass(frozen=True, kw_only=True)
class Finding:
  """What a rule found, when it first did, and by which numbers."""

  rule: str
  iteration: int
  evidence: str

  @property
  def link(self) -> str:
    """Where its causes stand, and what to do."""
    return f"{PAGE}#{self.rule}"

  @property
  def text(self) -> str:
    """The finding in a line."""
    return f"{self.rule}: {self.evidence}; what to do: {self.link}"


class Judge:
  """Looks at a run while it is recorded; finds each thing once.

  found  rule to its finding, in the order of time
  """

  def __init__(self, about: About) -> None:
    """Nothing was recorded."""
    self.curves, self.found = Curves(), dict[str, Finding]()
    self._about = about

  def take(self, iteration: int, scalars: Mapping[str, float]) -> list[Finding]:
    """Take an iteration's scalars; the findings that are new."""
    self.curves.add(iteration, scalars)
    if (iteration + 1) % EVERY:
      return []
    said = {name: rule(self.curves, self._about) for name, rule in RULES.items()}
    new = [
      Finding(rule=name, iteration=iteration, evidence=evidence)
      for name, evidence in said.items()
      if evidence and name not in self.found
    ]
    self.found |= {finding.rule: finding for finding in new}
    return new

  def plain(self) -> list[dict[str, Any]]:
    """The findings in plain values; `at_the_end`: whether the rule would still find it."""
    return [
      {
        "rule": name,
        "iteration": finding.iteration,
        "evidence": finding.evidence,
        "at_the_end": bool(RULES[name](self.curves, self._about)),
      }
      for name, finding in self.found.items()
    ]


def replayed(curves: Curves, about: About) -> Judge:
  """The judge of a run, after all that was recorded of it."""
  judge = Judge(about)
  rows: dict[int, dict[str, float]] = {}
  for name in curves.names:
    for iteration, value in zip(*curves.points(name), strict=True):
      rows.setdefault(iteration, {})[name] = value
  for iteration in sorted(rows):
    judge.take(iteration, rows[iteration])
  return judge
