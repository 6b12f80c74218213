"""Arrays of a robot that does exactly what a test says."""

from dataclasses import replace

import numpy as np
import pytest

from mjrl.envs.gaits import Gait
from mjrl.measure.figures import segment_figures
from mjrl.measure.gait_figures import clock
from mjrl.measure.measured import Circumstances, Measured, MeasuredSegment
from mjrl.measure.record import Recording
from mjrl.measure.series import segment

FEET = ("LF", "RF", "LM", "RM", "LR", "RR")
TRIPOD = Gait(
  name="tripod", swing_steps=8, groups=(("LF", "RM", "LR"), ("RF", "LM", "RR")), mirror=(-1, -1)
)
JOINTS = ("A_J0", "A_J1")
DT_S = 0.02


@pytest.fixture
def tripod():
  return clock(TRIPOD, FEET)


@pytest.fixture
def walk(tripod):
  """Ten cycles of a perfect tripod in two envs, at 0.2 m/s forward, feet 30 mm up in swing."""
  steps, envs = 160, 2
  ticks = (np.arange(steps)[:, None] + np.array([0, 5])) % 16
  contact = tripod.wanted[ticks]
  forward = np.broadcast_to(np.array([0.2, 0.0, 0.0]), (steps, envs, 3))
  place = np.zeros((steps, envs, 2))
  place[:, :, 0] = 0.2 * DT_S * np.arange(steps)[:, None]
  return Recording(
    dt_s=DT_S,
    velocity=forward,
    position_m=place,
    height_m=np.full((steps, envs), 0.1),
    tilt_rad=np.full((steps, envs), 0.05),
    torque_n_m=np.zeros((steps, envs, len(JOINTS))),
    power_w=np.full((steps, envs), 5.0),
    foot_contact=contact,
    foot_height_m=np.where(contact, -0.002, 0.03),
    foot_speed_m_s=np.where(contact, 0.01, 0.4),
    clock_steps=ticks,
    ended=np.zeros((steps, envs), bool),
    diverged=0,
    env0=np.zeros((steps, 1), np.float32),
  )


@pytest.fixture
def late(walk):
  """The same walk with contacts that come some control steps after the clock."""

  def shifted(steps):
    return replace(walk, foot_contact=np.roll(walk.foot_contact, steps, axis=0))

  return shifted


@pytest.fixture
def measured(walk, tripod):
  """The perfect walk, asked once to walk and turn, and once to stand."""

  def part(command, recording=walk):
    held = segment(command)
    figures = segment_figures(
      recording,
      held,
      joints=JOINTS,
      feet=FEET,
      clock=tripod,
      effort_limit_n_m=2.0,
      mass_kg=2.5,
      settle_s=0.2,
    )
    return MeasuredSegment(
      segment=held,
      figures=figures,
      env0=np.zeros((160, 1)),
      velocity_mean=np.zeros((160, 3)),
      velocity_std=np.zeros((160, 3)),
    )

  about = Circumstances(
    task="a.task",
    robot="a",
    agent="trained",
    checkpoint="runs/one/model_7.pt",
    iteration=7,
    backend="native:cpu",
    device="cpu",
    num_envs=2,
    scene={"name": "studio", "physics": ""},
    seed=5,
    physics_hz=200.0,
    control_hz=50.0,
    observation_noise=True,
    settle_s=0.2,
    mass_kg=2.5,
    effort_limit_n_m=2.0,
    differences_from_training=(),
    as_in_training=(),
    versions={},
  )
  always_down = replace(walk, ended=np.ones_like(walk.ended), diverged=3)
  return Measured(
    circumstances=about,
    joints=JOINTS,
    feet=FEET,
    joint_range_rad={"A_J0": (-1.0, 1.0), "A_J1": (-1.0, 1.0)},
    columns=("fell",),
    segments=(part((0.4, 0, 0.5)), part((0, 0, 0)), part((0.1, 0, 0), always_down)),
  )
