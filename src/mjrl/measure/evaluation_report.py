"""An evaluation for the console: conditions, and the cells of the first of them."""

from pathlib import Path

from mjrl.measure.evaluated import FIGURES, Evaluated, Evaluation, Figure
from mjrl.measure.intervals import METHOD, Estimate, over_cells, over_envs
from mjrl.measure.measured import Circumstances
from mjrl.measure.report import NOT_MEASURED, aligned


def table(evaluation: Evaluation) -> str:
  """A row per condition, over the whole grid; then a row per command, under the first."""
  first = evaluation.conditions[0]
  about, grid = first.circumstances, evaluation.grid
  cells = len(grid.commands)
  columns = [figure for figure in FIGURES if figure.key != "falls"]
  head = ("condition", "falls", "envs failed", *(figure.title for figure in columns))
  rows = [head, *(_over_grid(one, columns) for one in evaluation.conditions)]
  head = ("command", "falls", *(figure.title for figure in columns))
  of_cells = [head, *(_cell(first, cell, name, columns) for cell, name in enumerate(grid.names))]
  return "\n".join(
    [
      f"{about.task} on {about.backend}: {driver(about)}",
      f"{cells} commands, {about.num_envs // cells} envs and {evaluation.length_s:g} s each, the "
      f"first {about.settle_s:g} s left out; physics {about.physics_hz:g} Hz, control "
      f"{about.control_hz:g} Hz, seed {about.seed}",
      "",
      f"mean over the commands, ± {METHOD}",
      *aligned(rows),
      "",
      f"the commands under {first.condition.name}, mean ± the same over the envs of each",
      *aligned(of_cells),
      *_diverged(evaluation),
    ]
  )


def title(evaluation: Evaluation) -> str:
  """Of the page of maps."""
  about = evaluation.conditions[0].circumstances
  return (
    f"{about.task}: {driver(about)}\n{about.backend}, mean over "
    f"{about.num_envs // len(evaluation.grid.commands)} envs and {evaluation.length_s:g} s of each "
    "command; colours are shared along a row"
  )


def driver(about: Circumstances) -> str:
  """Who drove, in few words."""
  if not about.checkpoint:
    return f"agent {about.agent}"
  path = Path(about.checkpoint)
  return f"{path.parent.name}/{path.name} (iteration {about.iteration})"


def estimate(figure: Figure, known: Estimate | None) -> str:
  """A mean with its interval, in the figure's unit."""
  if known is None:
    return NOT_MEASURED
  if known.half_width is None:
    return figure.said(known.mean)
  return f"{figure.said(known.mean)} ±{figure.said(known.half_width)}"


def _over_grid(one: Evaluated, columns: list[Figure]) -> tuple[str, ...]:
  return (
    one.condition.name,
    f"{one.per_env['falls'].sum():.0f}",
    f"{one.failed.sum()} of {one.failed.size}",
    *(estimate(figure, over_cells(one.per_env[figure.key])) for figure in columns),
  )


def _cell(one: Evaluated, cell: int, name: str, columns: list[Figure]) -> tuple[str, ...]:
  return (
    name,
    f"{one.per_env['falls'][cell].sum():.0f}",
    *(estimate(figure, over_envs(one.per_env[figure.key][cell])) for figure in columns),
  )


def _diverged(evaluation: Evaluation) -> list[str]:
  return [
    f"{one.condition.name}: the simulation diverged {one.diverged.sum()} time(s)"
    for one in evaluation.conditions
    if one.diverged.any()
  ]
