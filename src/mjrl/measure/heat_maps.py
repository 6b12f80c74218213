"""evaluation.png and compare_policies.png: a figure per row, a condition per column, as maps."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure as Page

from mjrl.learn.atomic import write_bytes
from mjrl.measure.evaluated import Figure
from mjrl.measure.grid import Grid
from mjrl.measure.intervals import Estimate

DPI = 110
_CELL_IN = (0.62, 0.42)  # width and height of a cell
_AROUND_IN = (1.1, 1.05)  # of a map, for its ticks and titles
_DARK = 0.45  # luminance below which text is white
_MISSING = "#eeeeee"


# Figure to condition to the estimate of each cell, None where there is none.
Rows = Mapping[Figure, Mapping[str, Sequence[Estimate | None]]]


def write_png(path: Path, title: str, grid: Grid, rows: Rows, *, differences: bool = False) -> None:
  """Draw the maps into a file, without a display.

  Args:
    path: of the file.
    title: of the page.
    grid: whose cells are drawn.
    rows: the same conditions of every figure.
    differences: whether the values are differences, of which those that are more than noise stand
      out.
  """
  image = io.BytesIO()
  FigureCanvasAgg(_page(title, grid, rows, differences)).print_png(image)
  write_bytes(path, image.getvalue())


def _page(title: str, grid: Grid, rows: Rows, differences: bool) -> Page:
  conditions = list(next(iter(rows.values())))
  width = len(conditions) * (_CELL_IN[0] * len(grid.yaw_rad_s) + _AROUND_IN[0])
  height = len(rows) * (_CELL_IN[1] * len(grid.forward_m_s) + _AROUND_IN[1])
  page = Page(figsize=(max(width, 9) + 0.6, height + 0.9), dpi=DPI, layout="constrained")
  page.suptitle(title, fontsize=12, x=0.01, ha="left", linespacing=1.4)
  maps = page.subplots(len(rows), len(conditions), squeeze=False)
  for (figure, of_figure), of_row in zip(rows.items(), maps, strict=True):
    middle = 0.0 if differences else figure.ideal
    colours, scale = _scale(of_figure, middle)
    for name, ax in zip(conditions, of_row, strict=True):
      _map(ax, grid, figure, of_figure[name], colours, scale, differences)
    of_row[0].set_ylabel(f"{figure.title}\n\nforward (m/s)", fontsize=9, fontweight="bold")
  for name, ax in zip(conditions, maps[0], strict=True):
    ax.set_title(name, fontsize=11, fontweight="bold")
  for ax in maps[-1]:
    ax.set_xlabel("yaw (rad/s)", fontsize=9)
  return page


def _scale(
  of_figure: Mapping[str, Sequence[Estimate | None]], middle: float | None
) -> tuple[Colormap, Normalize]:
  """The colours of a figure, which all of its maps share: about a middle, or from 0 up."""
  known = [one.mean for cells in of_figure.values() for one in cells if one]
  colours = colormaps["YlOrRd" if middle is None else "PuOr"].with_extremes(bad=_MISSING)
  if middle is None:
    return colours, Normalize(0.0, max([*known, 1e-9]))
  reach = max([abs(mean - middle) for mean in known], default=0.0) or 1e-9
  return colours, Normalize(middle - reach, middle + reach)


def _map(
  ax: Axes,
  grid: Grid,
  figure: Figure,
  cells: Sequence[Estimate | None],
  colours: Colormap,
  scale: Normalize,
  differences: bool,
) -> None:
  shape = len(grid.forward_m_s), len(grid.yaw_rad_s)
  means = np.array([np.nan if one is None else one.mean for one in cells])
  ax.imshow(means.reshape(shape), origin="lower", aspect="auto", cmap=colours, norm=scale)
  for cell, one in enumerate(cells):
    if one is None:
      continue
    forward, yaw = divmod(cell, shape[1])
    red, green, blue, _ = colours(scale(one.mean))
    ax.text(
      yaw,
      forward,
      figure.said(one.mean, "+" if differences else ""),
      ha="center",
      va="center",
      fontsize=8,
      fontweight="bold" if differences and one.certain else "normal",
      alpha=0.45 if differences and not one.certain else 1.0,
      color="white" if 0.3 * red + 0.59 * green + 0.11 * blue < _DARK else "black",
    )
  ax.set_xticks(range(shape[1]), [f"{w:.3g}" for w in grid.yaw_rad_s], fontsize=8)
  ax.set_yticks(range(shape[0]), [f"{v:.3g}" for v in grid.forward_m_s], fontsize=8)
  ax.tick_params(length=0)
