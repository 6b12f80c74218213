import json
from dataclasses import replace
from math import sqrt

import pytest
import torch

from mjrl import tasks
from mjrl.measure.compare import as_plain, gaps, table
from mjrl.measure.play import play
from mjrl.measure.statistics import Spread
from mjrl.sim.resolve import Resolved
from mjrl.view.choice import Choice


@pytest.fixture
def both(measured):
  """The perfect walk and the same on another engine: slower, and failing once."""

  def with_(of, part, **figures):
    first = replace(of.segments[0], figures=replace(part.figures, **figures))
    return replace(of, segments=(first, *of.segments[1:]))

  part = measured.segments[0]
  speeds = [replace(part.figures.forward_m_s, achieved=spread(m, s)) for m, s in ((0.2, 0.03),)]
  first = with_(measured, part, forward_m_s=speeds[0], cost_of_transport=spread(1.0, 0.1))
  slower = replace(speeds[0], achieved=spread(0.12, 0.04))
  other = with_(measured, part, forward_m_s=slower, falls=4, cost_of_transport=None)
  about = replace(measured.circumstances, backend="warp:cpu")
  return first, replace(other, circumstances=about)


def spread(mean, std, envs=10):
  return Spread(mean=mean, std=std, envs=envs)


def rows(text):
  """Label to the cells beside it, of the first command; of two of a label, the first."""
  block = text.splitlines()[3:]
  block = block[: next(k for k, line in enumerate(block) if not line.startswith("  "))]
  return {line[:30].strip(): line[30:].split() for line in reversed(block)}


def test_a_gap_is_judged_by_the_spread_over_envs(both):
  # Guards: two engines said to differ where envs differ as much, or to agree whatever they do.
  found = {gap.figure.key: gap for gap in gaps(*both)[0]}
  speed, ratio = found["forward_m_s.achieved"], found["forward_m_s.ratio"]
  assert speed.difference == pytest.approx(-0.08)
  assert speed.two_standard_errors == pytest.approx(2 * 0.05 / sqrt(9))
  assert speed.within is False
  assert ratio.difference == pytest.approx(-0.2)  # 0.4 m/s were asked for
  assert ratio.two_standard_errors == pytest.approx(speed.two_standard_errors / 0.4)
  assert found["falls"].difference == 4 and found["falls"].two_standard_errors == 4
  assert found["falls"].within is True
  assert found["cost_of_transport"].within is None
  assert found["yaw_rad_s.achieved"].within is True  # the same on both
  assert "left_m_s.achieved" not in found and "drift_m_s" not in found  # not asked for


def test_a_single_env_has_no_spread(both):
  # Guards: every difference said to be significant, because one env does not differ from itself.
  first, other = both
  part = first.segments[0]
  speed = replace(part.figures.forward_m_s, achieved=spread(0.2, 0.0, envs=1))
  part = replace(part, figures=replace(part.figures, forward_m_s=speed))
  found = {gap.figure.key: gap for gap in gaps(replace(first, segments=(part,) * 3), other)[0]}
  assert found["forward_m_s.achieved"].difference == pytest.approx(-0.08)
  assert found["forward_m_s.achieved"].within is None


def test_the_table_says_what_was_found(both):
  # Guards: a number under the other engine, or in another unit; a missing figure passed over.
  text = table(*both)
  found = rows(text)
  assert "from native:cpu to warp:cpu: 2 envs each, seed 5" in text
  assert found["forward, m/s"] == ["0.200", "0.120", "-0.080", "±0.033", "OUTSIDE"]
  assert found["of commanded, %"] == ["50.0", "30.0", "-20.0", "±8.3", "OUTSIDE"]
  assert found["falls"] == ["0", "4", "+4", "±4", "within"]
  assert found["foot lift, mm"] == ["32.0", "32.0", "+0.0", "±0.0", "within"]
  assert found["slip, cm/s"][:2] == ["1.00", "1.00"]
  assert found["cost of transport"] == ["1.000", "-", "-", "-", "on", "one", "only"]


def test_what_cannot_differ_is_not_counted_as_agreement(both):
  # Guards: 20 segments without a fall on either engine making 20 agreements.
  got = as_plain(*both)
  assert (got["within_count"], got["compared_count"]) == (2, 3)  # falls, once there and once not
  figures = got["segments"][0]["figures"]
  assert figures["falls"]["other"] == 4 and figures["cost_of_transport"]["other"] is None
  assert got["engines"] == ["native:cpu", "warp:cpu"]
  json.dumps(got, allow_nan=False)


@pytest.fixture(scope="module")
def resolved():
  """Both engines."""
  common = {"device": "cpu", "num_envs": 3, "torch_threads": 1, "reasons": {}}
  native = Resolved(backend="native", threads=1, **common)
  return native, Resolved(backend="warp", threads=0, nconmax=24, njmax=80, **common)


@pytest.fixture
def compared(resolved):
  """Measure an agent on native, then on warp; the exit code."""
  native, warp = resolved

  def run(agent):
    return play(
      task=tasks.build("jumper.tripod"),
      resolved=native,
      compared=warp,
      seed=3,
      agent=agent,
      film=None,
      library="",
      checkpoint=None,
      steps=60,
      speed=0.0,
      command=(0.2, 0.0, 0.0),
      posture=None,
      obs_noise=True,
      physics_hz=None,
      measure=True,
      viewer=Choice(),
    )

  return run


def test_a_policy_is_measured_on_both_engines(tmp_path, monkeypatch, capsys, compared):
  # Guards: an engine compared with itself; other commands, seeds or lengths than the first's; the
  # usual files written by the wrong one of the two.
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr("mjrl.measure.plots.write_png", lambda *_: None)
  torch.set_num_threads(1)
  code = compared("random")
  assert code == 0 and "from native:cpu to warp:cpu" in capsys.readouterr().out
  names = ("measure", "measure_warp_cpu", "compare")
  one, two, gap = (json.loads((tmp_path / f"measure/{name}.json").read_text()) for name in names)
  assert [one.pop("backend"), two.pop("backend")] == gap["engines"] == ["native:cpu", "warp:cpu"]
  (of_one,), (of_two,), (of_gap,) = (found.pop("segments") for found in (one, two, gap))
  assert one == two and one["seed"] == gap["seed"] == 3
  assert of_one["command"] == of_two["command"] and of_one["steps"] == of_two["steps"] == 60
  speeds = [part["forward_m_s"]["achieved"]["mean"] for part in (of_one, of_two)]
  assert speeds[0] != speeds[1]
  assert speeds[0] == pytest.approx(speeds[1], abs=0.05)
  figure = of_gap["figures"]["forward_m_s.achieved"]
  assert [figure["first"], figure["other"]] == speeds
  assert (tmp_path / "measure/measure.csv").is_file()


def test_ctrl_c_in_the_second_measurement_keeps_the_first(tmp_path, monkeypatch, capsys, compared):
  # Guards: an hour on the CPU lost with the slow engine's, or said to be.
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr("mjrl.measure.plots.write_png", lambda *_: None)
  from mjrl.measure import play as module

  measure = module.measure_replay

  def until_warp(replay, *rest):
    if replay.resolved.backend == "warp":
      raise KeyboardInterrupt
    return measure(replay, *rest)

  monkeypatch.setattr(module, "measure_replay", until_warp)
  code = compared("zero")
  assert code == 130 and "native:cpu alone was written" in capsys.readouterr().out
  assert sorted(p.name for p in (tmp_path / "measure").iterdir()) == ["measure.csv", "measure.json"]
