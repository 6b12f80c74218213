"""Films of a training: they change nothing, and end nothing."""

import json

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mjrl.learn import films
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.sinks.wandb_run import WandbRun
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved
from mjrl.view.film import Film


@pytest.fixture
def run(small, tmp_path, monkeypatch):
  """Train the small recipe with films of 0.2 s; the exit code and the folder."""
  monkeypatch.setattr(films, "SECONDS", 0.2)

  def go(name, options, **changes):
    code = train(
      task=small,
      resolved=Resolved(
        backend="native", device="cpu", num_envs=8, threads=2, torch_threads=1, reasons={}
      ),
      seed=3,
      **{"max_iterations": 3, "checkpoint": None, "stop": StopAsked()} | changes,
      log_dir=tmp_path / name,
      command="train.py",
      options=options,
    )
    (folder,) = (tmp_path / name).glob("jumper/*/*")
    return code, folder

  return go


def test_films_change_nothing_and_are_shown(run, library, read_film, monkeypatch):
  # Guards: a training that goes another way when it is watched; a film of which nobody hears.
  _, plain = run("plain", Options())
  real = films.advance
  # As an event of the task might that draws from torch's own stream.
  monkeypatch.setattr(films, "advance", lambda *args: (torch.rand(1), real(*args))[1])
  code, folder = run("filmed", Options(video_every=2, video_library=library))
  assert code == 0
  ours, theirs = (torch.load(f / "model_2.pt", weights_only=True) for f in (folder, plain))
  for part in ("actor_state_dict", "critic_state_dict"):
    assert all(torch.equal(value, theirs[part][key]) for key, value in ours[part].items())
  ours, theirs = (
    torch.load(f / "resume_2.pt", weights_only=True)["world"] for f in (folder, plain)
  )
  assert torch.equal(ours["torch_rng"], theirs["torch_rng"])
  assert torch.equal(ours["env"]["rng"], theirs["env"]["rng"])
  assert torch.equal(ours["env"]["engine"]["state"], theirs["env"]["engine"]["state"])
  # After every second iteration, and after the last.
  assert sorted(p.name for p in (folder / "videos").iterdir()) == [
    "iteration_1.mp4",
    "iteration_2.mp4",
  ]
  assert len(read_film(folder / "videos" / "iteration_2.mp4")[1]) == 6
  events = EventAccumulator(str(folder), {"images": 0}).Reload()
  assert {image.step for image in events.Images("video")} == {1, 2}
  assert events.Images("video")[0].encoded_image_string.startswith(b"GIF89a")


@pytest.mark.parametrize("fails", ["library", "play", "sink"])
def test_a_film_that_fails_costs_a_line(run, library, monkeypatch, capsys, fails):
  # Guards: hours of training that end over a picture, or a failure that nobody is told of.
  options = Options(video_every=2, video_library="nothing" if fails == "library" else library)
  if fails == "play":
    monkeypatch.setattr(films, "advance", lambda *_: 1 / 0)
  if fails == "sink":
    monkeypatch.setattr("mjrl.learn.sinks.csv_file.CsvFile.film", lambda *_: 1 / 0)
  code, folder = run("run", options)
  assert code == 0 and (folder / "model_2.pt").exists()
  assert capsys.readouterr().out.count("could not make a film: ") == 1
  counts = json.loads((folder / "summary.json").read_text())["file_failures"]
  assert sum(n for what, n in counts.items() if what.startswith("make a film")) == 2
  assert all(p.suffix == ".mp4" and p.name[0] != "." for p in (folder / "videos").glob("*"))


def test_a_run_does_not_wait_for_a_film(run, library, monkeypatch):
  # Guards: a training that stands still while a slow machine draws.
  monkeypatch.setattr(Film, "drawing", property(lambda _: True))
  real, waited = Film.close, []
  monkeypatch.setattr(Film, "close", lambda film, s: waited.append(s) or real(film, s))
  code, folder = run("run", Options(video_every=1, video_library=library))
  counts = json.loads((folder / "summary.json").read_text())["file_failures"]
  assert any("still being drawn" in what for what in counts)
  assert code == 0 and waited == [films._LAST_S] * 2  # before the last film, and after it


def test_a_stop_is_heard_while_a_film_is_played(run, library, stop_when):
  # Guards: seconds of a replay between Ctrl-C and the end, and a film of a part of it.
  asked = iter([False] * 8 + [True] * 100)
  _, folder = run(
    "run", Options(video_every=1, video_library=library), stop=stop_when(lambda: next(asked))
  )
  assert not list((folder / "videos").glob("*"))


def test_wandb_gets_the_film_itself(tmp_path, monkeypatch):
  # Guards: a film that Weights & Biases refuses, because its iteration is over.
  import wandb

  logged = []
  sink = object.__new__(WandbRun)
  sink._newest = 0
  sink._run = type("Run", (), {"log": lambda self, what, step: logged.append((what, step))})()
  monkeypatch.setattr(wandb, "Video", lambda path, caption, format: (path, caption, format))
  sink.write(7, {"a": 1.0})
  sink.film(4, tmp_path / "a.mp4", b"")
  assert logged[1] == ({"video": (str(tmp_path / "a.mp4"), "iteration 4", "mp4")}, 7)
