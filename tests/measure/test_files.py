import os

import pytest

from mjrl.learn.atomic import write_bytes
from mjrl.measure.record import Recorder, columns


def test_a_failure_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch):
  # Guards: half a measure.json over a whole one, or temporary files that pile up.
  path = tmp_path / "measure" / "measure.json"
  write_bytes(path, b"old")
  for broken in ("fsync", "replace"):
    with monkeypatch.context() as patch:

      def fail(*_):
        raise OSError("disk full")

      patch.setattr(os, broken, fail)
      with pytest.raises(OSError, match="disk full"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old" and list(path.parent.iterdir()) == [path]
  write_bytes(path, b"new")
  assert path.read_bytes() == b"new"


def test_columns_name_each_number_once():
  # Guards: two series under one name, of which a reader sees the last.
  names = columns(("A_J0", "A_J1"), ("A",), clocked=True, postured=True)
  assert len(set(names)) == len(names) == 3 + 4 + 3 * 2 + 4 + 6 + 3 + 1
  less = columns(("A_J0",), ("A",), clocked=False, postured=False)
  assert not [name for name in less if "clock" in name or "posture" in name or "twist" in name]


def test_a_recording_cut_short_is_refused():
  # Guards: zeros of steps that never ran, averaged with those that did.
  with pytest.raises(ValueError, match="0 of 5 control steps were recorded"):
    Recorder(5, 0.02, clocked=True, postured=False).recording()
