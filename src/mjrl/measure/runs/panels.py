"""The curves of a run as one picture, in SVG."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from mjrl.learn.curves import Curves
from mjrl.learn.rules import TRACKING
from mjrl.measure.runs.record import RunRecord

_COLUMNS = 3
_POINTS = 300  # of a curve: as many as can be seen, of a run of any length
_LADDER = "Curriculum/command/"


@dataclass(frozen=True, kw_only=True)
class Panel:
  """Curves that belong together: label to scalar, what they are divided by, and levels to see."""

  title: str
  curves: Mapping[str, str]
  over: Mapping[str, float] | None = None
  log: bool = False


def svg(run: RunRecord) -> str:
  """The picture; empty where there are no curves.

  Dashed lines are findings, a dotted one the end of what was eased.
  """
  panels = [panel for panel in _panels(run) if panel.curves]
  if not panels:
    return ""
  rows = ceil(len(panels) / _COLUMNS)
  figure = Figure(figsize=(13, 2.5 * rows), layout="constrained")
  axes = figure.subplots(rows, _COLUMNS, squeeze=False, sharex=True)
  for ax, panel in zip(axes.flat, panels, strict=False):
    _draw(ax, panel, run)
  for ax in axes.flat[len(panels) :]:
    ax.set_axis_off()
  for ax in axes.flat[max(len(panels) - _COLUMNS, 0) : len(panels)]:
    ax.set_xlabel("iteration", fontsize=8)
    ax.tick_params(labelbottom=True)
  image = io.StringIO()
  with rc_context({"svg.fonttype": "none", "svg.hashsalt": "mjrl"}):
    FigureCanvasSVG(figure).print_svg(image, metadata={"Date": None})
  text = image.getvalue()
  return text[text.index("<svg") :]  # without the prologue, which is a file's


def _panels(run: RunRecord) -> list[Panel]:
  """What there are curves of, the most telling first."""
  c, about = run.curves, run.about
  weights = about.weights if about else {}
  tracking = {name: weights[name] for name in weights if name.startswith(TRACKING)}
  errors = {"linear (m/s)": "linear_error_m_s", "its bar": "linear_bar_m_s"}
  errors |= {"angular (rad/s)": "angular_error_rad_s", "bar": "angular_bar_rad_s"}
  panels = [
    _panel(c, "mean reward", {"": "Train/mean_reward"}),
    _panel(
      c,
      "tracking rows, share of their weight",
      {name.removeprefix(TRACKING): f"Episode_Reward/{name}" for name in tracking},
      over={f"Episode_Reward/{name}": weight for name, weight in tracking.items() if weight},
    ),
    _panel(c, "ladder: errors and bars", {k: f"{_LADDER}{v}" for k, v in errors.items()}),
    _panel(c, "ladder: level", {"": f"{_LADDER}level"}),
    _panel(c, "reward rows, per second", _named(c, "Episode_Reward/", weights)),
    _panel(c, "action std", {"": "Policy/mean_std"}),
    _panel(c, "learning rate, KL", {"rate": "Loss/learning_rate", "KL": "Loss/kl"}, log=True),
    _panel(c, "variance that the critic foresaw", {"": "Loss/explained_variance"}),
    _panel(c, "value loss", {"": "Loss/value"}, log=True),
    _panel(c, "how episodes end", _named(c, "Episode_Termination/")),
    _panel(c, "landings per second", _named(c, "Feet/", ending="/landings_1_s")),
    _panel(c, "share of time on the ground", _named(c, "Feet/", ending="/duty")),
    *(
      _panel(c, f"evaluation: {name.removeprefix('eval/')}", {"": name})
      for name in ("eval/reward", "eval/success")
    ),
    *(
      _panel(c, name.removeprefix("Metrics/"), {"": name})
      for name in c.names
      if name.startswith("Metrics/") and name != "Metrics/diverged"
    ),
    _panel(c, "control steps per second", {"": "Perf/total_fps"}),
    _panel(c, "memory (MiB)", {"process": "Perf/memory_mib", "GPU": "Perf/gpu_memory_mib"}),
  ]
  return panels


def _panel(
  c: Curves,
  title: str,
  curves: Mapping[str, str],
  *,
  over: Mapping[str, float] | None = None,
  log: bool = False,
) -> Panel:
  """A panel of those of the curves that there are."""
  there = {label: name for label, name in curves.items() if c.points(name)[0]}
  return Panel(title=title, curves=there, over=over, log=log)


def _named(
  c: Curves, prefix: str, among: Mapping[str, float] | None = None, ending: str = ""
) -> dict[str, str]:
  """Label to scalar, of those that begin and end like this; `among` rows that have a weight."""
  names = [name for name in c.names if name.startswith(prefix) and name.endswith(ending)]
  labels = {name.removeprefix(prefix).removesuffix(ending): name for name in names}
  return {k: v for k, v in labels.items() if among is None or among.get(k)}


def _draw(ax: Axes, panel: Panel, run: RunRecord) -> None:
  for label, name in panel.curves.items():
    iterations, values = thinned(*run.curves.points(name))
    scale = (panel.over or {}).get(name, 1.0)
    ax.plot(iterations, [value / scale for value in values], lw=1.0, label=label)
  for found in run.findings or []:
    ax.axvline(found["iteration"], color="tab:red", ls="--", lw=0.8)
  if run.about and run.curves.first < run.about.eased_until <= run.curves.iteration:
    ax.axvline(run.about.eased_until, color="0.4", ls=":", lw=1.0)
  if panel.log and all(
    value > 0 for n in panel.curves.values() for value in run.curves.points(n)[1]
  ):
    ax.set_yscale("log")
  ax.set_title(panel.title, fontsize=9)
  ax.tick_params(labelsize=7)
  ax.grid(alpha=0.3)
  if any(panel.curves):
    ax.legend(fontsize=6, ncols=2 if len(panel.curves) > 6 else 1, framealpha=0.6)


def thinned(iterations: Sequence[int], values: Sequence[float]) -> tuple[list[float], list[float]]:
  """A curve as at most 300 points, each a mean of its neighbours."""
  size = ceil(len(values) / _POINTS)
  parts = range(0, len(values), size) if size else range(0)
  return tuple(  # type: ignore[return-value]
    [sum(row[k : k + size]) / len(row[k : k + size]) for k in parts] for row in (iterations, values)
  )
