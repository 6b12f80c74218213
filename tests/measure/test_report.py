from dataclasses import replace

import numpy as np
import pytest

from mjrl.measure.plots import page
from mjrl.measure.report import aligned, report


def test_the_report_quotes_what_was_measured(measured):
  # Guards: a line of the report under another's label, or in another unit.
  lines = {line[:25].strip(): line[25:].split("  ") for line in report(measured).splitlines()[2:]}
  cells = {label: [c.strip() for c in row if c.strip()] for label, row in lines.items()}
  assert cells["achieved, ± over envs"] == ["+0.200 ±0.000 m/s, +0.000 ±0.000 rad/s", "-", "-"]
  assert cells["achieved of commanded"] == ["50 %, 0 %", "-", "-"]
  assert cells["drift"] == ["-", "20.0 cm/s", "-"]
  assert cells["falls"] == ["0", "0", "317"]
  assert cells["foot lift / over ground"] == ["32 / 30 mm", "32 / 30 mm", "-"]
  assert cells["clock: worst foot"] == cells["clock: all feet, ±1 step"] == ["100 %", "-", "-"]
  assert cells["slip of feet on ground"] == ["1.0 cm/s", "1.0 cm/s", "-"]
  assert cells["cost of transport"] == ["1.02", "-", "-"]
  assert cells["greatest tilt"] == ["2.9°", "2.9°", "-"]


def test_the_report_says_where_it_comes_from_and_what_went_wrong(measured):
  # Guards: numbers without checkpoint, engine or noise; a divergence among the falls.
  text = report(measured)
  assert "a.task on native:cpu: runs/one/model_7.pt (iteration 7)" in text
  assert "2 envs, 3.2 s each command" in text and "noise on, seed 5" in text
  assert "forward 0.1 m/s: the simulation diverged 3 time(s)" in text
  assert "forward 0.1 m/s: no episode lasted long enough" in text


def test_columns_line_up():
  # Guards: a number read in its neighbour's column.
  assert aligned([("a", "b", "ccc"), ("aaa", "bb", "c")]) == ["a     b  ccc", "aaa  bb    c"]


def test_an_unknown_column_is_refused(measured):
  # Guards: a picture of another series.
  with pytest.raises(ValueError, match="no column 'pos/X'; the columns are fell"):
    measured.index("pos/X")


def test_the_picture_says_what_it_shows(measured):
  # Guards: a page that cannot be told from another run's.
  names = ["contact", "clock", "height", "force"]
  columns = [f"{kind}/{foot}" for kind in names for foot in measured.feet]
  columns += [f"{kind}/{joint}" for kind in ("pos", "vel", "tau") for joint in measured.joints]
  parts = [replace(part, env0=np.zeros((160, len(columns)))) for part in measured.segments]
  figure = page(replace(measured, columns=tuple(columns), segments=tuple(parts)))
  title = figure.get_suptitle()
  for text in ("a.task", "one/model_7.pt (iteration 7)", "native:cpu", "200 Hz", "noise on"):
    assert text in title
  assert all(
    ax.get_ylabel() or ax.get_xlabel() or ax.get_title() or not ax.axison or ax.get_shared_x_axes()
    for ax in figure.axes
  )
