"""A replay that is driven by hand."""

from dataclasses import replace

import pytest
import torch

from mjrl import tasks
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Event
from mjrl.measure import steering, watch
from mjrl.measure.pace import Pace
from mjrl.measure.steering import Steering
from mjrl.sim.native import NativeBackend
from mjrl.view.controls import CONTROLS, Panel

LIMITS = ((-0.4, 0.5), (-0.3, 0.3), (-0.6, 0.6))


@pytest.fixture(scope="module")
def env():
  task = tasks.build("jumper.tripod")
  task = replace(task, events={k: e for k, e in task.events.items() if e.when != "interval"})
  return Env(task, NativeBackend(compile_scene(task), 2, 1), 0)


@pytest.fixture
def drive(env, monkeypatch):
  """Steering without a gamepad, and its panel; pushes are noted in `pushed`."""
  monkeypatch.setattr(steering, "open_gamepad", lambda _: None)
  env.commands.release()

  def drive(*presses, command=None, speed=1.0, pushes=()):
    panel = Panel(env.num_envs, LIMITS)
    wheel = Steering(env, panel, Pace(speed, env.dt_s), pushes, command)
    for press in presses:
      panel.press(press) if isinstance(press, str) else panel.ask(press)
    wheel.obey()
    return wheel

  return drive


def said(wheel):
  return dict(wheel.lines)


@pytest.mark.parametrize(
  ("presses", "command"),
  [
    (["forward"], (0.1, 0, 0)),
    (["backward", "backward"], (-0.2, 0, 0)),
    (["go left"], (0, 0.06, 0)),
    (["go right"], (0, -0.06, 0)),
    (["turn left"], (0, 0, 0.12)),
    (["turn right"], (0, 0, -0.12)),
    (["forward", "turn left", "stand"], (0, 0, 0)),
    ([(0.2, -0.1, 0.5)], (0.2, -0.1, 0.5)),
  ],
)
def test_every_env_is_asked(env, drive, presses, command):
  # Guards: a key that turns the other way round, and a command that reaches env 0 alone.
  drive(*presses)
  torch.testing.assert_close(env.commands.value, torch.tensor([command, command]).float())
  env.step(torch.zeros(2, len(env.robot.gait_joints)))
  torch.testing.assert_close(env.commands.value, torch.tensor([command, command]).float())


def test_no_command_leaves_what_was_trained(env, drive):
  # Guards: a policy judged on what it never saw, and a key that seems dead at the end of the range.
  wheel = drive(*["forward"] * 6, "go left")
  assert env.commands.value[0].tolist() == pytest.approx([0.5, 0.06, 0])
  assert "limit" not in said(wheel)
  wheel = drive((0.0, -9.0, 0.0))
  assert env.commands.value[0].tolist() == pytest.approx([0, -0.3, 0])
  assert said(wheel)["limit"] == "left, m/s: trained from -0.3 to 0.3, no further"


def test_drawing_takes_over_again(env, drive):
  # Guards: a robot that keeps a hand's command for good.
  drive((0.11, 0.0, 0.0))
  wheel = drive("drawn")
  assert said(wheel)["command"].startswith("drawn")
  assert not (env.commands.value[:, 0] == 0.11).any()


def test_a_press_adds_to_the_command_that_is_held(env, drive):
  # Guards: --command 0.3 0 0 forgotten at the first key.
  drive("forward", command=(0.3, 0.0, 0.0))
  assert env.commands.value[0].tolist() == pytest.approx([0.4, 0, 0])


def test_a_push_is_that_of_training(env, drive):
  # Guards: a push of another size, of one robot, or of none without a word.
  pushed = []

  def shove(world, mask, *, m_s):
    pushed.append((mask.tolist(), m_s))

  event = Event(when="interval", fn=shove, params={"m_s": 0.7}, every_s=(1.0, 2.0))
  drive("push", pushes=(event,))
  assert pushed == [([True, True], 0.7)]
  assert "none" in said(drive("push"))["push"]


def test_pause_step_and_go_on(drive, monkeypatch):
  # Guards: a step that is ten, a pause that cannot be left.
  monkeypatch.setattr(Pace, "rest", lambda _: None)
  wheel = drive()
  assert not wheel.waits()
  wheel = drive("pause")
  assert wheel.waits() and wheel.waits() and "paused" in said(wheel)["speed"]
  wheel._panel.press("step")
  wheel.obey()
  assert [wheel.waits() for _ in range(3)] == [False, True, True]
  wheel._panel.press("pause")
  wheel.obey()
  assert not wheel.waits()


def test_speed_is_halved_and_doubled(drive):
  # Guards: slow motion that is said and not done.
  wheel = drive("slower", "slower")
  assert wheel._pace.speed == 0.25 and said(wheel)["speed"] == "0.25x real time"
  assert drive("faster")._pace.speed == 2
  assert drive("faster", speed=0.0)._pace.speed == 0  # as fast as possible
  assert drive("slower", speed=0.0)._pace.speed == 1


def test_every_control_does_something(env, drive):
  # Guards: a row of the table that is shown and does nothing.
  def state(wheel):
    of_wheel = (wheel.paused, wheel.restart, wheel._pace.speed, tuple(wheel._notes))
    return *of_wheel, wheel._panel.followed, wheel._command

  for row in CONTROLS:
    before = drive(command=(0.1, 0.1, 0.1))
    assert state(drive(row.name, command=(0.1, 0.1, 0.1))) != state(before), row.name


def test_a_gamepad_that_is_unplugged_leaves_the_robot_standing(env, drive):
  # Guards: a robot that runs on with nobody at the sticks; a replay that ends in a traceback.
  class Pad:
    closed = False

    def listen(self):
      raise OSError(19, "No such device")

    def close(self):
      self.closed = True

  wheel, pad = drive((0.3, 0.0, 0.0)), Pad()
  wheel._gamepad = pad
  wheel.obey()
  wheel.obey()
  assert pad.closed and not env.commands.value.any() and said(wheel)["gamepad"] == "unplugged"


class Show:
  """A viewer whose user presses keys at given control steps."""

  def __init__(self, env, presses):
    self.panel, self.presses = Panel(env.num_envs, LIMITS), presses
    self.failed = False
    self.steps = self.drawn = 0
    self.env = env

  @property
  def closed(self):
    for press in self.presses.pop(self.steps, ()):
      self.panel.press(press)
    return self.drawn > 5

  def step(self, lines):
    self.steps += 1

  def draw(self, lines):
    self.drawn += 1


def watched(env, presses, monkeypatch, steps=None):
  monkeypatch.setattr(steering, "open_gamepad", lambda _: None)
  rests = iter(range(100))
  monkeypatch.setattr(Pace, "rest", lambda _: next(rests))  # a pause without end fails
  starts = []
  zero = torch.zeros(env.num_envs, len(env.robot.gait_joints))

  class Policy:
    def __call__(self, observations):
      return zero

    def reset(self, ended=None):
      if ended is None:
        starts.append(show.steps)

  show = Show(env, presses)
  replay = type("Replay", (), {"env": env, "policy": Policy(), "pushes": ()})()
  watch.watch(replay, None, None, steps, 0.0, show, None)
  return show, starts


def test_a_paused_replay_steps_no_more_and_is_still_drawn(env, monkeypatch):
  # Guards: a pause that simulates on, and one whose window is dead.
  show, _ = watched(env, {3: ["pause"]}, monkeypatch)
  assert show.steps == 3 and show.drawn > 5


def test_a_reset_starts_robots_and_policy_anew(env, monkeypatch):
  # Guards: a policy that remembers the episode before, and acts on its observations.
  _, starts = watched(env, {4: ["reset"]}, monkeypatch, steps=8)
  assert starts == [0, 4]


def test_a_viewer_that_fails_while_paused_lets_the_replay_go_on(env, monkeypatch):
  # Guards: a replay that waits for ever for a key that nobody can press any more.
  monkeypatch.setattr(Show, "draw", lambda self, lines: setattr(self, "failed", True))
  show, _ = watched(env, {3: ["pause"]}, monkeypatch, steps=8)
  assert show.steps == 8
