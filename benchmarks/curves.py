"""Learning curves of runs, side by side, from their TensorBoard files.

python benchmarks/curves.py logs/jumper/jumper.tripod/* --out docs/curves.png
"""

from dataclasses import dataclass, field
from pathlib import Path

import tyro

PANELS = {
  "Metrics/wrong_feet": "feet out of step",
  "Metrics/linear_error_m_s": "velocity error (m/s)",
  "Metrics/angular_error_rad_s": "yaw rate error (rad/s)",
  "Curriculum/command/level": "command ladder (level)",
  "Train/mean_reward": "mean reward, eased rows included",
  "Policy/mean_std": "action std",
}
"""Scalar to the title of its panel."""


@dataclass(kw_only=True)
class Flags:
  """Which runs, and where to."""

  out: Path = Path("curves.png")
  smooth: int = 15
  """Iterations of the running mean; 1 draws every iteration."""
  eased_until: int = 0
  """Iteration to mark, from which on every reward is the task's own; 0 marks none."""
  runs: tyro.conf.Positional[list[Path]] = field(default_factory=list)
  """Run folders."""


def scalars(run: Path) -> dict[str, tuple[list[int], list[float], list[float]]]:
  """Scalar to its iterations, its minutes since the first, and its values."""
  from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

  events = EventAccumulator(str(run), size_guidance={"scalars": 0})
  events.Reload()
  found = {}
  for name in PANELS:
    if name in events.Tags()["scalars"]:
      rows = events.Scalars(name)
      first = rows[0].wall_time
      found[name] = (
        [row.step for row in rows],
        [(row.wall_time - first) / 60 for row in rows],
        [row.value for row in rows],
      )
  if not found:
    raise SystemExit(f"{run}: no TensorBoard scalars of a training run in this folder")
  return found


def smoothed(values: list[float], width: int) -> list[float]:
  """Running mean of the last `width` values."""
  return [
    sum(values[max(0, k - width + 1) : k + 1]) / min(width, k + 1) for k in range(len(values))
  ]


def main() -> None:
  """Draw the panels."""
  import matplotlib

  matplotlib.use("Agg")
  from matplotlib import pyplot as plt

  flags = tyro.cli(Flags, description=__doc__)
  if not flags.runs:
    raise SystemExit("name at least one run folder")
  figure, axes = plt.subplots(2, 3, figsize=(12, 6), layout="constrained", sharex=True)
  for run in flags.runs:
    found = scalars(run)
    for axis, (name, title) in zip(axes.flat, PANELS.items(), strict=True):
      axis.set_title(title, fontsize=10)
      if name in found:
        iterations, minutes, values = found[name]
        label = f"{run.name} ({minutes[-1]:.1f} min)"
        axis.plot(iterations, smoothed(values, flags.smooth), lw=1.2, label=label)
  for axis in axes.flat:
    axis.grid(alpha=0.3)
    axis.set_ylim(bottom=0)
    if flags.eased_until:
      axis.axvline(flags.eased_until, color="0.5", ls="--", lw=1)
  for axis in axes[1]:
    axis.set_xlabel("iteration")
  axes[0, 0].legend(fontsize=8)
  figure.savefig(flags.out, dpi=90)
  print(f"wrote {flags.out}")


if __name__ == "__main__":
  main()
