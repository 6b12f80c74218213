import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from mjrl import tasks
from mjrl.measure import versus
from mjrl.measure.conditions import CONDITIONS, choose, under
from mjrl.measure.evaluated import FIGURES, Evaluation, evaluated
from mjrl.measure.evaluating import Contender, in_world, world_differences
from mjrl.measure.evaluation import run_evaluation
from mjrl.measure.grid import Grid, envs_for, standard_grid
from mjrl.measure.replay import open_replay
from mjrl.sim.resolve import Resolved
from mjrl.view.choice import Choice

GRID = Grid(forward_m_s=(0.0, 0.2), yaw_rad_s=(-0.5, 0.5))
TABLE = {row.name: row for row in CONDITIONS}
FIGURE = {figure.key: figure for figure in FIGURES}


@pytest.fixture(scope="module")
def task():
  return tasks.build("jumper.tripod")


@pytest.fixture
def walks(walk, measured):
  """The evaluation of a walk in which each env goes at a speed of its own: two for each command."""
  envs = 8

  def many(values):
    return np.repeat(values[:, :1], envs, axis=1)

  names = [k for k, v in vars(walk).items() if isinstance(v, np.ndarray) and k != "env0"]
  wide = replace(walk, **{name: many(getattr(walk, name)) for name in names})
  velocity = wide.velocity.copy()
  velocity[:, :, 0] = 0.1 * np.arange(envs)
  velocity[:, :, 2] = 0.01 * np.arange(envs)
  ended = wide.ended.copy()
  ended[5, 3] = ended[60, 3] = ended[90, 6] = True
  diverged = np.zeros_like(ended)
  diverged[90, 6] = True
  recording = replace(wide, velocity=velocity, ended=ended, diverged=diverged)
  about = replace(measured.circumstances, num_envs=envs)

  def found(mass_kg=2.5, recording=recording):
    one = evaluated(recording, GRID, TABLE["base"], about, (), np.full(envs, mass_kg))
    return Evaluation(grid=GRID, steps=160, conditions=(one,))

  return found


def test_every_env_is_counted_to_its_own_command(walks):
  # Guards: a map whose cells are another command's: it looks as good as the right one.
  (one,) = walks().conditions
  asked = GRID.per_env(8)
  assert asked[:, 0].tolist() == pytest.approx([0, 0, 0, 0, 0.2, 0.2, 0.2, 0.2])
  assert asked[:, 2].tolist() == [-0.5, -0.5, 0.5, 0.5] * 2
  ratio = one.per_env["forward_ratio"]
  assert np.isnan(ratio[:2]).all()
  np.testing.assert_allclose(ratio[2:], [[2.0, 2.5], [3.0, 3.5]])
  np.testing.assert_allclose(one.per_env["yaw_ratio"][1], [0.02 / 0.5, 0.03 / 0.5])
  np.testing.assert_allclose(one.per_env["linear_error_m_s"][0], [0.0, 0.1], atol=1e-12)
  np.testing.assert_allclose(one.per_env["yaw_error_rad_s"][0], [0.5, 0.51])
  assert one.per_env["falls"].tolist() == [[0, 0], [0, 2], [0, 0], [0, 0]]
  assert one.diverged.tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]
  assert one.failed.tolist() == [[False] * 2, [False, True], [False] * 2, [True, False]]


def test_the_cost_of_transport_is_that_of_the_robot_s_own_mass(walks):
  # Guards: a heavy robot that seems to walk for less, and turning on the spot at a cost.
  (light,), (heavy,) = (walks(mass_kg=m).conditions for m in (2.0, 4.0))
  costs = [one.per_env["cost_of_transport"] for one in (light, heavy)]
  assert np.isnan(costs[0][:2]).all()  # asked to turn alone
  np.testing.assert_allclose(costs[0][2:], 2 * costs[1][2:])


def test_the_grid_is_within_what_the_task_asks_for(task):
  # Guards: a policy measured on commands that no training has drawn.
  grid = standard_grid(task)
  assert grid.forward_m_s == (-0.5, -0.25, 0, 0.25, 0.5)
  assert grid.yaw_rad_s == (-0.75, -0.375, 0, 0.375, 0.75)
  ahead = replace(task, command=replace(task.command, forward_m_s=(0.2, 1.0), yaw_rad_s=(0, 1)))
  assert standard_grid(ahead).forward_m_s == (0.0, 0.2, 0.5, 1.0)
  assert standard_grid(ahead).yaw_rad_s == (0, 0.5, 1)
  with pytest.raises(ValueError, match="asks for no velocity"):
    standard_grid(replace(task, command=None, curriculum=None, terrain=None))


@pytest.mark.parametrize(("asked", "instead"), [(7, "give 8"), (4, "give 8"), (9, "8 or 12")])
def test_envs_that_the_commands_cannot_share_are_refused(asked, instead):
  # Guards: commands measured with more envs than others, or without an interval.
  assert envs_for(GRID, None) == 32 and envs_for(GRID, 12) == 12
  with pytest.raises(ValueError, match=instead):
    envs_for(GRID, asked)


def test_conditions_that_change_nothing_are_refused_or_left_out(task):
  # Guards: a condition that is measured twice under two names.
  assert [row.name for row in choose(task, ())] == list(TABLE)
  events = {name: event for name, event in task.events.items() if event.when != "interval"}
  calm = replace(task, events=events)
  assert "pushed" not in [row.name for row in choose(calm, ())]
  for names, says in (
    (["pushed"], "has no pushes"),
    (["clen"], "did you mean 'clean'"),
    (["base", "base"], "stands there twice"),
  ):
    with pytest.raises(ValueError, match=says):
      choose(calm, names)


def test_a_condition_changes_the_world_as_it_says(task):
  # Guards: a slippery floor or a heavy robot that is neither, because another event has the name.
  resolved = Resolved(
    backend="native", device="cpu", num_envs=2, threads=1, torch_threads=1, reasons={}
  )

  def world(name):
    condition = TABLE[name]
    replay = open_replay(
      under(task, condition),
      resolved,
      seed=1,
      agent="zero",
      checkpoint=None,
      command=None,
      posture=None,
      obs_noise=condition.noise,
      physics_hz=None,
      measure=True,
      pushes=condition.pushes,
    )
    backend = replay.env.backend
    foot = backend.model.geom("LF_foot").id
    mass_kg = backend.get_model("body_mass").sum(1)
    return replay, mass_kg, backend.get_model("geom_friction")[:, foot, 0]

  base, mass_kg, friction = world("base")
  assert not base.env._interval_events and "No disturbances" in base.differences[0]
  assert friction.min() >= 0.5
  torch.testing.assert_close(world("heavy")[1], 1.3 * mass_kg)
  torch.testing.assert_close(world("slippery")[2], torch.full((2,), 0.3))
  pushed = world("pushed")[0]
  assert len(pushed.env._interval_events) == 1
  assert any("disturb the robot: push" in line for line in pushed.as_in_training)
  clean = world("clean")[0].env.task.observations["policy"].values()
  assert not any(row.noise for row in clean)


def test_an_evaluation_is_written_whole(task, tmp_path, monkeypatch, capsys):
  # Guards: a file without what it takes to place its numbers, or with numbers that no JSON has.
  monkeypatch.chdir(tmp_path)
  code = run_evaluation(
    [Contender(task=task, agent="zero", checkpoint=None)],
    resolved=Resolved(
      backend="native", device="cpu", num_envs=8, threads=1, torch_threads=1, reasons={}
    ),
    seed=3,
    grid=GRID,
    conditions=choose(task, ["base", "slippery"]),
    steps=60,
    physics_hz=None,
    speed=0.0,
    viewer=Choice(),
  )
  assert code == 0
  got = json.loads((tmp_path / "measure/evaluation.json").read_text(), parse_constant=pytest.fail)
  assert (tmp_path / "measure/evaluation.png").read_bytes().startswith(b"\x89PNG")
  assert got["schema"] == "mjrl/evaluation/1" and got["seed"] == 3 and got["length_s"] == 1.2
  assert got["grid"] == {"forward_m_s": [0.0, 0.2], "yaw_rad_s": [-0.5, 0.5]}
  base, slippery = got["conditions"]
  assert base["changes"] == []
  assert slippery["changes"] == ["events.foot_friction.params.sliding: [0.5, 1.5] -> [0.3, 0.3]"]
  walk = base["commands"][2]
  assert walk["command"] == {"forward_m_s": 0.2, "left_m_s": 0.0, "yaw_rad_s": -0.5}
  assert abs(walk["figures"]["forward_ratio"]["mean"]) < 0.1  # who stands does not walk
  assert walk["figures"]["linear_error_m_s"]["mean"] == pytest.approx(0.2, abs=0.02)
  assert len(walk["figures"]["slip_m_s"]["values"]) == 2
  out = capsys.readouterr().out
  assert "0 of 8" in out and "slippery" in out and str(tmp_path / "measure") in out


def test_a_difference_that_every_env_shows_is_more_than_noise(walks, walk):
  # Guards: two policies told apart by their robots, or a better one called worse: of ratios, more
  # is not better.
  a = walks()
  (one,) = a.conditions
  noisy = {key: values.copy() for key, values in one.per_env.items()}
  noisy["slip_m_s"] = np.array([[0.1, 0.3], [0.2, 0.5], [0.1, 0.9], [0.4, 0.2]])
  better = noisy | {
    "slip_m_s": noisy["slip_m_s"] - 0.01 - np.array([[0.0, 0.001]] * 4),
    "forward_ratio": noisy["forward_ratio"] - 0.5,  # all were too fast
    "yaw_ratio": noisy["yaw_ratio"] + 0.3,  # and turned too slowly
  }
  a, b = (replace(a, conditions=(replace(one, per_env=per_env),)) for per_env in (noisy, better))
  found = {gap.figure.key: gap.over_grid for gap in versus.gaps(a, b)}
  assert found["slip_m_s"].mean == pytest.approx(-0.0105)
  assert found["slip_m_s"].half_width < 0.002 and versus.verdict(found["slip_m_s"]) == "better"
  for ratio in ("forward_ratio", "yaw_ratio"):
    assert versus.verdict(found[ratio]) == "better"
  assert versus.verdict(found["yaw_error_rad_s"]) == "noise"
  text = versus.table(a, b)
  assert "slip, cm/s" in text and "-1.05" in text and "BETTER" in text
  back = {gap.figure.key: gap.over_grid for gap in versus.gaps(b, a)}
  assert versus.verdict(back["slip_m_s"]) == "worse"
  json.dumps(versus.as_plain(a, b, []), allow_nan=False)


def test_policies_are_compared_in_one_world(task):
  # Guards: a policy that seems better because its robots were easier.
  action = replace(task.action, scale_rad=0.5)
  events = dict(task.events, foot_friction=under(task, TABLE["slippery"]).events["foot_friction"])
  other = replace(task, action=action, events=events)
  got = in_world(other, task)
  assert got.action == action and got.events == task.events
  (line,) = world_differences(other, task)
  assert line.startswith("events.foot_friction.params.sliding")
