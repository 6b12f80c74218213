"""--video, --video_every and --scene: refused before anything is built, and passed on."""

import json

import pytest

from mjrl.cli import planned, play, train
from mjrl.envs.scenes import SCENES

PLAY = ["--task", "hop.flat", "--agent", "zero", "--headless", "--seed", "1"]
TRAIN = ["--task", "hop.flat", "--headless", "--seed", "1"]


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
  """Machines that can draw, without asking this one."""
  for module in (play, planned):
    monkeypatch.setattr(module, "find_library", lambda *_: ("egl", "a GPU"))


def test_a_film_is_said_and_passed_on(called, tmp_path, capsys):
  # Guards: a size or a rate that goes nowhere.
  flags = ["--video", "a.mp4", "--video_size", "320x240", "--video_fps", "50"]
  assert play.main([*PLAY, *flags, "--video_camera", "top", "--steps", "100"]) == 0
  (given,) = called.play
  film = given["film"]
  assert film.path == tmp_path / "a.mp4" and given["library"] == "egl" and given["steps"] == 100
  assert (film.width, film.height, film.fps, film.camera) == (320, 240, 50.0, "top")
  out = capsys.readouterr().out
  assert "100 control steps at 50 frames/s, 320x240 px, seen from top; drawn by egl, a GPU" in out


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--video", "a.avi"], "must end in .mp4"),
    (["--video", "a.mp4", "--video_size", "641x480"], "must be even"),
    (["--video", "a.mp4", "--video_fps", "51"], "from 1 to 50"),
    (["--video", "a.mp4", "--video_camera", "left"], "--video_camera 'left'"),
    (["--video", "a.mp4", "--measure"], "does not go with --measure"),
    (["--video_fps", "50"], "--video_fps has no effect without --video"),
    (["--scene", "icee"], "did you mean 'ice'"),
    (["--scene", "none.map"], "there is no such file or folder"),
  ],
)
def test_what_cannot_be_filmed_or_entered_is_refused_at_once(called, capsys, flags, message):
  # Guards: an error after a minute of building, or a flag that does nothing.
  assert play.main([*PLAY, *flags]) in (1, 2)
  assert message in capsys.readouterr().err and not called.play


def test_a_machine_that_cannot_draw_says_so_before_training(called, monkeypatch, capsys):
  # Guards: a run that finds out at its first film.
  def none(*_):
    raise ValueError("no picture can be drawn here")

  monkeypatch.setattr(planned, "find_library", none)
  with pytest.raises(ValueError, match="no picture can be drawn here"):
    train.main([*TRAIN, "--video_every", "50"])  # raised by a test, and so not one of mjrl's
  assert train.main(TRAIN) == 0  # which asks for none
  assert len(called.train) == 1


def test_films_of_a_training_are_passed_on_and_repeated(called, capsys):
  # Guards: a run.yaml that repeats all but the films.
  assert train.main([*TRAIN, "--video_every", "50"]) == 0
  options = called.train[0]["options"]
  assert (options.video_every, options.video_library) == (50, "egl")
  assert (options.without_output().video_every) is None
  train.main([*TRAIN, "--video_every", "50", "--dry-run"])
  assert "video_every: 50" in capsys.readouterr().out


def test_a_scene_is_a_departure_that_a_run_yaml_repeats(called, capsys):
  # Guards: a policy of ice that is taken for one of training's ground.
  assert train.main([*TRAIN, "--scene", "ice"]) == 0
  (given,) = called.train
  assert given["task"].scene == "ice" and given["overrides"] == {"scene": "ice"}
  assert 'scene: "studio" -> "ice" (--scene)' in given["departures"]
  assert f"ice: {SCENES['ice'].physics}" in capsys.readouterr().out


def test_a_policy_is_replayed_in_the_scene_it_was_trained_in(called, write_checkpoint, tmp_path):
  # Guards: a replay on other ground than training's that nobody asked for.
  path = tmp_path / "model_1.pt"
  write_checkpoint(path, overrides={"scene": "rubber"})
  replay = ["--task", "hop.flat", "--headless", "--checkpoint", str(path)]
  assert play.main(replay) == 0 and called.play[-1]["task"].scene == "rubber"
  assert play.main([*replay, "--scene", "studio"]) == 0
  assert called.play[-1]["task"].scene == "studio"


def test_packages_are_replayed_and_not_trained_in(called, make_package, capsys):
  # Guards: robots of a training in the walls of a room, and a package that is read too late.
  path = make_package()
  assert play.main([*PLAY, "--scene", path.name]) == 0
  assert called.play[0]["task"].scene == str(path)
  assert "the world of package room 1.0.0 (A room)" in capsys.readouterr().out
  for flags in (["--scene", str(path)], ["--set", f"scene={json.dumps(str(path))}"]):
    assert train.main([*TRAIN, *flags]) == 2
    assert "policies are not trained in scene packages" in capsys.readouterr().err
  assert not called.train
  broken = make_package("broken.map", manifest={"schema": "kk-scene-package/9"})
  assert play.main([*PLAY, "--scene", str(broken)]) == 2
  assert "its schema is 'kk-scene-package/9'" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["sliding", "when"])
def test_a_friction_that_the_scene_overrules_is_refused(called, capsys, key):
  # Guards: a range of frictions that is printed, kept, and never drawn.
  value = "events.foot_friction." + {"sliding": "sliding=[0.1, 0.2]", "when": "when=reset"}[key]
  assert train.main([*TRAIN, "--scene", "ice", "--set", value]) == 2
  assert "has no effect: scene ice has a friction of its own" in capsys.readouterr().err
  assert train.main([*TRAIN, "--set", value]) == 0


def test_the_list_has_the_scenes(capsys):
  # Guards: a scene that only its table knows.
  for main in (play.main, train.main):
    assert main(["--list"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in out for name in SCENES)
