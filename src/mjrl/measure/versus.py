"""Two policies in the same world: what differs between them, and whether it is more than noise."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mjrl.measure.evaluated import FIGURES, Evaluation, Figure
from mjrl.measure.evaluation_files import FIGURE_DEFINITIONS, estimated
from mjrl.measure.evaluation_report import driver
from mjrl.measure.files import COMMAND
from mjrl.measure.intervals import METHOD, Estimate, over_cells, over_envs
from mjrl.measure.report import NOT_MEASURED, aligned
from mjrl.measure.statistics import Array

SCHEMA = "mjrl/compare_policies/1"
_DEFINITIONS = {
  "a, b": "The figure of the two policies, as in evaluation.json.",
  "difference": "B less A, env by env: env k is the same robot with the same start, command, noise "
  "and pushes with both, until one of the two falls.  Envs that lack the figure with one of them "
  f"are left out.  {METHOD}: of a command over its envs, over_grid as in evaluation.json.  Of "
  "ratios, the difference is that of their distances from 1.",
  "verdict": "better or worse: B than A, where the interval of the difference leaves out 0; noise: "
  "where it does not; null where the interval is not known.  Of figures that do not differ, about "
  "one in 20 is no noise by chance.  It is about these two policies: how much trainings with "
  "other seeds differ is another question.",
  **FIGURE_DEFINITIONS,
}


class Gap(NamedTuple):
  """A figure under a condition: of both, and the difference env by env, (C, R)."""

  condition: str
  figure: Figure
  a: Array
  b: Array
  difference: Array

  @property
  def over_grid(self) -> Estimate | None:
    """The mean difference over the commands."""
    return over_cells(self.difference)


def gaps(a: Evaluation, b: Evaluation) -> Iterator[Gap]:
  """Every figure under every condition."""
  for one, other in zip(a.conditions, b.conditions, strict=True):
    for figure in FIGURES:
      values = one.per_env[figure.key], other.per_env[figure.key]
      yield Gap(
        one.condition.name, figure, *values, _loss(figure, values[1]) - _loss(figure, values[0])
      )


def verdict(difference: Estimate | None) -> str | None:
  """What a difference of losses amounts to."""
  if difference is None or difference.half_width is None:
    return None
  if not difference.certain:
    return "noise"
  return "better" if difference.mean < 0 else "worse"


def table(a: Evaluation, b: Evaluation) -> str:
  """What differs, a block of rows per condition."""
  about = a.conditions[0].circumstances
  rows: list[Sequence[str]] = [("", "A", "B", "B - A", "", "")]
  judged = []
  for gap in gaps(a, b):
    if gap.figure is FIGURES[0]:
      rows.append((gap.condition, "", "", "", "", ""))
    found = gap.over_grid
    said = verdict(found)
    if found and said and (found.mean or found.half_width):  # no falls of either is no agreement
      judged.append(said != "noise")
    rows.append(_row(gap, found, said))
  names = [one.conditions[0].circumstances for one in (a, b)]
  return "\n".join(
    [
      f"A  {names[0].checkpoint} (iteration {names[0].iteration})",
      f"B  {names[1].checkpoint} (iteration {names[1].iteration})",
      f"{about.task} on {about.backend}, seed {about.seed}: {len(a.grid.commands)} commands, "
      f"{about.num_envs // len(a.grid.commands)} envs and {a.length_s:g} s each, the same for both",
      f"mean over the commands; ± {METHOD}, paired",
      *aligned(rows),
      f"{sum(judged)} of {len(judged)} differences are more than noise; by chance alone, about 1 "
      "in 20 would be",
    ]
  )


def title(a: Evaluation, b: Evaluation) -> str:
  """Of the page of maps."""
  first, second = (one.conditions[0].circumstances for one in (a, b))
  return (
    f"{first.task}: B less A; orange is better, violet worse; bold: more than noise\n"
    f"A {driver(first)}\nB {driver(second)}; of ratios, the distances from 100 %"
  )


def as_plain(a: Evaluation, b: Evaluation, world: list[str]) -> dict[str, Any]:
  """What compare_policies.json holds.

  Args:
    a: of the first policy.
    b: of the second.
    world: how the world that B was trained in is otherwise than A's, in which both were evaluated.
  """
  about = a.conditions[0].circumstances
  sides = {
    name: {"checkpoint": c.checkpoint, "iteration": c.iteration}
    for name, c in (("a", about), ("b", b.conditions[0].circumstances))
  }
  conditions: dict[str, dict[str, Any]] = {one.condition.name: {} for one in a.conditions}
  for gap in gaps(a, b):
    conditions[gap.condition][gap.figure.key] = {
      "over_grid": _plain(gap.a, gap.b, gap.difference, over_cells),
      "commands": [
        {"command": dict(zip(COMMAND, command, strict=True))}
        | _plain(gap.a[cell], gap.b[cell], gap.difference[cell], over_envs)
        for cell, command in enumerate(a.grid.commands)
      ],
    }
  return {
    "schema": SCHEMA,
    "task": about.task,
    **sides,
    "world_of_b_was_another": world,
    "backend": about.backend,
    "num_envs": about.num_envs,
    "seed": about.seed,
    "steps": a.steps,
    "length_s": a.length_s,
    "versions": dict(about.versions),
    "interval": METHOD,
    "conditions": conditions,
    "definitions": _DEFINITIONS,
  }


def _loss(figure: Figure, values: Array) -> Array:
  """The figure as a number of which less is better."""
  return values if figure.ideal is None else np.abs(values - figure.ideal)


def _plain(a: Array, b: Array, difference: Array, estimate: Any) -> dict[str, Any]:
  found = estimate(difference)
  return {
    "a": estimated(estimate(a)),
    "b": estimated(estimate(b)),
    "difference": estimated(found),
    "verdict": verdict(found),
  }


def _row(gap: Gap, found: Estimate | None, said: str | None) -> tuple[str, ...]:
  figure = gap.figure
  label = f"  {figure.title}" + (", off by" if figure.ideal is not None else "")
  a, b = (over_cells(_loss(figure, side)) for side in (gap.a, gap.b))
  half = found.half_width if found else None
  return (
    label,
    figure.said(a.mean if a else None),
    figure.said(b.mean if b else None),
    figure.said(found.mean if found else None, "+"),
    NOT_MEASURED if half is None else f"±{figure.said(half)}",
    (said or "").upper() if said in ("better", "worse") else (said or ""),
  )
