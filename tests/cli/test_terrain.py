"""The flags about the ground, from the command line to the checkpoint and on to the replay."""

from dataclasses import replace

import pytest
import torch
import yaml

from mjrl import tasks
from mjrl.cli import planned, play, train
from mjrl.learn import checkpoints

TASK = ["--task", "hop.flat", "--headless"]


@pytest.fixture
def run(monkeypatch, tmp_path):
  """Train one iteration as the command does; the new run's folder."""
  monkeypatch.setattr(planned, "start_torch", lambda threads: torch.set_num_threads(1))
  tiny = ("rollout_steps=4", "actor_hidden=[16]", "critic_hidden=[16]", "epochs=1")
  sets = [word for change in tiny for word in ("--set", f"recipe.{change}")]
  fixed = ["--task", "jumper.tripod", "--num_envs", "8", "--max_iterations", "1", *sets]

  def go(*argv):
    before = set(tmp_path.glob("logs/jumper/*/*"))
    assert train.main([*fixed, "--headless", "--no-tensorboard", *argv]) == 0
    (folder,) = set(tmp_path.glob("logs/jumper/*/*")) - before
    return folder

  return go


def test_a_run_on_rough_ground_says_so_and_is_gone_on_with_there(run, capsys):
  # Guards: ground that is forgotten by the run that goes on, or a world of robots that stand where
  # there was no hill; a run.yaml that repeats a rough run on flat ground.
  flat = run()
  assert "terrain" not in checkpoints.read(flat / "model_0.pt")["curriculum"]
  capsys.readouterr()
  rough = run("--checkpoint", str(flat), "--terrain", "rough")
  said = capsys.readouterr().out
  assert 'terrain.ground: "flat" -> "rough" (--terrain)' in said
  assert "episodes start anew: the ground is another" in said
  saved = checkpoints.read(rough / "model_1.pt")
  assert saved["set"]["terrain.ground"] == "rough" and saved["curriculum"]["terrain"]["level"] == 0
  assert yaml.safe_load((rough / "run.yaml").read_text())["set"]["terrain.ground"] == "rough"
  further = run("--checkpoint", str(rough), "--set", "terrain.curriculum.dwell_episodes=5")
  assert "the world goes on where it was" in capsys.readouterr().out
  assert checkpoints.read(further / "model_2.pt")["task"]["terrain"]["ground"] == "rough"


def test_a_replay_is_on_the_checkpoint_s_ground(called, write_checkpoint, tmp_path, capsys):
  # Guards: a policy measured on other ground than it was trained on, by whoever forgets the flag.
  write_checkpoint(tmp_path / "model_1.pt", overrides={"terrain.ground": "rough"})
  argv = [*TASK, "--checkpoint", "model_1.pt"]
  assert play.main(argv) == 0
  assert called.play[-1]["task"].terrain.rough
  assert 'set by the checkpoint\'s run: terrain.ground="rough"' in capsys.readouterr().out
  assert play.main([*argv, "--terrain_level", "3", "--terrain_kind", "stairs"]) == 0
  terrain = called.play[-1]["task"].terrain
  assert (terrain.rough, terrain.level, terrain.kind) == (True, 3, "stairs")
  assert play.main([*argv, "--terrain", "flat"]) == 0
  assert not called.play[-1]["task"].terrain.rough


def test_a_task_without_a_choice_of_ground_says_so(called, monkeypatch, capsys):
  # Guards: an error about a null that has no parts.
  build = tasks.build
  monkeypatch.setattr(tasks, "build", lambda name: replace(build(name), terrain=None))
  for command, argv in ((train, TASK), (play, [*TASK, "--agent", "zero"])):
    assert command.main([*argv, "--terrain", "rough"]) == 2
    assert "--terrain: hop.flat has flat ground alone; leave it out" in capsys.readouterr().err


def test_a_file_may_name_the_ground(called, tmp_path, capsys):
  # Guards: a configuration that is read, and trains on flat ground.
  (tmp_path / "some.yaml").write_text("terrain: rough\nset: {terrain.levels: 3}\n")
  assert train.main([*TASK, "--config", "some.yaml"]) == 0
  terrain = called.train[-1]["task"].terrain
  assert terrain.rough and terrain.levels == 3
  assert '"flat" -> "rough" (terrain in some.yaml)' in capsys.readouterr().out


ROUGH = ["--terrain", "rough"]
ZERO = ["--agent", "zero"]


@pytest.mark.parametrize(
  ("command", "argv", "says"),
  [
    (train, ["--set", "terrain.levels=3"], "the ground is flat; give --terrain rough too"),
    (play, [*ZERO, "--terrain_level", "3"], "the ground is flat; give --terrain rough too"),
    (play, [*ZERO, *ROUGH, "--terrain_level", "6"], "terrain level is 6; the levels are 0 to 5"),
    (play, [*ZERO, *ROUGH, "--terrain_kind", "hills"], "valid names: slopes, stairs, blocks"),
    (train, [*ROUGH, "--set", "terrain.ground=flat"], "are the same; leave one of them out"),
    (train, ["--set", "terrain=null"], "--terrain flat gives flat ground"),
    (
      train,
      [*ROUGH, "--set", "terrain.level=1", "--set", "terrain.curriculum.dwell_episodes=1"],
      "terrain.level 1 is where all envs stay",
    ),
    (
      play,
      [*ZERO, *ROUGH, "--set", "terrain.curriculum.dwell_episodes=1"],
      "a replay climbs no levels",
    ),
  ],
)
def test_what_would_do_nothing_is_refused(called, capsys, command, argv, says):
  # Guards: a level that is asked for and silently not there.
  assert command.main([*TASK, *argv]) == 2
  assert says in capsys.readouterr().err
  assert not called.train and not called.play
