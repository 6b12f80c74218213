import os
import sys
from dataclasses import replace
from types import ModuleType

import pytest

from mjrl import tasks
from mjrl.cli import export
from mjrl.cli.flags import ExportFlags, parse
from mjrl.learn import checkpoints


def write(path, **values):
  """A checkpoint of a run that set those values."""
  content = {"actor_state_dict": {}, "task": {}, "recipe": {}, "backend": "native:cpu"}
  checkpoints.write(path, content | {"set": values})


@pytest.fixture
def exports(called, monkeypatch, tmp_path):
  """What the work functions were given; there is one run of hop.flat."""
  calls = {"export": [], "verify": []}
  for name, note in (("export", calls["export"]), ("verify", calls["verify"])):
    module = ModuleType(f"mjrl.export.{name}")
    setattr(module, name, lambda *a, note=note, **given: note.append(given or a) or 0)
    monkeypatch.setitem(sys.modules, module.__name__, module)
  monkeypatch.setattr(export, "start_torch", called.torch_threads.append)
  run = tmp_path / "logs" / "jumper" / "hop.flat" / "2026-01-01_00-00-00"
  write(run / "model_7.pt")
  return calls | {"checkpoint": run / "model_7.pt"}


@pytest.mark.parametrize("flag", ["--help", "--list"])
def test_help_and_list_load_no_engine(script, tmp_path, flag):
  # Guards: seconds of torch before a line of help.
  for name in ("torch", "mujoco", "onnx", "onnxruntime"):
    (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')")
  path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
  done = script("export.py", flag, PYTHONPATH=path)
  assert done.returncode == 0, done.stderr
  assert ("--allow_unmeasurable" if flag == "--help" else next(iter(tasks.TASKS))) in done.stdout


def test_every_flag_is_explained_with_its_default(capsys):
  # Guards: a flag that only its author understands.
  with pytest.raises(SystemExit):
    parse(ExportFlags, "export.py", ["--help"])
  text = " ".join(capsys.readouterr().out.replace("│", " ").split())
  assert text.count("(default: ") == len(vars(ExportFlags()))
  assert "None" not in text


def test_the_newest_checkpoint_is_exported_beside_itself(exports, called):
  # Guards: a command that has to be told what it can find.
  assert export.main(["--task", "hop.flat"]) == 0
  (given,) = exports["export"]
  assert given.pop("task") == replace(tasks.build("hop.flat"), recipes={})
  assert given == {
    "checkpoint": exports["checkpoint"],
    "out": None,
    "format": "onnx",
    "allow_unmeasurable": False,
  }
  assert called.torch_threads == [1]


def test_what_was_asked_is_passed_on(exports, tmp_path, capsys):
  # Guards: a flag that is printed and never delivered, and a policy exported with a page's numbers
  # that was trained with others.
  argv = ["--task", "hop.flat", "--checkpoint", "logs", "--out", "here", "--format", "torchscript"]
  with pytest.raises(SystemExit):
    export.main([*argv, "--format", "rknn"])
  write(tmp_path / "model_3.pt", **{"action.scale_rad": 0.3})
  argv[3] = "model_3.pt"
  assert export.main([*argv, "--allow-unmeasurable"]) == 0
  (given,) = exports["export"]
  assert given["format"] == "torchscript" and given["allow_unmeasurable"] is True
  assert given["task"].action.scale_rad == 0.3
  assert "set by the checkpoint's run: action.scale_rad=0.3" in capsys.readouterr().out
  assert str(given["out"]) == "here" and str(given["checkpoint"]) == "model_3.pt"


def test_a_check_is_passed_on(exports, tmp_path):
  # Guards: an export that is made where one was to be looked at.
  assert export.main(["--check", "one", "--recorded", "two.json"]) == 0
  ((folder, recorded),) = exports["verify"]
  assert (str(folder), str(recorded)) == ("one", "two.json")
  assert not exports["export"]


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    ([], "no task: give --task NAME"),
    (["--task", "hop.flt"], "did you mean 'hop.flat'?"),
    (["--task", "hop.stairs"], "train first, python scripts/train.py --task hop.stairs"),
    (["--task", "hop.flat", "--model", "jumpr"], "did you mean 'jumper'?"),
    (["--task", "hop.flat", "--recorded", "x"], "--recorded needs --check"),
    (["--check", "x", "--task", "hop.flat"], "--task has no effect with --check"),
  ],
)
def test_what_cannot_be_done_is_said_in_one_line(exports, capsys, argv, message):
  # Guards: a stack trace for a typo, and a flag that does nothing.
  assert export.main(argv) in (1, 2)
  assert message in capsys.readouterr().err
  assert not exports["export"] and not exports["verify"]


def test_dry_run_builds_nothing(exports, called, capsys):
  # Guards: a dry run that is one in name.
  assert export.main(["--task", "hop.flat", "--dry-run"]) == 0
  assert str(exports["checkpoint"]) in capsys.readouterr().out
  assert not exports["export"] and not called.torch_threads
