from dataclasses import replace

import numpy as np
import pytest

from mjrl.measure.figures import segment_figures
from mjrl.measure.measured import Circumstances, Measured, MeasuredSegment
from mjrl.measure.plots import page
from mjrl.measure.report import aligned, report
from mjrl.measure.series import segment

FEET = ("LF", "RF", "LM", "RM", "LR", "RR")


@pytest.fixture
def measured(walk, tripod):
  """The perfect walk, asked once to walk and turn, and once to stand."""

  def part(command, recording=walk):
    held = segment(command)
    figures = segment_figures(
      recording,
      held,
      joints=("A_J0", "A_J1"),
      feet=FEET,
      clock=tripod,
      effort_limit_n_m=2.0,
      mass_kg=2.5,
      settle_s=0.2,
    )
    return MeasuredSegment(
      segment=held,
      figures=figures,
      env0=np.zeros((160, 1)),
      velocity_mean=np.zeros((160, 3)),
      velocity_std=np.zeros((160, 3)),
    )

  about = Circumstances(
    task="a.task",
    robot="a",
    agent="trained",
    checkpoint="runs/one/model_7.pt",
    iteration=7,
    backend="native:cpu",
    device="cpu",
    num_envs=2,
    seed=5,
    physics_hz=200.0,
    control_hz=50.0,
    observation_noise=True,
    settle_s=0.2,
    mass_kg=2.5,
    effort_limit_n_m=2.0,
    differences_from_training=(),
    as_in_training=(),
    versions={},
  )
  always_down = replace(walk, ended=np.ones_like(walk.ended), diverged=3)
  return Measured(
    circumstances=about,
    joints=("A_J0", "A_J1"),
    feet=FEET,
    joint_range_rad={"A_J0": (-1.0, 1.0), "A_J1": (-1.0, 1.0)},
    columns=("fell",),
    segments=(part((0.4, 0, 0.5)), part((0, 0, 0)), part((0.1, 0, 0), always_down)),
  )


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
  columns = [f"{kind}/{foot}" for kind in names for foot in FEET]
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
