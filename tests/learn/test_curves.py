import math

from mjrl.learn.curves import Curves, read
from mjrl.learn.sinks.csv_file import CsvFile


def test_windows_are_of_iterations():
  # Guards: a mean over the last rows that have a scalar, taken for one over the last iterations.
  curves = Curves()
  for k in range(10, 30):
    curves.add(k, {"every": float(k)} | ({"some": float(k)} if k % 5 == 0 else {}))
  assert curves.recent("every", 3) == [27.0, 28.0, 29.0]
  assert curves.recent("some", 6) == [25.0] and curves.between("some", 10, 21) == [10.0, 15.0, 20.0]
  assert (curves.first, curves.iteration, curves.rows) == (10, 29, 20)
  assert curves.last("none") is None and curves.recent("none", 5) == []


def test_what_a_run_wrote_is_read(tmp_path):
  # Guards: a column under another's name where a scalar appeared later; numbers that are none.
  sink = CsvFile(tmp_path)
  for k in range(3):
    sink.write(k, {"a/b": k / 3} | ({"late": math.nan if k == 1 else 7.0} if k else {}))
  curves = read(tmp_path)
  assert curves.points("a/b") == ([0, 1, 2], [0.0, 1 / 3, 2 / 3])
  assert curves.points("late") == ([2], [7.0])


def test_a_file_that_was_cut_is_read_up_to_there(tmp_path):
  # Guards: no report of a run whose folder was copied while it wrote.
  assert read(tmp_path).rows == 0
  path = tmp_path / "scalars.csv"
  path.write_text("iteration,a\n0,1.5\n1,2.5\n2")
  assert read(tmp_path).points("a") == ([0, 1], [1.5, 2.5])
  for text in ("", "iteration,a", "no table at all\n1\n"):
    path.write_text(text)
    assert read(tmp_path).rows == 0
