"""What a viewer is shown of an environment."""

import pytest
import torch

from mjrl.envs import show as show_
from mjrl.envs.show import REPLAY, Show, open_show
from mjrl.view.choice import Choice
from mjrl.view.controls import Panel


class Painter:
  """Takes every frame."""

  due, closed, failed = True, False, False

  def __init__(self):
    self.frames = []

  def show(self, frame):
    self.frames.append(frame)


@pytest.fixture
def shown():
  def shown(env, drawn=2):
    return Show(env, Panel(env.num_envs, None), painter := Painter(), drawn), painter.frames

  return shown


def test_a_frame_is_of_the_env_that_is_followed(tripod, make_env, actions, shown):
  # Guards: a plot of one env beside the picture of another; env 0 for good; numbers mixed up.
  env = make_env(tripod, num_envs=4)
  show, frames = shown(env)
  show.panel.followed = 3
  for action in actions(env, 3):
    env.step(action)
    show.step()
  frame, s = frames[-1], env.state
  assert frame.envs == (3, 0) and frame.time_s == pytest.approx(3 * env.dt_s)
  assert torch.equal(torch.tensor(frame.qpos), env.backend.read("qpos")[[3, 0]])
  for mine, theirs in (
    (frame.command, s.command),
    (frame.velocity, s.velocity),
    (frame.foot_contact, s.foot_contact.float()),
    (frame.torque_n_m, s.joint_torque_n_m),
  ):
    torch.testing.assert_close(torch.tensor(mine), theirs[3])
  said = dict(frame.lines)
  assert said["env"] == "3 of 4, 2 drawn"
  asked, got = float(s.command[3, 0]), float(s.velocity[3, 0])
  assert said["forward, m/s"] == f"asked {asked:+.2f}, got {got:+.2f}"


def test_reward_terms_add_up_to_the_reward(tripod, make_env, actions, shown):
  # Guards: terms plotted without their weights, or of the step before.
  env = make_env(tripod, num_envs=2)
  show, frames = shown(env)
  for action in actions(env, 5):
    step = env.step(action)
    show.step()
    assert frames[-1].rewards.sum() * env.dt_s == pytest.approx(float(step.reward[0]), rel=1e-4)
  assert len(frames[-1].rewards) == len(env.rewards.rows)


def test_looking_changes_nothing(tripod, make_env, actions, shown):
  # Guards: a training that comes out otherwise where somebody looks at it.
  ends = []
  for looks in (False, True):
    env = make_env(tripod, seed=3)
    show, _ = shown(env)
    for action in actions(env, 30):
      step = env.step(action)
      if looks:
        show.step()
    ends.append((step.reward, env.backend.read("qpos").clone(), env.rng.get_state()))
  assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_no_frame_is_made_that_is_not_due(tripod, make_env, shown, monkeypatch):
  # Guards: a copy from the GPU at every control step of a training.
  env = make_env(tripod, num_envs=2)
  show, frames = shown(env)
  monkeypatch.setattr(Painter, "due", False)
  show.step()
  assert not frames


def test_none_opens_nothing(tripod, make_env, monkeypatch):
  # Guards: a viewer that was switched off.
  monkeypatch.setattr(show_, "Show", pytest.fail)
  assert open_show(make_env(tripod, num_envs=2), Choice(), REPLAY) is None
