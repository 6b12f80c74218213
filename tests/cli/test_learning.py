"""Flags of the learning numbers, and the start from a checkpoint's networks."""

import pytest
import torch
import yaml

from mjrl.cli import planned, train
from mjrl.cli.flags import TrainFlags
from mjrl.cli.learning import PATHS, spelled
from mjrl.learn import checkpoints

QUIET = ["--headless", "--no-tensorboard"]
TINY = ("rollout_steps=4", "actor_hidden=[16]", "critic_hidden=[16]", "epochs=1")
TASK = ["--task", "jumper.tripod", "--num_envs", "8", "--seed", "1", "--max_iterations", "1"]


@pytest.fixture
def run(monkeypatch, tmp_path):
  """Train as the command does; the new run's folder."""
  monkeypatch.setattr(planned, "start_torch", lambda threads: torch.set_num_threads(1))
  sets = [word for change in TINY for word in ("--set", f"recipe.{change}")]

  def go(*argv):
    before = set(tmp_path.glob("logs/jumper/*/*"))
    assert train.main([*QUIET, *TASK, *sets, *argv]) == 0
    (folder,) = set(tmp_path.glob("logs/jumper/*/*")) - before
    return folder

  return go


def test_every_flag_reaches_its_number(called):
  # Guards: a short name that is parsed and never used, as its users cannot see.
  values = {"ppo_schedule": "cosine", "ppo_optimizer": "sgd", "ppo_epochs": 3}
  for flag, path in PATHS.items():
    if flag == "learn_std":
      argv, expected = ["--no-learn-std"], False
    else:
      expected = values.get(flag, 0.25)
      argv = [spelled(flag), str(expected)]
    assert train.main(["--task", "hop.flat", *argv]) == 0, flag
    task = called.train[-1]["task"]
    where = task if path == "episode_s" else task.recipes["native"]
    assert getattr(where, path.rpartition(".")[2]) == expected, flag
    assert called.train[-1]["overrides"][path] == expected
    assert any(spelled(flag) in line for line in called.train[-1]["departures"]), flag


@pytest.mark.parametrize(
  ("argv", "found"),
  [
    (["--mirror"], (False, 1.0)),
    (["--mirror", "--mirror_coeff", "0.4"], (False, 0.4)),
    (["--mirror_coeff", "0.4"], (False, 0.4)),
    (["--no-mirror"], (False, 0.0)),
    (["--no-mirror", "--backend", "warp", "--device", "cpu"], (False, 0.0)),
    (["--mirror", "--backend", "warp", "--device", "cpu"], (True, 1.0)),
  ],
)
def test_mirror(called, argv, found):
  # Guards: --no-mirror that leaves the mirrored samples in, and --mirror with a loss of weight 0.
  assert train.main(["--task", "hop.flat", "--num_envs", "64", *argv]) == 0
  recipe = called.train[-1]["task"].recipes["warp" if "warp" in argv else "native"]
  assert (recipe.mirror_augmentation, recipe.mirror_coef) == found


def test_minibatch_size_is_of_the_samples_that_there_are(called, capsys):
  # Guards: a size that is taken for a number of mini-batches, or rounded without a word.
  argv = ["--task", "hop.flat", "--num_envs", "4", "--ppo.minibatch_size"]
  assert train.main([*argv, "96"]) == 0  # of 4 envs for 24 steps, four times as long for 16 envs
  assert called.train[-1]["task"].recipes["native"].mini_batches == 4
  assert train.main([*argv, "90"]) == 2
  assert "384 samples (4 envs x 96 steps)" in (err := capsys.readouterr().err)
  assert "the next smaller one that does is 64" in err


@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--ppo.lr", "1", "--set", "recipe.learning_rate=2"], "--ppo.lr and --set recipe.learning_ra"),
    (["--no-mirror", "--mirror_coeff", "1"], "contradict each other"),
    (["--mirror", "--recurrent"], "what a network remembers has no mirror image"),
    (["--std_dev", "0.01"], "init_std is 0.01, below its floor"),
    (["--no-learn_std", "--ppo.entropy_coeff", "0.1"], "has no effect: with recipe.learn_std fal"),
    (["--ppo.schedule", "linear", "--set", "recipe.desired_kl=0.1"], "looks at no divergence"),
    (["--ppo.gamma", "1.5"], "gamma is 1.5; it must be in 0..1"),
    (["--init_from", "a.pt", "--resume"], "give one of them"),
    (["--init_from", "nowhere"], "no checkpoint nowhere"),
  ],
)
def test_what_cannot_work_is_refused_before_building(called, capsys, argv, says):
  # Guards: combinations that would be found out after a minute, or do nothing.
  assert train.main(["--task", "hop.flat", *argv]) in (1, 2)
  assert says in capsys.readouterr().err
  assert not called.train


def test_help_names_every_number():
  # Guards: a flag that is there and cannot be found.
  assert {field for field in TrainFlags.__dataclass_fields__ if field.startswith("ppo_")} == {
    flag for flag in PATHS if flag.startswith("ppo_")
  } | {"ppo_minibatch_size"}


def test_a_warm_start_takes_the_networks_alone(run, capsys):
  # Guards: a warm start that is a resume, or none: networks left random, and the iteration, the
  # optimiser and the action's spread taken over.
  first = run("--std_dev", "0.3", "--max_iterations", "2")
  warm = run("--init_from", str(first), "--ppo.lr", "1e-30", "--ppo.schedule", "constant")
  assert "all else starts anew" in capsys.readouterr().out
  before, after = (
    checkpoints.read(folder / f"model_{n}.pt") for folder, n in ((first, 1), (warm, 0))
  )
  assert after["iteration"] == 0
  for network in ("actor_state_dict", "critic_state_dict"):
    for name, value in after[network].items():
      if "std_param" in name:
        assert value.tolist() == pytest.approx([0.5] * 20)  # the recipe's own
      elif "normalizer" not in name:
        assert torch.allclose(value, before[network][name]), name
  steps = [state["step"] for state in after["optimizer_state_dict"]["state"].values()]
  assert max(map(float, steps)) == 4  # one epoch of four mini-batches
  again = yaml.safe_load((warm / "run.yaml").read_text())
  assert again["init_from"] == str(first / "model_1.pt") and "checkpoint" not in again
