import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from mjrl import tasks
from mjrl.cli import planned, play, prepare, train
from mjrl.cli.flags import PlayFlags, TrainFlags, parse
from mjrl.cli.recorded import since
from mjrl.envs.recipe import RECURRENT, for_envs
from mjrl.learn import checkpoints
from mjrl.learn.options import Options
from mjrl.learn.run_config import run_config
from mjrl.sim.cpus import cgroup_folders
from mjrl.sim.ranks import Ranks
from mjrl.sim.resolve import Resolved, resolve
from mjrl.view.choice import Choice

ROOT = Path(__file__).parents[2]
TASK = next(iter(tasks.TASKS))
PAGES = {name: entry.page for name, entry in tasks.TASKS.items()}
COMMANDS = {"train.py": train.main, "play.py": play.main}
ZERO = ["--task", "hop.flat", "--backend", "native", "--agent", "zero", "--measure"]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "--list"])
def test_help_and_list_answer_at_once(script, name, flag):
  # Guards: ten seconds of torch before a line of help.
  before = os.times()
  done = script(name, flag)
  after = os.times()
  assert done.returncode == 0, done.stderr
  assert TASK in done.stdout if flag == "--list" else "--num_envs" in done.stdout
  # CPU time of the child, which unlike wall time does not depend on who else is at work.
  cpu_s = (
    after.children_user + after.children_system - before.children_user - before.children_system
  )
  assert cpu_s < 1.0


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "--list"])
def test_help_and_list_load_no_engine(script, tmp_path, name, flag):
  # Guards: an import at the top of a module that brings torch in by the back door.
  (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
  (tmp_path / "mujoco.py").write_text("raise SystemExit('mujoco was imported')")
  path = ":".join([str(tmp_path), *filter(None, sys.path)])
  done = script(name, flag, PYTHONPATH=path)
  assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("flags", [TrainFlags, PlayFlags])
def test_every_flag_is_explained_with_its_default(flags, capsys):
  # Guards: a flag that only its author understands.
  with pytest.raises(SystemExit):
    parse(flags, "command", ["--help"])
  text = " ".join(capsys.readouterr().out.replace("│", " ").split())
  for line in text.split(" --")[1:]:
    name = line.split()[0].rstrip(",")
    assert f"--{name}" in text
  assert text.count("(default: ") == len(vars(flags()))
  assert "None" not in text


@pytest.mark.parametrize("spelling", ["--max-iterations", "--max_iterations"])
def test_dash_and_underscore_are_the_same(called, spelling):
  # Guards: a flag copied from another project being refused, or ignored.
  assert train.main(["--task", "hop.flat", spelling, "7"]) == 0
  assert called.train[0]["max_iterations"] == 7


def test_train_passes_on_what_was_asked(called, tmp_path):
  # Guards: a flag that is printed and never delivered.
  argv = ["--task", "hop.flat", "--num_envs", "5", "--cpu_threads", "1", "--seed", "3"]
  argv += ["--log_dir", "here", "--tb_port", "7000", "--headless"]
  assert train.main(argv) == 0
  (given,) = called.train
  resolved = given.pop("resolved")
  assert (resolved.num_envs, resolved.threads) == (5, 1)
  assert called.torch_threads == [resolved.torch_threads]
  assert given.pop("command").endswith(" ".join(argv))
  assert given.pop("task").name == "hop.flat"
  assert not given.pop("stop")
  assert given == {
    "seed": 3,
    "max_iterations": None,
    "checkpoint": None,
    "init_from": None,
    "log_dir": tmp_path / "here",
    "options": Options(tensorboard_port=7000),
    "overrides": {},
    "run_events": {},
    "departures": ["recipe.num_envs: 16 -> 5", "recipe.rollout_steps: 24 -> 77"],
  }


def test_a_signal_before_the_training_reaches_it(called, monkeypatch):
  # Guards: a stop while torch loads or the world is built, that leaves half a run folder, or is
  # forgotten.
  monkeypatch.setattr(planned, "start_torch", lambda _: signal.raise_signal(signal.SIGTERM))
  ours = signal.signal(signal.SIGTERM, signal.SIG_IGN)
  try:
    train.main(["--task", "hop.flat"])
    assert called.train[0]["stop"].exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN  # handed back
  finally:
    signal.signal(signal.SIGTERM, ours)


def test_play_passes_on_what_was_asked(called, tmp_path):
  # Guards: the same.
  argv = ["--task", "hop.flat", "--agent", "random", "--steps", "9", "--speed", "0", "--measure"]
  argv += ["--command", "-0.25", "0", "0.5", "--no-obs-noise", "--physics_hz", "500"]
  argv += ["--compare_backend", "warp:cpu"]
  assert play.main([*argv, "--seed", "3", "--headless"]) == 0
  (given,) = called.play
  assert given.pop("resolved").num_envs == 64
  compared = given.pop("compared")
  assert (compared.name, compared.num_envs) == ("warp:cpu", 64)
  assert given.pop("task").name == "hop.flat"
  assert given == {
    "seed": 3,
    "agent": "random",
    "checkpoint": None,
    "steps": 9,
    "speed": 0.0,
    "command": (-0.25, 0.0, 0.5),
    "posture": None,
    "film": None,
    "library": "",
    "obs_noise": False,
    "physics_hz": 500.0,
    "measure": True,
    "viewer": Choice(),
  }


def test_no_tensorboard_is_passed_on(called):
  # Guards: a server that starts although it was switched off.
  assert train.main(["--task", "hop.flat", "--no-tensorboard"]) == 0
  assert called.train[0]["options"].tensorboard_port is None


@pytest.mark.parametrize("name", tasks.TASKS)
def test_recurrent_gives_any_task_a_memory(called, capsys, monkeypatch, name):
  # Guards: a flag that is printed and never delivered, or changes more than it says.
  task = import_module(PAGES[name]).task()
  monkeypatch.setattr(tasks, "build", lambda _: task)
  assert train.main(["--task", "hop.flat", "--recurrent"]) == 0
  given = called.train[0]["task"]
  recipe = for_envs(task.recipes["native"], 16)
  assert given.recipes["native"] == replace(recipe, memory=RECURRENT)
  assert replace(given, recipes=task.recipes) == task
  assert "recipe.memory: None -> {'kind': 'lstm'" in capsys.readouterr().out


def test_recurrent_switches_mirroring_off_and_says_so(called, capsys, monkeypatch):
  # Guards: a run that ends in rsl_rl, minutes later; a loss that is gone and nobody knows.
  task = import_module(PAGES[TASK]).task()
  mirrors = replace(task, recipes={"native": task.recipes["warp"]})
  monkeypatch.setattr(tasks, "build", lambda _: mirrors)
  assert train.main(["--task", "hop.flat", "--recurrent"]) == 0
  assert "recipe.mirror_coef: 1.0 -> 0.0" in capsys.readouterr().out
  argv = ["--task", "hop.flat", "--recurrent", "--set", "recipe.mirror_coef=0.5"]
  assert train.main(argv) == 2 and len(called.train) == 1
  assert "no mirror image" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_dry_run_builds_nothing(called, capsys, tmp_path, name):
  # Guards: a dry run that leaves a run folder, or takes as long as the run's start.
  extra = ["--agent", "zero"] if name == "play.py" else []
  assert COMMANDS[name](["--task", "hop.flat", "--dry-run", *extra]) == 0
  assert not (called.train or called.play)
  assert list(tmp_path.iterdir()) == []
  out = capsys.readouterr().out
  assert "hop.flat" in out and "native:cpu (auto: " in out and "nothing was built" in out


def test_the_banner_says_where_values_come_from(called, capsys, monkeypatch):
  # Guards: a number in the banner that nobody can trace.
  monkeypatch.setenv("MJRL_CPU_THREADS", "1")
  assert train.main(["--task", "hop.flat", "--num_envs", "3", "--dry-run"]) == 0
  out = capsys.readouterr().out
  assert "3 (given)" in out
  assert "1 (MJRL_CPU_THREADS in the shell)" in out
  assert "(drawn)" in out
  assert "recipe.num_envs: 16 -> 3" in out


def as_torchrun(monkeypatch, rank):
  for name, value in {"WORLD_SIZE": 2, "RANK": rank, "LOCAL_RANK": rank}.items():
    monkeypatch.setenv(name, str(value))
  for name, value in {"LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}.items():
    monkeypatch.setenv(name, str(value))


def test_the_first_process_says_what_all_do(called, capsys, monkeypatch):
  # Guards: K banners on one terminal, and a number of envs that means two things.
  as_torchrun(monkeypatch, 0)
  argv = ["--task", "hop.flat", "--num_envs", "5", "--dry-run"]
  assert train.main(argv) == 0
  out = capsys.readouterr().out
  assert "5 (given), in each of 2 processes: 10 in all" in out
  assert "2 processes of 5 envs each" in out
  as_torchrun(monkeypatch, 1)
  assert train.main(argv) == 0
  assert capsys.readouterr() == ("", "")


def test_a_sweep_under_torchrun_is_refused(called, capsys, monkeypatch, tmp_path):
  # Guards: K processes that each run the whole sweep, into one another's folders.
  (tmp_path / "s.yaml").write_text("task: hop.flat\nsweep: {seed: [1, 2]}\n")
  assert train.main(["--config", "s.yaml", "--dry_run"]) == 0
  as_torchrun(monkeypatch, 0)
  assert train.main(["--config", "s.yaml", "--dry_run"]) == 2
  assert "s.yaml is a sweep" in capsys.readouterr().err


def test_a_run_of_several_processes_can_be_repeated_as_such():
  # Guards: a run.yaml with the first one's GPU, which is refused for the others, and one that is
  # repeated by fewer processes without a word.
  common = {"backend": "warp", "num_envs": 4, "threads": 0, "torch_threads": 1, "reasons": {}}
  alone = Resolved(device="cuda:1", **common)
  first = Resolved(device="cuda:0", ranks=Ranks(world_size=2, local_world_size=2), **common)
  given = {"task": TASK, "seed": 0, "iterations": 1, "recurrent": False, "checkpoint": None}
  given |= {"init_from": None}
  given |= {"options": Options(), "overrides": {}, "run_events": {}}
  devices = [run_config(resolved=one, **given)["device"] for one in (alone, first)]
  assert devices == ["cuda:1", "cuda"]
  task = tasks.build(TASK)
  assert since({"processes": 2}, task, first) == []
  assert since({"processes": 2}, task, alone) == ["processes: 2 -> 1"]


def test_a_drawn_seed_differs_between_runs(called):
  # Guards: "drawn" meaning always the same.
  train.main(["--task", "hop.flat"])
  train.main(["--task", "hop.flat"])
  assert called.train[0]["seed"] != called.train[1]["seed"]


@pytest.mark.parametrize(
  ("name", "argv", "code", "says"),
  [
    ("train.py", [], 2, "no task: give --task"),
    ("train.py", ["--task", "hop.flt"], 2, "hop.flat"),
    ("train.py", ["--task", "hop.flat", "--model", "jumpr"], 2, "did you mean 'jumper'"),
    ("train.py", ["--task", "hop.flat", "--num_envs", "0"], 2, "--num_envs is 0"),
    ("train.py", ["--task", "hop.flat", "--max_iterations", "0"], 2, "--max_iterations is 0"),
    ("train.py", ["--task", "hop.flat", "--seed", "-1"], 2, "--seed is -1"),
    ("train.py", ["--task", "hop.flat", "--tb_port", "99999"], 2, "--tb_port is 99999"),
    ("train.py", ["--task", "hop.flat", "--device", "gpu"], 2, "no device 'gpu'"),
    ("train.py", ["--task", "hop.flat", "--profile_output", "a"], 2, "no effect without --profile"),
    ("train.py", ["--task", "hop.flat", "--profile", "--profile_output", "."], 2, "is a folder"),
    ("train.py", ["--task", "hop.flat", "--best_metric", "eval/a"], 2, "without --eval_every"),
    ("train.py", ["--task", "hop.flat", "--num_eval_episodes", "9"], 2, "without --eval_every"),
    ("train.py", ["--task", "hop.flat", "--best_metric", "x"], 2, "no effect without --eval_every"),
    ("train.py", ["--task", "hop.flat", "--num_eval_episodes", "3"], 2, "without --eval_every"),
    ("train.py", ["--task", "hop.flat", "--profile_output", "x"], 2, "without --profile"),
    ("train.py", ["--task", "hop.flat", "--resume"], 1, "hop.flat"),
    ("train.py", ["--task", "hop.flat", "--checkpoint", "gone.pt"], 1, "gone.pt"),
    ("play.py", ["--task", "hop.flat"], 1, "hop.flat"),
    ("play.py", ["--task", "hop.flat", "--dry-run"], 1, "hop.flat"),
    ("play.py", ["--task", "hop.flat", "--agent", "zero", "--speed", "nan"], 2, "--speed is nan"),
    ("play.py", ["--task", "hop.flat", "--command", "nan", "0", "0"], 2, "three finite numbers"),
    ("play.py", ["--task", "hop.flat", "--agent", "zero", "--checkpoint", "a"], 2, "no effect"),
    ("play.py", ["--task", "hop.flat", "--compare_backend", "warp"], 2, "without --measure"),
    ("play.py", [*ZERO, "--compare_backend", "native"], 2, "is native on cpu, the engine that is"),
    ("play.py", [*ZERO, "--compare_backend", "auto"], 2, "no engine 'auto'"),
  ],
)
def test_a_mistake_is_one_line(called, capsys, name, argv, code, says):
  # Guards: a stack trace for a typo, and a typo found out after minutes of building.
  assert COMMANDS[name](argv) == code
  err = capsys.readouterr().err
  assert says in err and err.startswith("error: ") and err.count("\n") == 1
  assert not (called.train or called.play or called.torch_threads)


@pytest.mark.parametrize("found", [None, importlib.machinery.ModuleSpec("wandb", None)])
def test_wandb_that_is_not_installed_is_said_with_the_cure(called, capsys, monkeypatch, found):
  # Guards: finding out when the run has been built; and a folder called wandb, such as an earlier
  # run left, that is taken for the package.
  monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
  assert train.main(["--task", "hop.flat", "--logger", "wandb"]) == 2
  assert "pip install -e '.[wandb]'" in capsys.readouterr().err
  assert not (called.train or called.torch_threads)


def test_warp_without_its_engine_is_refused_before_anything_loads(script):
  # Guards: a choice that falls back, or that fails inside an engine.
  done = script("train.py", "--task", TASK, "--backend", "warp")
  assert done.returncode == 1
  assert done.stderr.startswith("error: --backend warp cannot run here: "), done.stderr
  assert "--backend native" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
  "argv", [["--num_env", "3"], ["--num_envs", "x"], ["--num_envs"], ["--agent", "zro"]]
)
def test_a_mistyped_flag_exits_with_2(script, argv):
  # Guards: an unknown flag that is ignored.
  done = script("play.py", "--task", TASK, *argv)
  assert done.returncode == 2
  assert "Traceback" not in done.stderr and argv[0] in done.stderr


def test_a_missing_install_names_the_interpreter(tmp_path):
  # Guards: "No module named mjrl" for the commonest mistake, the wrong Python.
  env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
  command = [sys.executable, "-S", str(ROOT / "scripts" / "train.py")]  # -S: nothing is installed
  done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)
  assert "mjrl is not installed for" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
  ("work", "code", "says"),
  [
    (lambda: tasks.entry("nothing"), 2, "there is no task 'nothing'"),
    (lambda: checkpoints.find(Path("nowhere"), "a", "b", None), 1, "no checkpoint"),
    (lambda: resolve(backend="warp", num_envs=1, default_num_envs={}), 1, "warp"),
    (lambda: Path("nowhere/at/all").mkdir(), 1, "nowhere/at/all"),
  ],
)
def test_errors_of_the_work_become_one_line(capsys, work, code, says):
  # Guards: a truncated checkpoint, or a folder that cannot be written, ending in a stack trace.
  assert prepare.without_traceback(work) == code
  err = capsys.readouterr().err
  assert err.startswith("error: ") and says in err and err.count("\n") == 1


def test_a_bug_of_ours_keeps_its_traceback(tmp_path):
  # Guards: a defect told as the user's mistake, in one line that nobody can trace.
  (tmp_path / "proc/self").mkdir(parents=True)
  (tmp_path / "proc/self/cgroup").write_text("a line that nobody expected")
  with pytest.raises(ValueError):
    prepare.without_traceback(lambda: list(cgroup_folders("cpu", tmp_path)))


def test_errors_of_other_libraries_keep_their_traceback():
  # Guards: a defect of ours that nobody can find because only its last line was printed.
  with pytest.raises(ValueError):
    prepare.without_traceback(lambda: int("x"))


def test_an_interrupt_exits_with_130(capsys):
  # Guards: a stack trace for Ctrl-C.
  def work():
    raise KeyboardInterrupt

  assert prepare.without_traceback(work) == 130


def test_torch_starts_with_the_threads_and_without_spinning(script, tmp_path):
  # Guards: OpenMP threads that spin while the physics works (20 times slower on a shared machine).
  code = (
    "from mjrl.cli.prepare import start_torch; start_torch(1); import os, torch\n"
    "names = ('OMP_WAIT_POLICY', 'GIT_PYTHON_REFRESH')\n"
    "print(torch.get_num_threads(), *map(os.environ.get, names))"
  )
  (tmp_path / "code.py").write_text(code)
  done = script(str(tmp_path / "code.py"), OMP_NUM_THREADS="2")
  assert done.stdout.split() == ["1", "PASSIVE", "quiet"], done.stderr


def test_without_a_display_the_run_goes_on_headless(called, capsys):
  # Guards: the same, and headless without being told so, or told what would work instead.
  assert train.main(["--task", "hop.flat"]) == 0
  assert called.train[0]["options"].viewer == Choice()
  said = capsys.readouterr().out
  assert "running headless" in said and "--viewer web" in said


def test_with_a_display_the_window_opens(called, monkeypatch):
  # Guards: headless for everybody.
  monkeypatch.setenv("DISPLAY", ":0")
  assert train.main(["--task", "hop.flat"]) == 0
  assert called.train[0]["options"].viewer.kind == "window"


@pytest.mark.parametrize(
  ("argv", "kind"),
  [
    (["--headless"], "none"),
    (["--viewer", "none"], "none"),
    (["--headless", "--viewer", "none"], "none"),
    (["--viewer", "web"], "web"),
  ],
)
def test_the_viewer_is_passed_on(called, monkeypatch, argv, kind):
  # Guards: a page that nobody serves, or a window that was switched off.
  monkeypatch.setenv("DISPLAY", ":0")
  assert play.main(["--task", "hop.flat", "--agent", "zero", *argv]) == 0
  assert called.play[0]["viewer"].kind == kind


def test_a_page_is_for_this_machine_alone_unless_asked(called):
  # Guards: robots that anybody in the network can drive.
  argv = ["--task", "hop.flat", "--agent", "zero", "--viewer", "web"]
  assert play.main(argv) == 0
  assert play.main([*argv, "--viewer_host", "0.0.0.0", "--viewer_port", "8200"]) == 0
  first, second = (given["viewer"] for given in called.play)
  assert first == Choice(kind="web", host="127.0.0.1", port=8080)
  assert second == Choice(kind="web", host="0.0.0.0", port=8200)


@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--headless", "--viewer", "web"], "contradict each other"),
    (["--headless", "--viewer", "window"], "contradict each other"),
    (["--viewer_port", "9000"], "--viewer_port has no effect without --viewer web"),
    (["--viewer_host", "0.0.0.0", "--headless"], "--viewer_host has no effect"),
    (["--viewer", "web", "--viewer_host", "192.0.2.1"], "nothing can be served there"),
    (["--viewer", "web", "--viewer_port", "0"], "must be at least 1"),
  ],
)
def test_a_viewer_that_cannot_be_is_refused_first(called, capsys, argv, says):
  # Guards: minutes of building before the page fails; a flag that does nothing.
  assert train.main(["--task", "hop.flat", *argv]) == 2
  assert says in capsys.readouterr().err
  assert not (called.train or called.torch_threads)


def test_what_is_typed_rules_over_what_a_file_says(called, tmp_path):
  # Guards: a preset for servers that forbids looking, or one for looking that forbids servers.
  (tmp_path / "c.yaml").write_text("headless: true")
  argv = ["--task", "hop.flat", "--config", "c.yaml"]
  assert train.main([*argv, "--viewer", "web"]) == 0
  (tmp_path / "c.yaml").write_text("viewer: web")
  assert train.main([*argv, "--headless"]) == 0
  web, none = (given["options"].viewer.kind for given in called.train)
  assert (web, none) == ("web", "none")


@pytest.mark.parametrize("found", [None, importlib.machinery.ModuleSpec("viser", None)])
def test_viser_that_is_not_installed_is_said_with_the_cure(called, capsys, monkeypatch, found):
  # Guards: finding out when the run has been built.
  monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
  assert train.main(["--task", "hop.flat", "--viewer", "web"]) == 2
  assert "pip install -e '.[web]'" in capsys.readouterr().err
  assert not (called.train or called.torch_threads)


def test_a_full_disk_behind_the_output_is_said():
  # Guards: a traceback that tells of our print, and not of the disk.
  command = [sys.executable, str(ROOT / "scripts/train.py"), "--task", "jumper.tripod", "--dry-run"]
  with open("/dev/full", "w") as full:
    done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
  assert done.returncode == 1
  assert done.stderr == "error: the output cannot be written: No space left on device\n"
