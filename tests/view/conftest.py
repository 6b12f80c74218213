import mujoco
import numpy as np
import pytest

from mjrl.view.frame import Frame, Subject

# A robot in a world of planes, 0.1 m high, with one joint.
BOX = """
<mujoco>
  <worldbody>
    <light type="directional" pos="0 0 3" dir="0 0 -1"/>
    <geom type="plane" size="0 0 1"/>
    <body name="base" pos="0 0 1">
      <freejoint/><geom size="0.1"/>
      <body pos="0.2 0 0"><joint name="knee"/><geom size="0.05"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def make_subject():
  """Envs of a box, by default two."""

  def make(num_envs=2, mjcf=BOX):
    return Subject(
      model=mujoco.MjModel.from_xml_string(mjcf),
      base_body="base",
      home_height_m=0.1,
      joints=("knee",),
      feet=("L", "R"),
      rewards=("alive",),
      num_envs=num_envs,
    )

  return make


@pytest.fixture
def make_frame():
  """A moment of envs whose bases are at given places."""

  def make(*places, env=0, time_s=0.0, **changes):
    qpos = np.zeros((len(places), 8), np.float32)
    qpos[:, :3], qpos[:, 3] = places, 1
    given = {
      "envs": tuple(range(env, env + len(places))),
      "qpos": qpos,
      "time_s": time_s,
      "command": np.array([0.1, 0.2, 0.3], np.float32),
      "velocity": np.array([0.4, 0.5, 0.6], np.float32),
      "foot_contact": np.array([0, 1], np.float32),
      "torque_n_m": np.array([0.7], np.float32),
      "rewards": np.array([0.8], np.float32),
    }
    return Frame(**(given | changes))

  return make
