"""Configuration files and --set: what they say arrives, and what they could not mean is refused."""

import json
from dataclasses import replace

import pytest

from mjrl import tasks
from mjrl.cli import play, train
from mjrl.envs.recipe import RECURRENT, Memory
from mjrl.envs.task import term
from mjrl.envs.terms import terminations

TASK = ["--task", "hop.flat"]


def write(tmp_path, text, name="some.yaml"):
  (tmp_path / name).write_text(text)
  return ["--config", name]


@pytest.mark.parametrize("name", ["some.yaml", "some.yml", "some.json"])
def test_a_file_stands_for_flags_and_overrides(called, tmp_path, name):
  # Guards: a key that is read and not passed on, in one of the formats.
  content = {
    "task": "hop.flat",
    "num-envs": 5,
    "seed": 3,
    "eval_every": 10,
    "tensorboard": False,
    "headless": True,
    "log_dir": "here",
    "set": {"rewards": {"foot_slip": {"weight": -0.2}}, "recipe.learning_rate": 1e-3},
  }
  assert train.main(write(tmp_path, json.dumps(content), name)) == 0
  (given,) = called.train
  assert given["task"].name == "hop.flat" and given["resolved"].num_envs == 5
  assert given["seed"] == 3 and given["log_dir"] == tmp_path / "here"
  assert given["options"].eval_every == 10 and given["options"].tensorboard_port is None
  assert given["task"].rewards["foot_slip"].weight == -0.2
  assert given["task"].recipes["native"].learning_rate == 1e-3
  assert given["overrides"] == {"rewards.foot_slip.weight": -0.2, "recipe.learning_rate": 1e-3}


def test_play_takes_a_file_too(called, tmp_path):
  # Guards: a replay for which everything has to be typed again.
  text = "task: hop.flat\nagent: zero\ncommand: [0.2, 0, 0]\nset: {action.scale_rad: 0.3}"
  assert play.main(write(tmp_path, text)) == 0
  (given,) = called.play
  assert given["command"] == (0.2, 0.0, 0.0) and given["task"].action.scale_rad == 0.3


def test_the_nearer_source_wins(called, tmp_path, monkeypatch, capsys):
  # Guards: a file that overrules what was typed, or a shell that overrules the file.
  monkeypatch.setenv("MJRL_NUM_ENVS", "3")
  monkeypatch.setenv("MJRL_SEED", "3")
  monkeypatch.setenv("MJRL_CPU_THREADS", "1")
  config = write(tmp_path, "num_envs: 4\nseed: 4\nset: {episode_s: 4, action.scale_rad: 0.4}")
  argv = [*TASK, *config, "--num_envs", "5", "--set", "episode_s=5"]
  assert train.main(argv) == 0
  (given,) = called.train
  assert (given["resolved"].num_envs, given["seed"], given["resolved"].threads) == (5, 4, 1)
  assert (given["task"].episode_s, given["task"].action.scale_rad) == (5.0, 0.4)
  out = capsys.readouterr().out
  for line in ("5 (given)", "4 (seed in some.yaml)", "1 (MJRL_CPU_THREADS in the shell)"):
    assert line in out
  assert "episode_s: 20.0 -> 5.0 (--set)" in out
  assert "action.scale_rad: 0.25 -> 0.4 (set in some.yaml)" in out


def test_several_overrides_are_taken(called):
  # Guards: the last --set standing alone; 1e-3 read as a text.
  sets = ["recipe.learning_rate=1e-3", "command.forward_m_s=[-0.3, 0.6]", "events.push=null"]
  assert train.main([*TASK, *(word for value in sets for word in ("--set", value))]) == 0
  task = called.train[0]["task"]
  assert task.recipes["native"].learning_rate == 1e-3 and "push" not in task.events
  assert task.command.forward_m_s == (-0.3, 0.6)
  assert [line.split(":")[0] for line in called.train[0]["departures"]] == [
    "recipe.learning_rate",
    "command.forward_m_s",
    "events.push",
  ]


def test_a_value_like_the_tasks_own_is_no_departure(called):
  # Guards: a list of departures that nobody reads, because half of it is none.
  whole = ["--num_envs", "16", "--max_iterations", "1500"]  # as a run.yaml of 16 envs has it
  assert train.main([*TASK, *whole, "--set", "episode_s=20"]) == 0
  assert called.train[0]["departures"] == [] and called.train[0]["overrides"] == {"episode_s": 20.0}


@pytest.mark.parametrize(
  ("text", "says"),
  [
    ("num_env: 4", "some.yaml: there is no key 'num_env'; did you mean 'num_envs'"),
    ("sets: {}", "some.yaml: there is no key 'sets'; did you mean 'set'"),
    (
      "num_envs: many",
      'some.yaml: num_envs: "many" does not do; it must be a whole number or null',
    ),
    ("num_envs: 4.5", "it must be a whole number"),
    ("num_envs: 0", "num_envs in some.yaml is 0; it must be at least 1"),
    ("headless: 1", "headless: 1 does not do; it must be true or false"),
    ("backend: nativ", "it must be one of auto, native, warp"),
    ("device: gpu", "some.yaml: device: there is no device 'gpu'"),
    ("task: hop.flt", "task in some.yaml: there is no task 'hop.flt'"),
    ("list: true", "list is for the command line alone"),
    ("config: other.yaml", "config is for the command line alone"),
    ("agent: zero", "agent has no effect here: it is a flag of play.py alone"),
    ("best_metric: x", "best_metric in some.yaml has no effect without --eval_every"),
    ("seed: 1\nseed: 2", "some.yaml: line 2: the key 'seed' stands twice"),
    ("num_envs: 1\nnum-envs: 2", "the key 'num_envs' stands twice"),
    ("- a", "some.yaml holds ['a']; a configuration is a mapping of keys to values"),
    ("", "some.yaml holds nothing; a configuration is a mapping of keys to values"),
    ("set: 3", "some.yaml: set must be a mapping, and is 3"),
    ("set: {episode_s: x}", 'set in some.yaml: episode_s: "x" does not do'),
    ("set: {rewards: {fot_slip: {weight: 1}}}", "did you mean 'foot_slip'"),
    ("set: {rewards: {}}", "rewards: set one of its parts"),
    ("set: {rewards.gait.weight: 1, rewards: {gait: {weight: 2}}}", "stands there twice"),
    ("set: {curriculum.dwell_steps: 1, recipe.num_envs: 8}", "use --num_envs"),
    ("set: {rewards.upright: {weight: 0, variance: 1}}", "has no effect: the weight of upright"),
  ],
)
def test_a_file_with_a_mistake_is_refused(called, tmp_path, capsys, text, says):
  # Guards: a typo that is read over (embodichain: unknown keys ignored), found out after the run.
  assert train.main([*write(tmp_path, text), *([] if "task" in text else TASK)]) == 2
  err = capsys.readouterr().err
  assert says in err and err.startswith("error: ") and err.count("\n") == 1
  assert not called.train


@pytest.mark.parametrize(
  ("name", "text", "code", "says"),
  [
    ("some.json", '{"seed": 1, "seed": 2}', 2, "the key 'seed' stands twice"),
    ("some.json", '{"seed": 1,}', 2, "some.json: line 1: "),
    ("some.toml", "seed = 1", 2, "must end in .yaml, .yml or .json"),
    ("some.yaml", None, 1, "there is no such file"),
  ],
)
def test_a_file_that_cannot_be_read_is_refused(called, tmp_path, capsys, name, text, code, says):
  # Guards: the same, for the file as a whole.
  if text is not None:
    write(tmp_path, text, name)
  assert train.main([*TASK, "--config", name]) == code
  assert says in capsys.readouterr().err and not called.train


@pytest.mark.parametrize(
  ("sets", "says"),
  [
    (["episode_s"], "--set episode_s: it must be PATH=VALUE"),
    (["episode_s="], "it must be PATH=VALUE"),
    (["episode_s=[1"], "--set episode_s=[1: line 1"),
    (["episode_s=1", "episode_s=2"], "--set episode_s is given twice"),
    (["rewards.fot_slip.weight=1"], "--set: rewards.fot_slip.weight: rewards has no 'fot_slip'"),
    (["episode_s=3", "physics_dt_s=0.007"], "--set: physics_dt_s=0.007: hop.flat: control_dt_s"),
    (["events.push.yaw_rad_s=3", "events.push=null"], "is set twice"),
  ],
)
def test_an_override_with_a_mistake_is_refused(called, capsys, sets, says):
  # Guards: the same on the command line, whichever of several it is.
  assert train.main([*TASK, *(word for value in sets for word in ("--set", value))]) == 2
  assert says in capsys.readouterr().err and not called.train


@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--set", "rewards.gait.weight=2"], "a replay does not learn"),
    (["--set", "recipe.learning_rate=1"], "no recipe is used here"),
    (["--set", "episode_s=3"], "do not time out"),
    (["--set", "events.push.yaw_rad_s=1"], "a replay leaves this event out"),
    (["--set", "observations.critic.command.scale=2"], "has no critic"),
    (["--set", "command.standing=0", "--command", "0", "0", "0"], "--command is held"),
    (["--set", "physics_dt_s=0.01", "--physics_hz", "50"], "--physics_hz is given"),
    (["--set", "observations.policy.joint_pos.noise=0", "--no-obs-noise"], "--no-obs-noise"),
  ],
)
def test_what_would_not_change_a_replay_is_refused(called, capsys, argv, says):
  # Guards: a replay that is thought to be of other pushes, and is not.
  assert play.main([*TASK, "--agent", "zero", *argv]) == 2
  assert says in capsys.readouterr().err and not called.play


def test_a_checkpoint_brings_its_overrides(called, tmp_path, capsys, write_checkpoint):
  # Guards: a policy that is replayed, or trained on, on other numbers than it learned with.
  inherited = {
    "action.scale_rad": 0.3,
    "episode_s": 5.0,
    "rewards.upright.variance": 0.5,
    "recipe.learning_rate": 1e-3,
  }
  write_checkpoint(tmp_path / "run/model_1.pt", overrides=inherited, learning_rate=1e-3)
  argv = [*TASK, "--checkpoint", "run"]

  assert play.main([*argv, "--set", "action.scale_rad=0.4"]) == 0
  task = called.play[0]["task"]
  assert (task.action.scale_rad, task.episode_s) == (0.4, 5.0)
  out = capsys.readouterr().out
  assert "set by the checkpoint's run: episode_s=5.0, rewards.upright.variance=0.5" in out
  assert "action.scale_rad: 0.25 -> 0.4 (--set)" in out

  assert train.main([*argv, "--set", "rewards.upright.weight=0"]) == 0
  (given,) = called.train
  # The variance has lost its effect, through no fault of the user's.
  kept = {k: v for k, v in inherited.items() if k != "rewards.upright.variance"}
  assert given["overrides"] == kept | {"rewards.upright.weight": 0.0}
  assert given["task"].episode_s == 5.0
  assert "set by the checkpoint's run: action.scale_rad=0.3" in capsys.readouterr().out

  # The same rate again is no contradiction: a run.yaml of a resumed run has it.
  assert train.main([*argv, "--set", "recipe.learning_rate=1e-3"]) == 0
  assert train.main([*argv, "--set", "recipe.learning_rate=1e-4"]) == 2
  assert "the run goes on from what its checkpoint has" in capsys.readouterr().err


def test_a_typed_resume_beats_a_files_checkpoint(called, tmp_path, write_checkpoint):
  # Guards: --resume on top of a run.yaml that goes on from the checkpoint of long ago.
  paths = [tmp_path / "old/model_1.pt", tmp_path / "logs/jumper/hop.flat/new/model_2.pt"]
  for path in paths:
    write_checkpoint(path)
  config = write(tmp_path, "task: hop.flat\ncheckpoint: old/model_1.pt")
  for argv in (config, [*config, "--resume"]):
    assert train.main(argv) == 0
  assert [given["checkpoint"].name for given in called.train] == ["model_1.pt", "model_2.pt"]


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_checkpoint_that_does_not_fit_is_refused_at_once(
  called, tmp_path, capsys, write_checkpoint, dry
):
  # Guards: a dry run that welcomes what the run then refuses.
  write_checkpoint(tmp_path / "wide/model_1.pt", actor_hidden=(512,))
  write_checkpoint(tmp_path / "other/model_1.pt", task="hop.stairs")
  assert train.main([*TASK, *dry, "--checkpoint", "wide"]) == 2
  assert "does not fit this task: recipe.actor_hidden" in capsys.readouterr().err
  assert play.main([*TASK, *dry, "--checkpoint", "wide"]) == 0  # it replays what was trained
  for command in (train.main, play.main):
    assert command([*TASK, *dry, "--checkpoint", "other"]) == 2
    assert "is of task hop.stairs, not of hop.flat" in capsys.readouterr().err
  argv = [*TASK, *dry, "--checkpoint", "wide", "--set", "observations.policy.joint_pos.scale=2"]
  assert play.main(argv) == 2
  assert "observations.policy.joint_pos.scale: 1.0 -> 2.0" in capsys.readouterr().err
  assert not called.train and len(called.play) == (0 if dry else 1)


@pytest.fixture
def page_with(monkeypatch, called):
  """Have the task's page say something else."""
  build = tasks.build

  def change(recipe=None, **fields):
    page = build("hop.flat")
    if recipe:
      fields["recipes"] = {"native": replace(page.recipes["native"], **recipe)}
    monkeypatch.setattr(tasks, "build", lambda name: replace(page, name=name, **fields))

  return change


def test_what_success_is_needs_evaluations(called, capsys, page_with):
  # Guards: another bar for success where nothing is ever held against it.
  page_with(success=term(terminations.fell_over, max_tilt_rad=0.5))
  easier = ["--set", "success.max_tilt_rad=1"]
  assert train.main([*TASK, *easier, "--eval_every", "5"]) == 0
  assert called.train[0]["task"].success.params == {"max_tilt_rad": 1.0}
  assert train.main([*TASK, *easier]) == 2
  assert "nothing is evaluated; give --eval_every N" in capsys.readouterr().err
  assert train.main([*TASK, "--set", "success=null"]) == 2
  assert play.main([*TASK, "--agent", "zero", *easier]) == 2
  assert "has no effect: a replay has no success" in capsys.readouterr().err
  assert len(called.train) == 1 and not called.play


def test_recurrent_beside_a_memory_is_refused(
  called, tmp_path, capsys, page_with, write_checkpoint
):
  # Guards: --recurrent that is thought to give the memory that it names, and gives none.
  gru = Memory(kind="gru", hidden=8, layers=1)
  page_with(recipe={"memory": gru})
  assert train.main([*TASK, "--recurrent"]) == 2
  err = capsys.readouterr().err
  assert "--recurrent has no effect: the recipe has a memory" in err and '"gru"' in err

  # As a run.yaml has it, and on top of a checkpoint, it repeats what is.
  record = write(tmp_path, "recurrent: true\nrecord: {processes: 1}")
  assert train.main([*TASK, *record]) == 0
  write_checkpoint(tmp_path / "run/model_1.pt")
  assert train.main([*TASK, "--recurrent", "--checkpoint", "run"]) == 0
  assert [g["task"].recipes["native"].memory for g in called.train] == [gru, gru]

  page_with(recipe={"memory": RECURRENT})
  assert train.main([*TASK, "--recurrent"]) == 0
  page_with()
  assert train.main([*TASK, "--recurrent", "--set", "recipe.memory=null"]) == 2
  assert "takes away what --recurrent gives" in capsys.readouterr().err


def test_a_number_departs_once_from_its_page(called):
  # Guards: a banner that says of one number that it becomes 192, and then 8.
  few = [*TASK, "--num_envs", "8", "--recurrent"]
  sets = ["rollout_steps=8", "memory.hidden=16", "curriculum.gait_width=null"]
  argv = [*few, *(word for value in sets for word in ("--set", f"recipe.{value}"))]
  assert train.main([*argv, "--set", "recipe.epochs=4"]) == 0
  given = called.train[0]
  assert given["departures"] == [
    "recipe.num_envs: 16 -> 8",
    "recipe.memory: None -> {'kind': 'lstm', 'hidden': 16, 'layers': 1}",
    "recipe.rollout_steps: 24 -> 8 (--set)",
    "recipe.curriculum.gait_width: taken out (--set)",
  ]
  assert given["task"].recipes["native"].rollout_steps == 8
  # Back to the page's own number, which the number of envs has changed.
  assert train.main([*TASK, "--num_envs", "2", "--set", "recipe.rollout_steps=24"]) == 0
  assert called.train[1]["departures"] == ["recipe.num_envs: 16 -> 2"]


def test_a_dry_run_shows_what_would_run(called, tmp_path, capsys):
  # Guards: a configuration that can only be seen by starting it.
  (tmp_path / "mine.py").write_text("def look(moment, *, n):\n  pass\n")
  events = "events: {look: {call: 'mine:look', when: iteration, params: {n: 3}}}"
  config = write(tmp_path, f"seed: 3\n{events}")
  argv = [*TASK, *config, "--set", "recipe.epochs=2", "--max_iterations", "7", "--dry-run"]
  assert train.main(argv) == 0
  out = capsys.readouterr().out
  for line in (
    "  seed: 3\n",
    "  max_iterations: 7\n",
    "  set: {recipe.epochs: 2}\n",
    "  epochs: 2\n",
    "  - recipe.epochs: 4 -> 2 (--set)\n",
    "  - events.look: mine:look at iteration (events in some.yaml)\n",
  ):
    assert line in out
  assert not called.train
