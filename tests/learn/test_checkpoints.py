"""Checkpoints: the right one, whole, and harmless."""

import errno
import os
import pickle
import zipfile

import pytest
import torch

from mjrl.envs.describe import describe
from mjrl.learn import checkpoints
from mjrl.learn.atomic import write_bytes

ROBOT, TASK = "jumper", "jumper.tripod"


def touch(path, mtime):
  path.parent.mkdir(parents=True, exist_ok=True)
  with zipfile.ZipFile(path, "w") as archive:  # whole, as far as one can see without reading it
    archive.writestr("model/data.pkl", b"")
  os.utime(path, ns=(mtime, mtime))
  return path


def find(log_dir, given=None):
  return checkpoints.find(log_dir, ROBOT, TASK, given)


def test_the_newest_is_the_last_written(tmp_path):
  # Guards: the highest number of any run, or the folder with the last name.
  logs = tmp_path / ROBOT / TASK
  touch(logs / "2026-01-02" / "model_900.pt", 1_000)
  newest = touch(logs / "2026-01-01" / "model_50.pt", 2_000)
  touch(logs / "2026-01-03" / "model_70.pt", 1_500)
  touch(logs / "2026-01-03" / "model_best.pt", 9_000)
  touch(logs / "2026-01-03" / "resume.pt", 9_000)
  touch(tmp_path / ROBOT / "jumper.flat" / "run" / "model_1.pt", 9_000)
  assert find(tmp_path) == newest


def test_ties_go_to_the_later_iteration(tmp_path):
  # Guards: model_9 taken for later than model_100, and a coarse file clock.
  run = tmp_path / ROBOT / TASK / "run"
  for iteration in (100, 9, 20):
    touch(run / f"model_{iteration}.pt", 5_000)
  assert find(tmp_path).name == "model_100.pt"


def test_a_file_a_run_and_a_task_folder_can_be_given(tmp_path):
  # Guards: --checkpoint that takes another run's file.
  run = tmp_path / "moved" / "run"
  old, new = touch(run / "model_1.pt", 1_000), touch(run / "model_2.pt", 2_000)
  other = touch(tmp_path / "moved" / "later" / "model_0.pt", 3_000)
  assert find(tmp_path, old) == old
  assert find(tmp_path, run) == new
  assert find(tmp_path, run.parent) == other


def test_nothing_found_says_where_and_what_to_do(tmp_path):
  # Guards: --resume that silently starts anew (mjlab#802).
  with pytest.raises(FileNotFoundError, match=r"no checkpoint .*jumper\.tripod: train first"):
    find(tmp_path)
  with pytest.raises(FileNotFoundError, match=r"gone\.pt: there is no such file"):
    find(tmp_path, tmp_path / "gone.pt")
  (tmp_path / "empty").mkdir()
  with pytest.raises(FileNotFoundError, match=r"no checkpoint .*empty"):
    find(tmp_path, tmp_path / "empty")


def test_the_newest_whole_one_is_taken_and_the_others_are_named(tmp_path, capsys):
  # Guards: a run that cannot be resumed because its last file was cut short, with good ones beside
  # it; and an older one taken in silence.
  run = tmp_path / ROBOT / TASK / "run"
  whole, cut, empty = (touch(run / f"model_{k}.pt", k) for k in (1, 2, 3))
  data = cut.read_bytes()
  for path, content in ((cut, data[:-1]), (empty, b"")):
    path.write_bytes(content)
    os.utime(path, ns=(5_000, 5_000 + checkpoints.iteration_of(path)))
  (run / "model_4.pt").mkdir()
  for given in (None, run, run.parent):
    assert find(tmp_path, given) == whole
    said = capsys.readouterr().out.splitlines()
    assert said == [
      f"skipped {path}: it is cut short or is no checkpoint of mjrl" for path in (empty, cut)
    ]
  whole.unlink()
  with pytest.raises(FileNotFoundError, match=r"no whole checkpoint in .*model_3\.pt: it is cut"):
    find(tmp_path)


def test_a_broken_file_that_is_named_is_refused(tmp_path):
  # Guards: another checkpoint taken for the one that was asked for.
  run = tmp_path / ROBOT / TASK / "run"
  touch(run / "model_1.pt", 1_000)
  broken = touch(run / "model_2.pt", 2_000)
  broken.write_bytes(b"PK")
  with pytest.raises(ValueError, match=r"model_2\.pt is cut short .* choose another with --check"):
    find(tmp_path, broken)


def saved(**more):
  return {"actor_state_dict": {"w": torch.arange(300.0)}, "task": {"name": TASK}} | more


def test_what_is_written_is_read(tmp_path):
  # Guards: levels or counters that are lost on the way.
  content = saved(iteration=7, curriculum={"command": {"level": 2, "linear_error": 0.25}})
  checkpoints.write(tmp_path / "model_7.pt", content)
  read = checkpoints.read(tmp_path / "model_7.pt")
  assert torch.equal(read.pop("actor_state_dict")["w"], content.pop("actor_state_dict")["w"])
  assert read == content
  assert checkpoints.iteration_of(tmp_path / "model_7.pt") == 7


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_refused_by_name(tmp_path, share):
  # Guards: a stack trace of the archive's reader after a full disk.
  path = tmp_path / "model_1.pt"
  checkpoints.write(path, saved())
  data = path.read_bytes()
  path.write_bytes(data[: int(len(data) * share)])
  with pytest.raises(ValueError, match=r"model_1\.pt is cut short or is no checkpoint of mjrl"):
    checkpoints.read(path)


def foreign():
  rng = torch.Generator().manual_seed(0)
  noise = bytes(torch.randint(256, (5000,), generator=rng, dtype=torch.uint8).tolist())
  return {
    "text": b"no checkpoint\n",
    "noise": noise,
    "zeros": bytes(5000),
    "zip": b"PK\x03\x04" + noise,
    "pickle": pickle.dumps({"actor_state_dict": 1, "task": print}),
    "old pickle": pickle.dumps([1, 2, 3], protocol=0),
    "png": b"\x89PNG\r\n\x1a\n" + noise,
  }


@pytest.mark.parametrize("kind", foreign())
def test_a_foreign_file_is_refused_by_name(tmp_path, kind):
  # Guards: a stack trace, or a crash, for the wrong file.
  path = tmp_path / "model_1.pt"
  path.write_bytes(foreign()[kind])
  with pytest.raises(ValueError, match=r"model_1\.pt is .*no checkpoint of mjrl"):
    checkpoints.read(path)


def test_a_damaged_file_is_refused_or_read(tmp_path):
  # Guards: one flipped byte that becomes another weight, or any of a dozen errors of the reader.
  path = tmp_path / "model_1.pt"
  checkpoints.write(path, saved())
  data, rng = path.read_bytes(), torch.Generator().manual_seed(0)
  refused = 0
  for place in torch.randint(len(data), (300,), generator=rng).tolist():
    path.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
    try:
      weights = checkpoints.read(path)["actor_state_dict"]["w"]
      assert torch.equal(weights, saved()["actor_state_dict"]["w"])  # it was padding
    except ValueError as error:
      assert "model_1.pt is " in str(error)
      refused += 1
  assert refused > 100


@pytest.mark.parametrize(
  "content", [[1, 2], {"model_state_dict": {}}, {"actor_state_dict": {}}, torch.zeros(3)]
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path, content):
  # Guards: a KeyError deep in the runner for a checkpoint of rsl_rl's own.
  torch.save(content, tmp_path / "model_1.pt")
  with pytest.raises(ValueError, match=r"model_1\.pt is no checkpoint of mjrl"):
    checkpoints.read(tmp_path / "model_1.pt")


class Payload:
  def __init__(self, path):
    self.path = path

  def __reduce__(self):
    return (open, (self.path, "w"))


@pytest.mark.parametrize("archive", [True, False])
def test_loading_runs_nothing(tmp_path, archive):
  # Guards: a checkpoint from a forum that runs its sender's code.
  proof, path = tmp_path / "owned", tmp_path / "model_1.pt"
  content = saved(extra=Payload(str(proof)))
  torch.save(content, path, _use_new_zipfile_serialization=archive)
  with pytest.raises(ValueError, match="no checkpoint of mjrl"):
    checkpoints.read(path)
  assert not proof.exists()
  torch.load(path, weights_only=False)["extra"].close()  # the payload would have worked
  assert proof.exists()


@pytest.fixture
def described(small):
  return {"task": describe(small), "recipe": describe(small.recipes["native"])}


def fits(described, task=None, recipe=None):
  now_task = task or described["task"]
  now_recipe = recipe or described["recipe"]
  checkpoints.check_networks("old.pt", described, now_task, now_recipe)


def test_a_checkpoint_of_the_same_task_fits(described):
  # Guards: a refusal over what no network depends on: noise, weights, a learning rate.
  task = {**described["task"], "rewards": {}, "episode_s": 3.0}
  policy = {k: {**row, "noise": 9.0} for k, row in task["observations"]["policy"].items()}
  task["observations"] = {**task["observations"], "policy": policy}
  fits(described, task=task, recipe={**described["recipe"], "learning_rate": 7.0, "num_envs": 3})


def test_what_does_not_fit_is_named(described):
  # Guards: "size mismatch for mlp.0.weight", or worse, columns that are exchanged and fit.
  for key, value in (("actor_hidden", [7]), ("activation", "relu"), ("history", 4)):
    with pytest.raises(ValueError, match=rf"old\.pt does not fit this task: recipe\.{key}: .* -> "):
      fits(described, recipe={**described["recipe"], key: value})
  with pytest.raises(
    ValueError, match=r"of task jumper\.tripod, not of .*; give --task jumper\.tripod"
  ):
    fits(described, task={**described["task"], "name": "jumper.flat"})

  def policy(change):
    rows = change(dict(described["task"]["observations"]["policy"]))
    groups = {**described["task"]["observations"], "policy": rows}
    return {**described["task"], "observations": groups}

  def without(rows):
    rows.pop("actions")
    return rows

  with pytest.raises(ValueError, match=r"observations\.policy\.actions: .* -> absent"):
    fits(described, task=policy(without))
  with pytest.raises(ValueError, match=r"observations\.policy\.actions\.scale: 1\.0 -> 2\.0"):
    fits(described, task=policy(lambda r: {**r, "actions": {**r["actions"], "scale": 2.0}}))
  with pytest.raises(ValueError, match=r"observations\.policy: the order of the rows"):
    fits(described, task=policy(lambda r: dict(reversed(r.items()))))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch, call):
  # Guards: a full disk that takes the last good checkpoint with it, and a litter of half files.
  path = tmp_path / "deep" / "model_1.pt"
  write_bytes(path, b"good")

  def full(*_):
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(os, call, full)
  with pytest.raises(OSError, match="No space left"):
    write_bytes(path, b"bad")
  assert path.read_bytes() == b"good"
  assert [p.name for p in path.parent.iterdir()] == ["model_1.pt"]


def test_a_failed_write_names_the_file(tmp_path, monkeypatch):
  # Guards: "No space left on device", of which of ten disks nobody knows.
  def full(*_):
    raise OSError(errno.EDQUOT, "Disk quota exceeded")  # as write() does: without a name

  monkeypatch.setattr(os, "fsync", full)
  with pytest.raises(OSError, match=r"quota exceeded: '.*model_1\.pt'"):
    write_bytes(tmp_path / "model_1.pt", b"")


def test_old_checkpoints_of_the_run_are_pruned(small, make_runner):
  # Guards: --keep_last that keeps all, or removes the best, the newest, or what others put there.
  runner = make_runner(small, save_every=1, keep_last=2)
  for name in ("model_best.pt", "model_900.pt"):
    touch(runner.folder / name, 1)
  runner.learn(2)
  assert runner.saves.newest.name == "model_1.pt"
  runner.learn(3)
  names = {path.name for path in runner.folder.glob("model_*.pt")}
  assert names == {"model_3.pt", "model_4.pt", "model_900.pt", "model_best.pt"}
  assert [path.name for path in runner.folder.glob("resume*")] == ["resume_4.pt"]


def test_pruning_that_fails_is_a_line(small, make_runner, monkeypatch, capsys):
  # Guards: a run that ends because an old file could not be removed.
  runner = make_runner(small, save_every=1, keep_last=1)

  def refuse(path, missing_ok=False):
    raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

  with monkeypatch.context() as patch:
    patch.setattr("pathlib.Path.unlink", refuse)
    runner.learn(4)
  assert runner.saves.newest.name == "model_3.pt" and runner.failures.exit_code == 0
  assert capsys.readouterr().out.count("could not remove an old checkpoint") == 1
  assert runner.failures.counts == {"remove an old checkpoint: Operation not permitted": 3}
  runner.learn(1)  # and it is caught up on
  assert [path.name for path in runner.folder.glob("model_*.pt")] == ["model_4.pt"]


def test_a_save_that_fails_does_not_end_the_run(small, make_runner, capsys):
  # Guards: hours of training lost to a folder that was away for a minute.
  runner = make_runner(small, save_every=1)
  runner.learn(1)
  away = runner.folder.rename(runner.folder.with_name("away"))
  runner.folder.write_text("in its place")
  runner.learn(3)
  assert capsys.readouterr().out.count("could not write the checkpoint: [Errno") == 1
  assert runner.next_iteration == 4 and runner.saves.newest.name == "model_0.pt"
  assert runner.failures.exit_code == 1
  runner.folder.unlink()
  away.rename(runner.folder)
  assert checkpoints.find(runner.folder, "", "", None) == runner.saves.newest
  runner.learn(1)
  assert runner.saves.newest.name == "model_4.pt" and runner.failures.exit_code == 0
  assert checkpoints.read(runner.saves.newest)["iteration"] == 4


def test_a_console_that_fails_does_not_end_the_run(small, make_runner, monkeypatch):
  # Guards: `train.py > log` on a disk that is full for a minute.
  def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")

  monkeypatch.setattr("mjrl.learn.runner.Display.block", full)
  runner = make_runner(small)
  runner.learn(2)
  assert runner.saves.newest.name == "model_1.pt" and runner.failures.exit_code == 0
  assert runner.failures.counts == {"write to the console: No space left on device": 2}


def test_a_file_is_readable_by_others(tmp_path):
  # Guards: checkpoints that nobody else can read, because temporary files are private.
  before = os.umask(0o022)
  try:
    write_bytes(tmp_path / "a", b"")
  finally:
    os.umask(before)
  assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644
