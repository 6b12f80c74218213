import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mjrl import tasks
from mjrl.envs.policy import advance
from mjrl.envs.posture import POSTURE
from mjrl.learn import checkpoints
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.measure.play import play
from mjrl.measure.plots import limbs
from mjrl.sim.resolve import Resolved
from mjrl.view.choice import Choice
from mjrl.view.shot import Shot

STEPS, ENVS = 60, 2


def replay(**changes):
  given = {
    "task": tasks.build("jumper.tripod"),
    "resolved": Resolved(
      backend="native", device="cpu", num_envs=ENVS, threads=1, torch_threads=1, reasons={}
    ),
    "compared": None,
    "seed": 3,
    "agent": "zero",
    "checkpoint": None,
    "steps": STEPS,
    "speed": 0.0,
    "command": None,
    "posture": None,
    "obs_noise": True,
    "physics_hz": None,
    "measure": False,
    "film": None,
    "library": "",
    "viewer": Choice(),
  }
  return play(**(given | changes))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
  """The files of a robot that stands at HOME whatever it is asked."""
  folder = tmp_path_factory.mktemp("a folder")
  before = Path.cwd()
  os.chdir(folder)
  try:
    assert replay(measure=True) == 0
  finally:
    os.chdir(before)
  return folder / "measure"


@pytest.fixture
def no_picture(monkeypatch):
  """Leaves the picture out where a test is not about it: it takes longer than the rest."""
  monkeypatch.setattr("mjrl.measure.plots.write_png", lambda *_: None)


@pytest.fixture(scope="module")
def rows(measured):
  return list(csv.DictReader((measured / "measure.csv").read_text().splitlines()))


@pytest.fixture(scope="module")
def figures(measured):
  return json.loads((measured / "measure.json").read_text())


def test_three_files_and_no_scraps(measured):
  # Guards: a file missing, or temporary files left behind.
  assert sorted(p.name for p in measured.iterdir()) == [
    "measure.csv",
    "measure.json",
    "measure.png",
  ]
  assert (measured / "measure.png").read_bytes().startswith(b"\x89PNG")


def test_the_csv_has_every_column_and_a_row_per_control_step(rows):
  # Guards: a column lost or a header one off from its numbers.
  assert len(rows) == 5 * STEPS
  names = list(rows[0])
  count = {kind: sum(n.startswith(kind + "/") for n in names) for kind in ("pos", "vel", "tau")}
  assert count == {"pos": 22, "vel": 22, "tau": 22}
  for kind in ("force", "contact", "height", "clock"):
    assert [n for n in names if n.startswith(kind + "/")] == [
      f"{kind}/{foot}" for foot in ("LF", "RF", "LM", "RM", "LR", "RR")
    ]
  assert len(names) == 2 + 3 + 3 * 22 + 4 * 6 + 6 + 1
  assert all(value is not None and value != "" for row in rows for value in row.values())
  assert [float(row["time_s"]) for row in rows[:2]] == [0.02, 0.04]
  assert float(rows[-1]["time_s"]) == pytest.approx(5 * STEPS * 0.02)
  assert [int(row["segment"]) for row in rows[::STEPS]] == [0, 1, 2, 3, 4]


def test_the_csv_is_what_the_robot_did(rows):
  # Guards: numbers under another column's name: each of these has a value that no other has.
  last = {name: float(value) for name, value in rows[STEPS * 3 - 1].items()}
  assert last["command/forward_m_s"] == 0.5 and last["command/yaw_rad_s"] == 0
  assert last["pos/RR_J2"] == pytest.approx(1.8678, abs=0.1)
  assert last["pos/LF_J3"] == pytest.approx(-1.374, abs=0.1)
  assert 0.08 < last["base/height_m"] < 0.11 and abs(last["base/tilt_rad"]) < 0.05
  assert sum(last[f"force/{f}"] for f in ("LF", "RF", "LM", "RM", "LR", "RR")) == pytest.approx(
    2.543 * 9.81, rel=0.05
  )
  assert all(last[f"contact/{f}"] == 1 for f in ("LF", "RF", "LM", "RM", "LR", "RR"))
  assert sum(last[f"clock/{f}"] for f in ("LF", "RF", "LM", "RM", "LR", "RR")) == 3
  assert last["failed"] == 0


def test_a_robot_that_stands_is_measured_as_standing(figures):
  # Guards: the stand-still optimum passing for a walk.
  stand, half, full, left, right = figures["segments"]
  assert stand["name"] == "stand" and stand["drift_m_s"]["mean"] < 0.01
  assert full["command"]["forward_m_s"] == full["forward_m_s"]["commanded"] == 0.5
  assert half["command"]["forward_m_s"] == 0.25
  assert left["yaw_rad_s"]["commanded"] == -right["yaw_rad_s"]["commanded"] == 0.5
  for walk in (half, full):
    assert abs(walk["forward_m_s"]["ratio"]) < 0.1
    assert walk["cost_of_transport"] is None and walk["drift_m_s"] is None
    assert walk["clock_match_lenient"]["mean"] < 0.5
    assert walk["all_feet"]["duty"]["mean"] == 1.0 and walk["all_feet"]["lift_m"] is None
    assert walk["feet"]["LM"]["clock_match"]["mean"] == pytest.approx(0.5, abs=0.3)
  assert stand["clock_match_lenient"] is None
  assert all(s["falls"] == s["diverged"] == 0 for s in figures["segments"])
  assert 0.1 < max(j["peak_torque_n_m"] for j in stand["joints"].values()) < 1.7464


def test_the_json_says_under_which_circumstances(figures):
  # Guards: numbers that nobody can place: from which engine, rate, noise, seed?
  assert figures["schema"] == "mjrl/measure/1"
  assert figures["task"] == "jumper.tripod" and figures["agent"] == "zero"
  assert figures["checkpoint"] is None and figures["iteration"] is None
  assert figures["backend"] == "native:cpu" and figures["num_envs"] == ENVS
  assert (figures["physics_hz"], figures["control_hz"]) == (200, 50)
  assert figures["observation_noise"] is True and figures["seed"] == 3
  assert figures["settle_s"] == 1.0
  assert figures["versions"]["mujoco"].startswith("4.")
  assert any("push" in line for line in figures["differences_from_training"])


def test_one_command_is_measured_alone(tmp_path, monkeypatch, capsys, no_picture):
  # Guards: --command ignored, or its numbers under the standard series' names.
  monkeypatch.chdir(tmp_path)
  command = (0.1, 0.0, 0.2)
  assert replay(measure=True, command=command, obs_noise=False, physics_hz=400) == 0
  got = json.loads((tmp_path / "measure" / "measure.json").read_text())
  (only,) = got["segments"]
  assert only["name"] == "forward 0.1 m/s, turn +0.2 rad/s" and got["physics_hz"] == 400
  assert got["observation_noise"] is False
  said = capsys.readouterr().out
  assert "400 Hz instead of the 200 Hz" in said and "held at 0.1 m/s forward" in said
  assert "forward 0.1 m/s, turn +0.2 rad/s" in said and str(tmp_path / "measure") in said


def test_a_posture_is_held_and_measured(tmp_path, monkeypatch, capsys, no_picture):
  # Guards: --posture ignored; a number in the column of another.
  monkeypatch.chdir(tmp_path)
  posture = (0.1, -0.2, 0.05, 0.12)
  assert replay(task=tasks.build("jumper.posture"), measure=True, posture=posture) == 0
  (only,) = json.loads((tmp_path / "measure" / "measure.json").read_text())["segments"]
  assert only["command"] == {"forward_m_s": 0, "left_m_s": 0, "yaw_rad_s": 0}
  asked = {name: axis["commanded"] for name, axis in only["posture"].items()}
  assert asked == pytest.approx(dict(zip(POSTURE, posture, strict=True)))
  assert only["posture"]["pitch_rad"]["achieved"]["mean"] == pytest.approx(0, abs=0.03)  # HOME
  text = (tmp_path / "measure" / "measure.csv").read_text()
  row = list(csv.DictReader(text.splitlines()))[-1]
  assert [float(row[f"posture/{name}"]) for name in POSTURE] == pytest.approx(posture)
  assert abs(float(row["base/pitch_rad"])) < 0.05 and float(row["base/height_m"]) > 0.09
  said = capsys.readouterr().out
  assert "5.73° of twist" in said and "-11.5°" in said and "of 120 mm" in said


def test_a_trained_policy_is_measured_beside_its_checkpoint(tmp_path, capsys, monkeypatch):
  # Guards: results in another run's folder, without the checkpoint they belong to; and a policy
  # that learned one gait replayed as another, because its networks have the same size.
  monkeypatch.chdir(tmp_path)
  resolved = Resolved(
    backend="native", device="cpu", num_envs=ENVS, threads=1, torch_threads=1, reasons={}
  )
  train(
    task=tasks.build("jumper.tripod"),
    resolved=resolved,
    seed=0,
    max_iterations=1,
    checkpoint=None,
    log_dir=tmp_path / "logs",
    command="",
    options=Options(),
    stop=StopAsked(),
  )
  (checkpoint,) = tmp_path.glob("logs/*/*/*/model_*.pt")
  given = {"agent": "trained", "checkpoint": checkpoint}
  assert replay(**given, measure=True, command=(0.0, 0.0, 0.0)) == 0
  got = json.loads((checkpoint.parent / "measure" / "measure.json").read_text())
  assert got["checkpoint"] == str(checkpoint) and got["iteration"] == 0
  assert (checkpoint.parent / "measure" / "measure.png").is_file()
  assert any("by its mean" in line for line in got["differences_from_training"])
  assert not any("was another" in line for line in got["differences_from_training"])

  saved = checkpoints.read(checkpoint)
  saved["task"]["rewards"]["action_rate"]["weight"] = -7.5
  checkpoints.write(checkpoint, saved)
  replay(**given)
  assert "rewards.action_rate.weight: -7.5 -> " in capsys.readouterr().out
  with pytest.raises(ValueError, match=r"is of task jumper\.tripod, not of jumper\.flat"):
    replay(**given, task=tasks.build("jumper.flat"))


def test_a_seed_gives_the_same_numbers(tmp_path, monkeypatch, no_picture):
  # Guards: draws that escape the seed, so that no measurement can be repeated.
  found = []
  for name in ("one", "two"):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    replay(measure=True, agent="random", command=(0.2, 0.0, 0.0))
    found.append((tmp_path / name / "measure" / "measure.csv").read_bytes())
  assert found[0] == found[1]


def test_what_settles_alone_is_refused(tmp_path, monkeypatch):
  # Guards: a report full of missing numbers after a replay that was too short for any.
  monkeypatch.chdir(tmp_path)
  with pytest.raises(ValueError, match=r"--steps is 51, 1\.02 s: .* at least 52"):
    replay(measure=True, steps=51)
  assert not (tmp_path / "measure").exists()


def test_watching_ends_after_its_steps_and_writes_nothing(tmp_path, monkeypatch, capsys):
  # Guards: a replay that never ends, or that leaves files nobody asked for.
  monkeypatch.chdir(tmp_path)
  assert replay(steps=5) == 0
  assert "5 control steps, 0.1 s, of 2 env(s)" in capsys.readouterr().out
  assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_with_130(monkeypatch, capsys):
  # Guards: a stack trace, or success, after Ctrl-C.
  def interrupt(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr("mjrl.measure.watch.Pace.wait", interrupt)
  assert replay(steps=None) == 130
  assert "1 control steps" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"agent": "trainde"}, "valid names: trained, zero, random"),
    ({"agent": "trained"}, "a trained agent needs a checkpoint"),
    ({"checkpoint": Path("model_1.pt")}, "the others take none"),
    ({"steps": 0}, "--steps is 0; it must be 1 or more"),
    ({"speed": -1.0}, "--speed is -1; it must be 0"),
    ({"physics_hz": 30.0}, "try 50"),
  ],
)
def test_what_cannot_be_replayed_is_refused(changes, message):
  # Guards: an argument that silently does nothing.
  with pytest.raises(ValueError, match=message):
    replay(**changes)


def test_joints_are_grouped_by_limb():
  # Guards: a robot whose joints end up in other limbs' panels, or in a panel each.
  assert limbs(["A_J0", "A_J1", "B_J0"]) == {
    "A": [("A_J0", "J0"), ("A_J1", "J1")],
    "B": [("B_J0", "J0")],
  }
  assert limbs(["slider", "hinge"]) == {"": [("slider", "slider"), ("hinge", "hinge")]}
  assert list(limbs(["left_hip", "right_hip"])) == ["all joints"]


@pytest.mark.parametrize(("measure", "starts"), [(False, 1), (True, 5)])
def test_who_acts_is_told_of_starts_and_ends(monkeypatch, tmp_path, no_picture, measure, starts):
  # Guards: a policy with a memory that goes on remembering what is over: a segment, an episode.
  told = []

  class Spy:
    def __init__(self, env):
      self.action = torch.zeros(env.num_envs, len(env.robot.gait_joints))

    def __call__(self, observations):
      told.append("act")
      return self.action

    def reset(self, ended=None):
      told.append("all" if ended is None else "some")

  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr("mjrl.measure.agents.zero", Spy)
  assert replay(measure=measure) == 0
  assert told == ["all", *["act", "some"] * STEPS] * starts


@pytest.fixture
def a_shot(tmp_path):
  return Shot(path=tmp_path / "a.mp4", width=96, height=64, fps=10.0, camera="follow")


def test_a_replay_is_filmed(a_shot, library, read_film, monkeypatch, capsys):
  # Guards: a film that does not end, or plays faster or slower than the robot moved.
  monkeypatch.setattr("mjrl.measure.watch.SECONDS", 0.6)
  assert replay(film=a_shot, library=library, steps=None) == 0
  about, pictures = read_film(a_shot.path)
  assert "10 fps" in about and len(pictures) == 7  # the first moment and the last
  assert f"wrote {a_shot.path}" in capsys.readouterr().out


def test_ctrl_c_leaves_a_film_of_what_there_was(a_shot, library, read_film, monkeypatch):
  # Guards: minutes of a replay that are lost because nobody could say how long it should be.
  real, steps = advance, iter(range(30))

  def stopped(*args):
    if next(steps) == 25:
      raise KeyboardInterrupt
    return real(*args)

  monkeypatch.setattr("mjrl.measure.watch.advance", stopped)
  assert replay(film=a_shot, library=library) == 130
  assert len(read_film(a_shot.path)[1]) == 6


def test_a_replay_that_fails_leaves_no_film(a_shot, library, monkeypatch):
  # Guards: a process that goes on drawing, and a film of half a replay.
  monkeypatch.setattr("mjrl.measure.watch.advance", lambda *_: 1 / 0)
  with pytest.raises(ZeroDivisionError):
    replay(film=a_shot, library=library)
  assert not list(a_shot.path.parent.iterdir())


def test_the_scene_is_said_with_the_figures(tmp_path, monkeypatch, no_picture, capsys):
  # Guards: figures that were measured on ice, and look like those of training's ground.
  monkeypatch.chdir(tmp_path)
  task = replace(tasks.build("jumper.tripod"), scene="ice")
  assert replay(task=task, measure=True, command=(0.0, 0.0, 0.0)) == 0
  found = json.loads((tmp_path / "measure" / "measure.json").read_text())
  assert found["scene"]["name"] == "ice" and "0.15" in found["scene"]["physics"]
  assert not any("foot_friction" in line for line in found["as_in_training"])
  assert "scene ice: friction" in capsys.readouterr().out
