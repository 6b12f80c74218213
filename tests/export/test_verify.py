import json
import shutil

import pytest

from mjrl.export.verify import verify


@pytest.fixture
def folder(tripod, tmp_path):
  """An export to damage."""
  shutil.copytree(tripod.folder, tmp_path / "export")
  return tmp_path / "export"


@pytest.fixture
def frames(folder):
  """What an implementation without a fault would record."""
  reference = json.loads((folder / "reference.json").read_text(encoding="utf-8"))
  names = ("observation", "action", "targets_rad")
  return [{name: frame[name] for name in names} for frame in reference["frames"]]


@pytest.fixture
def recorded(tmp_path):
  def write(content):
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps(content))
    return path

  return write


def test_an_export_does_what_it_recorded(folder, capsys):
  # Guards: an export that cannot be checked where it has been copied to.
  assert verify(folder, None) == 0
  said = capsys.readouterr().out
  assert "actor.onnx with player.py against the 40 frames" in said
  assert said.count("largest difference") == 3 and "it does the same" in said


def test_another_implementation_without_a_fault_passes(folder, frames, recorded, capsys):
  # Guards: a format that nobody can meet.
  assert verify(folder, recorded({"frames": frames})) == 0
  only = [{"targets_rad": frame["targets_rad"]} for frame in frames]
  assert verify(folder, recorded({"frames": only})) == 0
  assert "observation: not recorded" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("name", "index", "said"),
  [
    ("observation", 28, "frame 7: observation[28], joint_vel/LF_J2, is "),
    ("action", 19, "frame 7: action[19], RR_J2, is "),
    ("targets_rad", 9, "frame 7: targets_rad[9], RF_J4, is "),
  ],
)
def test_a_fault_is_named(folder, frames, recorded, capsys, name, index, said):
  # Guards: "it differs", and a firmware author who looks for a day.
  for frame in frames[7:]:
    frame[name][index] += 0.01
  assert verify(folder, recorded({"frames": frames})) == 1
  lines = capsys.readouterr().out.splitlines()
  assert len([line for line in lines if "is the first that is wrong" in line]) == 1
  assert any(line.strip().startswith(said) for line in lines)


def test_a_fault_that_is_no_number_is_one(folder, frames, recorded):
  # Guards: NaN, which is not greater than any tolerance.
  frames[3]["action"][2] = float("nan")
  assert verify(folder, recorded({"frames": frames})) == 1


@pytest.mark.parametrize(
  ("breaks", "message"),
  [
    (lambda f: {"frames": f[:-1]}, "has 39 frames .*; it must have 40"),
    (lambda f: {"frames": [{} for _ in f]}, "with no outputs; it must have 40, each with one or"),
    (lambda f: {"frames": [*f[:-1], {"action": []}]}, "frame 39: observation must be a list of 91"),
    (
      lambda f: {"frames": [f[0] | {"action": "x"}, *f[1:]]},
      "frame 0: action must be a list of 20",
    ),
    (lambda f: f, r"must hold \{\"frames\""),
    (lambda f: {"frames": [1, 2]}, r"must hold \{\"frames\""),
  ],
)
def test_what_is_no_recording_is_refused(folder, frames, recorded, breaks, message):
  # Guards: a comparison of nothing with nothing.
  with pytest.raises(ValueError, match=message):
    verify(folder, recorded(breaks(frames)))


@pytest.mark.parametrize("name", ["layout.json", "actor.onnx", "robot.xml", "player.py"])
def test_a_changed_file_is_found(folder, name):
  # Guards: a network and a layout that do not belong together.
  path = folder / name
  path.write_bytes(path.read_bytes() + b"\n")
  with pytest.raises(ValueError, match=f"{name} is not the file that was exported"):
    verify(folder, None)


def test_what_is_no_export_is_refused(folder, tmp_path):
  # Guards: a stack trace for a typo.
  with pytest.raises(FileNotFoundError, match=r"no layout\.json in"):
    verify(tmp_path / "nowhere", None)
  (folder / "actor.onnx").unlink()
  with pytest.raises(FileNotFoundError, match=r"actor\.onnx is missing"):
    verify(folder, None)
  (folder / "layout.json").write_text('{"schema": "kk/1"}')
  with pytest.raises(ValueError, match=r"has schema 'kk/1'; this version of mjrl reads"):
    verify(folder, None)
  (folder / "layout.json").write_text("{")
  with pytest.raises(ValueError, match="is not JSON"):
    verify(folder, None)
