"""Where the envs of a frame are drawn."""

import numpy as np
import pytest

from mjrl.view.frame import MAX_DRAWN, places

WALL = '<mujoco><worldbody><geom size="1 1 1" type="box"/><body name="base"/></worldbody></mujoco>'


def test_a_capped_number_stands_side_by_side(make_subject):
  # Guards: 4096 robots drawn, and robots drawn in one another.
  there = places(make_subject(4096))
  assert there.shape == (MAX_DRAWN, 3) and not there[0].any()
  apart = np.linalg.norm(there[:, None] - there[None], axis=2)
  assert apart[~np.eye(MAX_DRAWN, dtype=bool)].min() == pytest.approx(1.0)  # ten heights


def test_in_a_room_everybody_stands_where_he_is(make_subject):
  # Guards: a robot drawn beside the stairs that it climbs.
  assert not places(make_subject(4, WALL)).any()
