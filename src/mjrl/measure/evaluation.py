"""Evaluating one policy, or two against one another: what `play.py --evaluate` does."""

from collections.abc import Sequence
from pathlib import Path

from mjrl.learn.atomic import write_json
from mjrl.measure import evaluation_files, evaluation_report, versus
from mjrl.measure.conditions import Condition
from mjrl.measure.evaluated import FIGURES, Evaluation, Figure
from mjrl.measure.evaluating import Contender, evaluate, world_differences
from mjrl.measure.grid import Grid
from mjrl.measure.intervals import Estimate, over_envs
from mjrl.measure.measuring import checked_steps
from mjrl.sim.resolve import Resolved
from mjrl.view.choice import Choice

LENGTH_S = 10.0  # of each command, the time that settles included
INTERRUPTED = 130
_DRAWN = ("forward_ratio", "yaw_ratio", "falls", "slip_m_s", "cost_of_transport")


def run_evaluation(
  contenders: Sequence[Contender],
  *,
  resolved: Resolved,
  seed: int,
  grid: Grid,
  conditions: Sequence[Condition],
  steps: int | None,
  physics_hz: float | None,
  speed: float | None,
  viewer: Choice,
) -> int:
  """Evaluate, print, and write into `measure/`.

  Args:
    contenders: one, or two to compare.
    resolved: see `evaluate`, as the others.
    seed: of everything that stays random.
    grid: of commands.
    conditions: one after the other.
    steps: control steps of each; None takes `LENGTH_S`.
    physics_hz: physics rate.
    speed: simulated over real time.
    viewer: to look at it with.

  Returns:
    The exit code: 0, or 130 after Ctrl-C, which leaves nothing.

  Raises:
    ValueError: an argument or a checkpoint that cannot be used.
  """
  steps = checked_steps(steps, LENGTH_S, contenders[0].task.control_dt_s)
  world = world_differences(contenders[-1].task, contenders[0].task)
  for line in world:
    print(f"B was trained in another world, and is evaluated in A's: {line}", flush=True)
  try:
    found = evaluate(
      contenders,
      resolved=resolved,
      seed=seed,
      grid=grid,
      conditions=conditions,
      steps=steps,
      physics_hz=physics_hz,
      speed=speed,
      viewer=viewer,
    )
  except KeyboardInterrupt:
    print("\ninterrupted: nothing was written", flush=True)
    return INTERRUPTED
  checkpoint = contenders[-1].checkpoint
  into = (checkpoint.parent if checkpoint else Path.cwd()) / "measure"
  paths = _compared(into, *found, world) if len(found) == 2 else _alone(into, *found)
  print("\n".join(f"wrote {path}" for path in paths), flush=True)
  return 0


def _alone(into: Path, evaluation: Evaluation) -> tuple[Path, ...]:
  """Print and write what one policy does."""
  from mjrl.measure.heat_maps import write_png  # loads matplotlib

  print(evaluation_report.table(evaluation))
  paths = into / "evaluation.json", into / "evaluation.png"
  write_json(paths[0], evaluation_files.as_plain(evaluation))
  rows = {
    figure: {
      one.condition.name: [over_envs(row) for row in one.per_env[figure.key]]
      for one in evaluation.conditions
    }
    for figure in FIGURES
    if figure.key in _DRAWN
  }
  write_png(paths[1], evaluation_report.title(evaluation), evaluation.grid, rows)
  return paths


def _compared(into: Path, a: Evaluation, b: Evaluation, world: list[str]) -> tuple[Path, ...]:
  """Print and write how two policies differ."""
  from mjrl.measure.heat_maps import write_png

  print(versus.table(a, b))
  paths = into / "compare_policies.json", into / "compare_policies.png"
  write_json(paths[0], versus.as_plain(a, b, world))
  rows: dict[Figure, dict[str, list[Estimate | None]]] = {}
  for gap in versus.gaps(a, b):
    if gap.figure.key in _DRAWN:
      rows.setdefault(gap.figure, {})[gap.condition] = [over_envs(row) for row in gap.difference]
  write_png(paths[1], versus.title(a, b), a.grid, rows, differences=True)
  return paths
