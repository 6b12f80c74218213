import numpy as np
import pytest

from mjrl.measure.intervals import over_cells, over_envs, student_t

NAN = np.nan


@pytest.mark.parametrize(
  ("degrees", "factor"), [(1, 12.706), (2, 4.303), (3, 3.182), (7, 2.365), (30, 2.042), (1e6, 1.96)]
)
def test_the_factor_is_student_s(degrees, factor):
  # Guards: the normal's 1.96 for two envs, with which nearly everything is more than noise.
  assert student_t(degrees) == pytest.approx(factor, rel=2e-3)


def test_the_interval_of_a_few_envs_is_wide():
  # Guards: the spread of the envs taken for that of their mean, or the population's for a sample's.
  found = over_envs(np.array([1.0, 2.0, NAN, 3.0, 4.0]))
  assert (found.mean, found.envs) == (2.5, 4)
  assert found.half_width == pytest.approx(3.182 * 1.2910 / 2, rel=2e-3)
  assert over_envs(np.array([NAN, 2.0])).half_width is None
  assert over_envs(np.array([NAN, NAN])) is None


def test_cells_that_are_asked_for_different_things_are_no_noise():
  # Guards: an interval of the spread of commands, which hides every difference between policies.
  apart = over_cells(np.array([[0.0, 0.2], [100.0, 100.2]]))
  alike = over_cells(np.array([[0.0, 0.2], [0.0, 0.2]]))
  assert apart.mean == pytest.approx(50.1)
  assert apart.half_width == pytest.approx(alike.half_width)
  assert alike.half_width == pytest.approx(4.303 * np.hypot(0.1, 0.1) / 2, rel=2e-3)


def test_each_cell_counts_alike():
  # Guards: the commands in which robots stay up weighing more than those in which they fall.
  found = over_cells(np.array([[1.0, 1.0, NAN, NAN], [3.0, 3.0, 3.0, 3.0], [9.0, NAN, NAN, NAN]]))
  assert found.mean == 2.0 and found.envs == 6 and found.half_width == 0.0
