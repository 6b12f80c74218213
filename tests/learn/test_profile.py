"""Where the time of a run goes, and that looking changes nothing."""

from dataclasses import replace

import pytest
import torch

from mjrl.envs.task import at_run, every
from mjrl.envs.terms import events
from mjrl.learn import checkpoints, profile
from mjrl.learn.profile import Profile


@pytest.fixture
def lively(small):
  """The small recipe with episodes that end, a push that is due, and a mirror."""
  push = every(
    (0.1, 0.2), events.push, horizontal_m_s=0.2, vertical_m_s=0.1, tilt_rad_s=0.3, yaw_rad_s=0.4
  )
  recipe = replace(small.recipes["native"], mirror_augmentation=True, rollout_steps=12)
  return replace(
    small,
    episode_s=0.1,
    events={**small.events, "push": push, "look": at_run("iteration", lambda moment: None)},
    recipes={"native": recipe},
  )


@pytest.fixture
def profiled(lively, make_runner):
  """A run of three iterations that is profiled: the runner and the report."""
  runner = make_runner(lively)
  watch = Profile(runner.mjrl_env.device)
  watch.attach(runner)
  runner.learn(3)
  watch.end()
  return runner, watch.report()


def spans(part, path=()):
  """Every part of the tree that was timed, by its path."""
  found = {path: part}
  for within in part["within"]:
    if within["name"] != "(rest)":
      found |= spans(within, (*path, within["name"]))
  return found


def test_looking_changes_nothing(lively, make_runner, profiled):
  # Guards: a policy that learns otherwise because its run was timed: a row that is looked up by
  # its function and not found, or drawn twice.
  plain = make_runner(lively)
  plain.learn(3)
  one, other = (checkpoints.read(run.saves.newest) for run in (plain, profiled[0]))
  for part in ("actor_state_dict", "critic_state_dict"):
    assert all(torch.equal(value, other[part][key]) for key, value in one[part].items()), part


def test_every_part_and_every_row_has_its_line(lively, profiled):
  # Guards: a method that was renamed, whose time then silently counts to the part around it.
  tree = spans(profiled[1]["run"])
  step = ("collection", "env step")
  paths = {("collection", name) for name in ("policy", "storage", "returns")}
  paths |= {("update",), ("logging",), ("checkpoint",), ("scalars",), ("state for resuming",)}
  paths |= {("run events",)}
  paths |= {(*step, name) for name in ("physics", "commands")}
  paths |= {(*step, "rewards", k) for k, row in lively.rewards.items() if row.weight}
  paths |= {(*step, "terminations", k) for k in lively.terminations}
  paths |= {(*step, "metrics", k) for k in lively.metrics}
  paths |= {(*step, "events", "push"), (*step, "resets", "physics")}
  paths |= {(*step, "resets", k) for k, e in lively.events.items() if e.when == "reset"}
  assert paths <= set(tree)
  named = {path[1] for path in paths if len(path) > 1} | {path[0] for path in paths}
  named |= {path[2] for path in paths if len(path) > 2}
  assert set(profile.SEAMS.values()) - named == {"observations", "evaluation"}
  shown = " ".join(path[3] for path in tree if path[:3] == (*step, "observations") and path[3:])
  for group, rows in lively.observations.items():
    for key in rows:
      assert f"{key} ({group})" in shown or f"{key} (policy, critic)" in shown


def test_the_warm_up_is_not_counted_and_the_parts_add_up(profiled):
  # Guards: a first iteration of seconds in the mean, and shares of more than there is.
  report = profiled[1]
  assert report["warm_up_iterations"] == 1 and report["iterations"] == 2
  tree = spans(report["run"])
  assert tree[("update",)]["calls"] == 2 and tree[("collection", "env step")]["calls"] == 24
  assert report["spans"] == sum(part["calls"] for part in tree.values())
  for part in tree.values():
    assert part["total_s"] == pytest.approx(part["mean_s"] * part["calls"])
    assert 0 <= part["min_s"] <= part["mean_s"] * 1.0001 <= part["max_s"] * 1.001
    if part["within"]:
      *within, rest = part["within"]
      assert rest["name"] == "(rest)" and rest["total_s"] >= 0
      assert sum(p["total_s"] for p in within) <= part["total_s"]
      assert sum(p["share"] for p in part["within"]) == pytest.approx(1)


def test_spans_are_timed_by_what_they_are_called_in(monkeypatch):
  # Guards: a mean, a spread or a share that is of something else; time that counts twice.
  now = [0.0]
  monkeypatch.setattr(profile.time, "perf_counter", lambda: now[0])
  watch = Profile("cpu")

  def spend(seconds):
    now[0] += seconds

  inner = watch.timed("inner", spend)

  def outer(*seconds):
    spend(1.0)
    for s in seconds:
      inner(s)

  outer = watch.timed("outer", outer)
  collect = watch._counted(lambda: None)
  collect()
  outer(100.0)  # the warm-up
  collect()
  outer(2.0, 4.0)
  with pytest.raises(TypeError):
    outer("no number")
  inner(0.5)
  spend(0.25)
  watch.end()
  spend(1000.0)
  run = watch.report()["run"]
  tree = spans(run)
  assert run["total_s"] == 8.75 and run["within"][-1]["total_s"] == 0.25
  outer, inner = tree[("outer",)], tree[("outer", "inner")]
  assert (outer["calls"], outer["total_s"], outer["max_s"], outer["min_s"]) == (2, 8.0, 7.0, 1.0)
  assert outer["within"][-1]["total_s"] == 2.0 and outer["share"] == 8.0 / 8.75
  assert (inner["calls"], inner["total_s"], inner["min_s"], inner["max_s"]) == (3, 6.0, 0.0, 4.0)
  assert inner["mean_s"] == 2.0 and inner["std_s"] == pytest.approx((8 / 3) ** 0.5)
  assert tree[("inner",)]["total_s"] == 0.5


def test_a_cuda_device_is_waited_for_at_both_ends(monkeypatch):
  # Guards: kernels that are started in one span and counted in another.
  waited = []
  monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
  watch = Profile("cuda:1")
  waited.clear()
  watch.timed("some", lambda: None)()
  assert waited == ["cuda:1", "cuda:1"]
