import pytest

from mjrl.cli import planned, play, train
from mjrl.cli.flags import TrainFlags
from mjrl.cli.settings import KEYS, apply_settings, read_settings

KEYS_OF = {"num_envs": "MJRL_NUM_ENVS", "tensorboard": "MJRL_TENSORBOARD"}


def test_the_nearer_layer_wins(tmp_path):
  # Guards: an old .env that overrules what the user just typed.
  (tmp_path / ".env").write_text("MJRL_NUM_ENVS=1\nMJRL_SEED=1\nMJRL_CPU_THREADS=1\nOTHER=x\n")
  (tmp_path / ".env.local").write_text("MJRL_NUM_ENVS=2\nMJRL_SEED=2\n")
  settings = read_settings(tmp_path, {"MJRL_NUM_ENVS": "3", "PATH": "/bin"})
  found = {key: (setting.value, setting.source) for key, setting in settings.items()}
  assert found == {
    "MJRL_NUM_ENVS": (3, "MJRL_NUM_ENVS in the shell"),
    "MJRL_SEED": (2, "MJRL_SEED in .env.local"),
    "MJRL_CPU_THREADS": (1, "MJRL_CPU_THREADS in .env"),
  }


@pytest.mark.parametrize("argv", [["--num-envs", "4"], ["--num_envs=4"]])
def test_the_command_line_wins_over_all(tmp_path, argv):
  # Guards: the same, in both spellings of a flag.
  settings = read_settings(tmp_path, {"MJRL_NUM_ENVS": "3"})
  flags, sources = apply_settings(TrainFlags(num_envs=4), argv, KEYS_OF, settings, {})
  assert (flags.num_envs, sources) == (4, {"num_envs": "given"})


def test_a_switch_on_the_command_line_wins_too(tmp_path):
  # Guards: --tensorboard, which is also the default, losing to MJRL_TENSORBOARD=off.
  settings = read_settings(tmp_path, {"MJRL_TENSORBOARD": "off"})
  on, _ = apply_settings(TrainFlags(), ["--tensorboard"], KEYS_OF, settings, {})
  unsaid, _ = apply_settings(TrainFlags(), [], KEYS_OF, settings, {})
  assert (on.tensorboard, unsaid.tensorboard) == (True, False)


@pytest.mark.parametrize(
  ("text", "says"),
  [
    ("MJRL_NUM_ENV=4", r"\.env: there is no setting MJRL_NUM_ENV; did you mean 'MJRL_NUM_ENVS'"),
    ("MJRL_NUM_ENVS=many", r"\.env: MJRL_NUM_ENVS is 'many'; it must be a whole number"),
    ("MJRL_SEED=", r"\.env: MJRL_SEED is empty"),
    ("MJRL_SEED", r"\.env: MJRL_SEED is empty"),
    ("MJRL_TENSORBOARD=maybe", r"\.env: MJRL_TENSORBOARD is 'maybe'; it must be one of"),
    ("MJRL_BACKEND=nativ", r"\.env: MJRL_BACKEND is 'nativ'; .*did you mean 'native'"),
    ("MJRL_DEVICE=gpu", r"\.env: MJRL_DEVICE is 'gpu'"),
    ("MJRL_SEED=1\nMJRL TASK = 'hop", r"\.env line 2: .* is not KEY=value"),
  ],
)
def test_a_setting_that_would_do_nothing_is_an_error(tmp_path, text, says):
  # Guards: a typo in .env that leaves the default in force, unseen.
  (tmp_path / ".env").write_text(text + "\n")
  with pytest.raises(ValueError, match=says):
    read_settings(tmp_path, {})


def test_every_key_is_read_by_a_command():
  # Guards: a documented key that no command looks at.
  assert set(KEYS) == set(planned.SETTINGS.values()) | set(play.SETTINGS.values())


def test_play_does_not_take_the_env_count_of_training(monkeypatch, called):
  # Guards: MJRL_NUM_ENVS=4096 in .env opening a replay of 4096 robots.
  monkeypatch.setenv("MJRL_NUM_ENVS", "4096")
  assert play.main(["--task", "hop.flat", "--agent", "zero"]) == 0
  assert called.play[0]["resolved"].num_envs == 1


def test_a_bad_number_in_a_setting_names_the_setting(monkeypatch, called, capsys):
  # Guards: an error about a flag that the user never typed.
  monkeypatch.setenv("MJRL_NUM_ENVS", "0")
  assert train.main(["--task", "hop.flat"]) == 2
  assert "MJRL_NUM_ENVS in the shell is 0; it must be at least 1" in capsys.readouterr().err


def test_an_unknown_task_in_a_setting_names_the_setting(tmp_path, called, capsys):
  # Guards: the same for MJRL_TASK.
  (tmp_path / ".env").write_text("MJRL_TASK=hop.flt\n")
  assert train.main([]) == 2
  assert "MJRL_TASK in .env: " in capsys.readouterr().err
