"""What a run finds, and that it says so everywhere."""

import json
import os
from dataclasses import asdict

import psutil
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mjrl.learn import findings
from mjrl.learn.curves import read
from mjrl.learn.findings import Judge, replayed
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.learn.usage import Usage
from mjrl.sim.resolve import Resolved


def noisy(c, about):
  values = c.recent("a", 10)
  return f"a is {values[-1]:g}" if values and values[-1] > 5 else ""


@pytest.fixture
def rule(monkeypatch):
  monkeypatch.setattr(findings, "RULES", {"too-much": noisy})


def test_a_thing_is_found_once_and_may_pass(rule):
  # Guards: a line in every block, which nobody reads; one that is over, told as if it were not.
  judge = Judge(about=None)
  said = [judge.take(k, {"a": 9.0 if 15 < k < 60 else 1.0}) for k in range(100)]
  assert [finding.iteration for new in said for finding in new] == [19]
  assert judge.plain() == [
    {"rule": "too-much", "iteration": 19, "evidence": "a is 9", "at_the_end": False}
  ]
  (found,) = judge.found.values()
  assert found.text == "too-much: a is 9; what to do: docs/reading_a_run.md#too-much"
  assert [asdict(f) for f in replayed(judge.curves, None).found.values()] == [asdict(found)]


def test_a_run_says_it_everywhere(rule, small, tmp_path, monkeypatch, capsys):
  # Guards: a finding that a terminal shows and a file does not, or the other way round; a judge
  # that never gets to see the scalars.
  monkeypatch.setattr(findings, "EVERY", 1)
  monkeypatch.setitem(findings.RULES, "too-much", lambda c, about: "10 of 3" if c.rows else "")
  resolved = Resolved(
    backend="native", device="cpu", num_envs=8, threads=2, torch_threads=1, reasons={}
  )
  code = train(
    task=small,
    resolved=resolved,
    seed=0,
    max_iterations=2,
    checkpoint=None,
    log_dir=tmp_path,
    command="train.py",
    options=Options(),
    stop=StopAsked(),
  )
  assert code == 0
  (folder,) = tmp_path.glob("*/*/*")
  text = "too-much: 10 of 3; what to do: docs/reading_a_run.md#too-much"
  out = capsys.readouterr().out
  assert out.count(f"\nFOUND {text}\n") == 1  # below the block of iteration 0
  assert out.index("FOUND") < out.index("Learning iteration 1/1")
  assert f"found at iteration 0: {text}" in out
  assert json.loads((folder / "summary.json").read_text())["findings"] == [
    {"rule": "too-much", "iteration": 0, "evidence": "10 of 3", "at_the_end": True}
  ]
  events = EventAccumulator(str(folder))
  events.Reload()
  (tag,) = [tag for tag in events.Tags()["tensors"] if tag.startswith("findings/")]
  (event,) = events.Tensors(tag)
  assert tag == "findings/too-much" and event.step == 0
  assert event.tensor_proto.string_val[0].decode() == text

  # What the rules look at is there, each a column.
  curves = read(folder)
  for name in ("Loss/kl", "Loss/explained_variance", "Perf/cpu_time", "Perf/memory_mib"):
    assert len(curves.points(name)[1]) == 2, name
  assert curves.points("Feet/LM/duty")[0]
  assert "Feet/LM/duty" not in out  # twelve lines in every block


def test_the_process_is_measured():
  # Guards: CPU time since the process began in place of since the last iteration, bytes for MiB.
  usage = Usage("cpu")
  while sum(os.times()[:2]) < 0.2:  # a process that is new may have used none yet
    pass
  usage.since()
  sum(range(3_000_000))
  found = usage.since()
  assert 0 < found["Perf/cpu_time"] < sum(os.times()[:2])
  rss = psutil.Process().memory_info().rss
  assert found["Perf/memory_mib"] == pytest.approx(rss / 2**20, rel=0.2)
  assert set(found) == {"Perf/cpu_time", "Perf/memory_mib"}
