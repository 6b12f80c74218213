import ast
import json
import logging.handlers
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from mjrl import tasks
from mjrl.envs.actions import JointOffset
from mjrl.envs.recipe import Memory
from mjrl.envs.task import obs
from mjrl.export import agreement, player
from mjrl.export import export as exporting
from mjrl.export.actor import load_torchscript
from mjrl.export.verify import verify
from mjrl.learn import checkpoints
from mjrl.learn.policy import NetworkPolicy

FILES = {
  "README.md",
  "actor.onnx",
  "layout.json",
  "player.py",
  "reference.json",
  "robot.xml",
  "scene.xml",
}
LSTM = Memory(kind="lstm", hidden=8, layers=2)
GRU = Memory(kind="gru", hidden=8, layers=1)
SCHEMA = Path(player.__file__).parent / "layout.schema.json"


def check_schema(layout):
  schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
  jsonschema.Draft202012Validator.check_schema(schema)
  jsonschema.validate(layout, schema)


def test_every_file_is_there_and_no_scraps(tripod):
  # Guards: a file missing, temporary folders left behind, and paths of the machine that exported.
  assert {path.name for path in tripod.folder.iterdir()} == FILES | {"actor.pt"}
  assert not [path for path in tripod.folder.parent.iterdir() if path.name.startswith(".")]
  for path in tripod.folder.iterdir():
    data = path.read_bytes()
    for trace in (str(tripod.checkpoint.parents[3]), os.path.dirname(torch.__file__), "src/mjrl"):
      assert trace.encode() not in data, f"{trace} in {path.name}"


def test_the_layout_is_that_of_its_schema(tripod):
  # Guards: a schema that says one thing, and files that say another.
  layout = tripod.layout
  check_schema(layout)
  for broken in ({"gait": 1}, {"extra": 1}, {"schema": "mjrl/layout/0"}):
    with pytest.raises(jsonschema.ValidationError):
      check_schema(layout | broken)


def test_the_layout_says_what_the_task_is(tripod):
  # Guards: figures that a robot would be run with, and that are not those of training.
  layout = tripod.layout
  terms = {t["name"]: (t["offset"], t["width"]) for t in layout["observation"]["terms"]}
  assert terms == {
    "base_ang_vel": (0, 3),
    "projected_gravity": (3, 3),
    "joint_pos": (6, 20),
    "joint_vel": (26, 20),
    "actions": (46, 20),
    "command": (66, 3),
    "joint_torque": (69, 20),
    "gait_phase": (89, 2),
  }
  assert layout["joints"]["held_at_home"] == ["LF_J4", "RF_J4"]
  assert layout["joints"]["wire"][4:6] == ["LF_J4", "RF_J0"]
  assert layout["home_rad"]["RR_J2"] == 1.8678
  assert layout["joint_limits_rad"]["LF_J1"] == [-4.75, 1.4]
  control = layout["control"]
  assert (control["control_hz"], control["decimation"], control["physics_dt_s"]) == (50, 4, 0.005)
  assert (control["kp_n_m_rad"], control["kd_n_m_s_rad"]) == (10, 0.5)
  assert layout["action"]["scale_rad"] == 0.25 and layout["action"]["targets_clamped"] is False
  assert (layout["gait"]["period_s"], layout["gait"]["cycle_steps"]) == (0.32, 16)
  # Two iterations are too few to leave the lowest rung.
  assert layout["command"]["level"] == 0
  assert layout["command"]["trained"]["forward_m_s"] == [-0.25, 0.25]
  assert layout["command"]["trained"]["yaw_rad_s"] == pytest.approx([-0.3, 0.3])
  assert layout["command"]["ceilings"]["forward_m_s"] == [-0.5, 0.5]
  assert layout["source"]["checkpoint"] == tripod.checkpoint.name
  assert layout["source"]["iteration"] == 1


def test_the_readme_has_the_figures_and_no_blanks(tripod):
  # Guards: a page with holes, or with the section of a part that the policy has not.
  text = (tripod.folder / "README.md").read_text(encoding="utf-8")
  assert "$" not in text and "None" not in text
  headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
  assert headings == [
    "A control step, 50 times a second",
    "Observation",
    "Action",
    "Gait clock",
    "Joints",
    "Checking a port",
  ]
  assert "target = HOME + 0.25 rad" in text and "| 6 to 25 | `joint_pos` |" in text
  assert "| 21 | RR_J2 | 19 | 1.8678 |" in text


def test_the_network_is_one_file_that_names_itself(tripod):
  # Guards: weights in a second file that is not copied, a batch of one, a file nobody can place.
  path = tripod.folder / "actor.onnx"
  model = onnx.load(str(path), load_external_data=False)
  assert not agreement.external_data(model)
  assert [(i.domain, i.version) for i in model.opset_import] == [("", 18)]
  kept = {item.key: item.value for item in model.metadata_props}
  assert kept["task"] == "jumper.tripod"
  assert json.loads(kept["source"])["sha256"] == tripod.layout["source"]["sha256"]
  assert json.loads(kept["joints"])["action"][0] == "LF_J0"
  assert json.loads(kept["action"])["scale_rad"] == 0.25
  session = onnxruntime.InferenceSession(str(path))
  for batch in (1, 5):
    (action,) = session.run(None, {"obs": np.zeros((batch, 91), np.float32)})
    assert np.shape(action) == (batch, 20)


def test_both_formats_act_as_the_checkpoint(tripod):
  # Guards: a policy that is fed what it was never trained on, because the normaliser is left out.
  seen = 3 * torch.randn(6, 91, generator=torch.Generator().manual_seed(1)) + 1
  wanted = NetworkPolicy(tripod.network)({"policy": seen})
  assert wanted.abs().max() > 0.01
  session = onnxruntime.InferenceSession(str(tripod.folder / "actor.onnx"))
  (action,) = session.run(["action"], {"obs": seen.numpy()})
  torch.testing.assert_close(torch.from_numpy(np.asarray(action)), wanted, atol=1e-5, rtol=0)
  (action,) = load_torchscript(tripod.folder / "actor.pt")(seen)
  torch.testing.assert_close(action, wanted, atol=1e-5, rtol=0)


def test_the_player_needs_no_mjrl_and_no_torch(tripod, tmp_path):
  # Guards: a file that runs on the machine that trained, and nowhere else.
  for name in ("mjrl", "torch", "rsl_rl", "onnx"):
    (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')")
  command = [sys.executable, str(tripod.folder / "player.py"), "--command", "0.1", "0", "0"]
  env = os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
  done = subprocess.run(
    [*command, "--seconds", "0.2"], capture_output=True, text=True, env=env, cwd=tmp_path
  )
  assert done.returncode == 0, done.stderr
  assert "commanded        +0.100       +0.000       +0.000" in done.stdout
  assert re.search(r"achieved  ( +[+-]\d\.\d{3}){3}   mean over 0.20 s", done.stdout)


def test_the_player_imports_three_packages():
  # Guards: a dependency that its user has not.
  names = set()
  for node in ast.walk(ast.parse(Path(player.__file__).read_text(encoding="utf-8"))):
    names |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
    names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
  packages = {name.split(".")[0] for name in names} - sys.stdlib_module_names
  assert packages == {"mujoco", "numpy", "onnxruntime"}


@pytest.mark.parametrize(("name", "memory"), [("jumper.tripod", LSTM), ("jumper.flat", GRU)])
def test_a_policy_that_remembers_is_exported_with_its_memory(make, tmp_path, capfd, name, memory):
  # Guards: a recurrent policy that forgets at every step, or whose states are mixed up; and an
  # exporter's pages of remarks on the console, among which an error is not seen.
  task = make.tiny(tasks.build(name), memory=memory)
  checkpoint = make.trained(task, tmp_path)
  remarks = logging.handlers.BufferingHandler(capacity=1000)  # torch's own writes around capfd
  logging.getLogger("torch.onnx").addHandler(remarks)
  capfd.readouterr()
  try:
    folder = make.exported(task, checkpoint)
  finally:
    logging.getLogger("torch.onnx").removeHandler(remarks)
  out, err = capfd.readouterr()
  assert [record.getMessage() for record in remarks.buffer] == []
  *checked, walked, wrote = out.splitlines()
  assert err == "" and all(line.startswith("  checked: ") for line in checked)
  assert re.match(r"walking for 10 s at 0\.\d+ m/s forward: player ", walked)
  assert wrote == f"wrote {folder}"
  layout = make.read(folder)
  check_schema(layout)
  states = ("h", "c") if memory.kind == "lstm" else ("h",)
  assert layout["network"]["memory"] == [
    {
      "input": f"{name}_in",
      "output": f"{name}_out",
      "shape": [memory.layers, "batch", memory.hidden],
    }
    for name in states
  ]
  assert layout["checks"]["network_error"] < 1e-5
  text = (folder / "README.md").read_text(encoding="utf-8")
  assert "## Memory" in text and ("## Gait clock" in text) == (task.gait is not None)
  network = player.Network(folder / "actor.onnx", layout)
  seen = np.ones(layout["observation"]["width"], np.float32)
  first, second = network(seen), network(seen)
  assert np.abs(first - second).max() > 1e-4  # it remembers ...
  network.start()
  assert np.array_equal(network(seen), first)  # ... until it begins again
  assert verify(folder, None) == 0


def test_what_a_robot_cannot_measure_is_refused_by_name(make, everything, tmp_path):
  # Guards: a policy that walks in simulation alone, because it sees what no robot does.
  with pytest.raises(ValueError) as error:
    make.exported(everything, tmp_path / "model_1.pt")
  for name in ("'base_lin_vel' (linear velocity of the base)", "'height'", "'air'", "'force'"):
    assert name in str(error.value)
  assert "'joint_pos'" not in str(error.value)
  assert "jumper cannot measure" in str(error.value)
  assert "--allow-unmeasurable" in str(error.value)
  assert not list(tmp_path.iterdir())


def test_it_is_exported_if_that_is_asked_for_and_the_player_sees_it_all(
  make, everything, tmp_path, capsys
):
  # Guards: a row, or a way of scaling, clipping, delaying or keeping it, that the player has wrong.
  folder = make.exported(everything, make.trained(everything, tmp_path), allow_unmeasurable=True)
  layout = make.read(folder)
  check_schema(layout)
  assert layout["not_measurable"] == ["base_lin_vel", "height", "air", "contact", "force"]
  assert "simulation alone" in (folder / "README.md").read_text(encoding="utf-8")
  assert "cannot measure base_lin_vel, height, air, contact, force" in capsys.readouterr().out
  assert layout["checks"]["observation_error"] < 1e-5
  reference = json.loads((folder / "reference.json").read_text(encoding="utf-8"))
  seen = np.array([frame["observation"] for frame in reference["frames"]])
  still = {
    term["name"]
    for term in layout["observation"]["terms"]
    if not np.ptp(seen[:, term["offset"] : term["offset"] + term["width"]], axis=0).any()
  }
  assert not still  # each row was different from frame to frame, or nothing was compared
  assert verify(folder, None) == 0


def test_a_row_that_nobody_described_is_refused(make, tripod, tmp_path):
  # Guards: a layout with a term that says nothing.
  def mystery(s):
    return s.ang_vel_b

  rows = tripod.task.observations["policy"] | {"riddle": obs(mystery)}
  task = replace(tripod.task, observations=tripod.task.observations | {"policy": rows})
  with pytest.raises(ValueError, match=r"reads 'riddle', and what mystery is has no entry"):
    make.exported(task, tmp_path / "model_1.pt", allow_unmeasurable=True)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"action": JointOffset(scale_rad=0.3)}, r"action\.scale_rad: 0\.25 -> 0\.3"),
    ({"physics_dt_s": 0.0025}, r"physics_dt_s: 0\.005 -> 0\.0025"),
    ({"name": "jumper.other"}, "is of task jumper.tripod, not of jumper.other"),
  ],
)
def test_a_checkpoint_of_another_task_is_refused(make, tripod, tmp_path, change, message):
  # Guards: today's scales and rates under yesterday's network.
  task = replace(tripod.task, **change)
  with pytest.raises(ValueError, match=message):
    make.exported(task, tripod.checkpoint, out=tmp_path / "out")
  assert not (tmp_path / "out").exists()


def test_another_gain_of_the_robot_is_refused(make, tripod, tmp_path):
  # Guards: a robot whose gains were changed since, exported with the new ones.
  saved = checkpoints.read(tripod.checkpoint)
  saved["task"]["robot"]["kp_n_m_rad"] = 12.0
  checkpoints.write(tmp_path / "model_1.pt", saved)
  with pytest.raises(ValueError, match=r"robot\.kp_n_m_rad: 12\.0 -> 10\.0"):
    make.exported(tripod.task, tmp_path / "model_1.pt")


def test_an_export_that_fails_leaves_the_last_one(make, tripod, tmp_path, monkeypatch):
  # Guards: half an export, and a good one lost to a bad one.
  out = tmp_path / "out"
  shutil.copytree(tripod.folder, out)
  before = {path.name: path.read_bytes() for path in out.iterdir()}
  monkeypatch.setattr(exporting, "onnx_bytes", lambda *_: before["actor.onnx"])  # takes longest
  monkeypatch.setattr(exporting, "readme", lambda *_: 1 / 0)  # the last thing it does
  with pytest.raises(ZeroDivisionError):
    make.exported(tripod.task, tripod.checkpoint, out=out)
  assert {path.name: path.read_bytes() for path in out.iterdir()} == before
  assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_export_takes_the_place_of_the_last_one(make, tripod, tmp_path):
  # Guards: files of an earlier export among those of a later one; and bytes that differ from export
  # to export, so that nobody can tell that nothing has changed.
  out = tmp_path / "out"
  shutil.copytree(tripod.folder, out)
  make.exported(tripod.task, tripod.checkpoint, out=out)
  assert {path.name for path in out.iterdir()} == FILES
  assert [path.name for path in tmp_path.iterdir()] == ["out"]
  for name in FILES - {"layout.json", "reference.json", "README.md"}:  # these know of actor.pt
    assert (out / name).read_bytes() == (tripod.folder / name).read_bytes(), name


def test_what_is_no_export_is_not_replaced(make, tripod, tmp_path):
  # Guards: somebody's folder gone because --out named it.
  (tmp_path / "thesis.tex").touch()
  with pytest.raises(ValueError, match="holds something else than an export"):
    make.exported(tripod.task, tripod.checkpoint, out=tmp_path)
  with pytest.raises(ValueError, match="is a file"):
    make.exported(tripod.task, tripod.checkpoint, out=tmp_path / "thesis.tex")
  assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
