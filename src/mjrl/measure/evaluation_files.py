"""evaluation.json: every figure of every command under every condition."""

from dataclasses import asdict
from typing import Any

from mjrl.measure.evaluated import FIGURES, Evaluated, Evaluation
from mjrl.measure.files import COMMAND
from mjrl.measure.grid import Grid
from mjrl.measure.intervals import METHOD, Estimate, over_cells, over_envs

SCHEMA = "mjrl/evaluation/1"
FIGURE_DEFINITIONS = {
  "forward_ratio, yaw_ratio": "Mean velocity in the base frame over the commanded one; null where "
  "none was commanded.",
  "linear_error_m_s, yaw_error_rad_s": "Distance of the mean velocity, forward and left, from the "
  "commanded one; of the mean yaw rate likewise.",
  "falls": "Episodes of an env that a termination of the task ended, from the start; the env "
  "starts anew.",
  "slip_m_s": "Mean horizontal speed of the feet while they touch the ground.",
  "cost_of_transport": "As in measure.json, with each robot's own mass; null where the command "
  "does not travel, or the robot does not.",
}
_DEFINITIONS = {
  "conditions": "what says how a condition differs from base; changes, what its events are "
  "otherwise than in the task; differences_from_training and as_in_training, the rest.",
  "figures": "Worked out per env over the counted steps: all but the first settle_s of each "
  "episode and the one in which it fails.  values are those of the envs, in order, "
  "null where one has not the figure; with the same seed, grid and num_envs, env k of "
  "a condition is the same robot with the same start in every evaluation.",
  "mean, half_width": f"{METHOD}.  Of a command, over its envs; over_grid is the mean over the "
  "commands, each counting alike, and the envs within each command make its interval.",
  "falls, envs_failed, diverged": "Of a condition: sums over all envs, see measure.json.",
  **FIGURE_DEFINITIONS,
}
_OF_CONDITION = ("observation_noise", "differences_from_training", "as_in_training")


def as_plain(evaluation: Evaluation) -> dict[str, Any]:
  """What evaluation.json holds."""
  about = asdict(evaluation.conditions[0].circumstances)
  for name in _OF_CONDITION:
    del about[name]
  return {
    "schema": SCHEMA,
    **about,
    "grid": asdict(evaluation.grid),
    "envs_per_command": about["num_envs"] // len(evaluation.grid.commands),
    "steps": evaluation.steps,
    "length_s": evaluation.length_s,
    "interval": METHOD,
    "conditions": [_condition(one, evaluation.grid) for one in evaluation.conditions],
    "definitions": _DEFINITIONS,
  }


def estimated(known: Estimate | None) -> dict[str, Any] | None:
  """An estimate in plain values."""
  return None if known is None else asdict(known)


def _condition(one: Evaluated, grid: Grid) -> dict[str, Any]:
  about = asdict(one.circumstances)
  return {
    "name": one.condition.name,
    "what": one.condition.what,
    "pushes": one.condition.pushes,
    "changes": one.changes,
    **{name: about[name] for name in _OF_CONDITION},
    "falls": int(one.per_env["falls"].sum()),
    "envs_failed": int(one.failed.sum()),
    "diverged": int(one.diverged.sum()),
    "over_grid": {row.key: estimated(over_cells(one.per_env[row.key])) for row in FIGURES},
    "commands": [_cell(one, cell, command) for cell, command in enumerate(grid.commands)],
  }


def _cell(one: Evaluated, cell: int, command: tuple[float, float, float]) -> dict[str, Any]:
  values = {row.key: one.per_env[row.key][cell] for row in FIGURES}
  return {
    "command": dict(zip(COMMAND, command, strict=True)),
    "counted_share": float(one.counted[cell]),
    "falls": int(values["falls"].sum()),
    "envs_failed": int(one.failed[cell].sum()),
    "diverged": int(one.diverged[cell].sum()),
    "figures": {
      key: None
      if (known := over_envs(of_envs)) is None
      else {
        **asdict(known),
        "values": [None if value != value else value for value in of_envs.tolist()],
      }
      for key, of_envs in values.items()
    },
  }
