"""An environment in a viewer: its frames, made when one is due and not otherwise."""

from collections.abc import Sequence

import numpy as np
import torch

from mjrl.envs.env import Env
from mjrl.view.choice import Choice
from mjrl.view.controls import COMMAND, Panel, Range
from mjrl.view.frame import Array, Frame, Subject
from mjrl.view.open import open_viewer
from mjrl.view.painter import Budget, Painter

TRAINING = Budget(fps=30.0, share=0.05)
REPLAY = Budget(fps=60.0, share=0.5)  # every control step at 50 Hz, so that nothing stutters

Lines = Sequence[tuple[str, str]]


class Show:
  """Shows an Env; a frame costs the simulation one copy of some numbers of a few envs."""

  def __init__(self, env: Env, panel: Panel, painter: Painter, drawn: int) -> None:
    """Hand frames of so many envs to a painter, the one that the panel follows first."""
    self._env, self.panel, self._painter, self._drawn = env, panel, painter, drawn
    self._steps = 0

  @property
  def closed(self) -> bool:
    """Whether the user has closed it."""
    return self._painter.closed

  @property
  def failed(self) -> bool:
    """Whether it shows nothing any more, for a reason that was said."""
    return self._painter.failed

  def step(self, lines: Lines = ()) -> None:
    """Count a control step, and show its end if a frame is due."""
    self._steps += 1
    self.draw(lines)

  def draw(self, lines: Lines = ()) -> None:
    """Show the env as it is now, if a frame is due, with what there is to say."""
    if self._painter.due:
      self._painter.show(self._frame(lines))

  def close(self) -> None:
    """Close the viewer."""
    self._painter.close()

  def _frame(self, lines: Lines) -> Frame:
    env, first = self._env, self.panel.followed
    envs = [(first + k) % env.num_envs for k in range(self._drawn)]
    s = env.state
    # Side by side, so that a GPU is waited for once.
    parts = [
      env.backend.read("qpos")[envs].flatten(),
      env.commands.value[first],  # which is the next step's where it was changed since the last
      s.velocity[first],
      s.foot_contact_float[first],
      s.joint_torque_n_m[first],
      env.rewards.latest()[:, first],
    ]
    numbers = torch.cat(parts).cpu().numpy()
    ends = np.cumsum([len(part) for part in parts])[:-1]
    qpos, command, velocity, contact, torque, rewards = np.split(numbers, ends)
    return Frame(
      envs=tuple(envs),
      qpos=qpos.reshape(self._drawn, -1),
      time_s=self._steps * env.dt_s,
      command=command,
      velocity=velocity,
      foot_contact=contact,
      torque_n_m=torque,
      rewards=rewards,
      lines=(
        ("env", f"{first} of {env.num_envs}, {self._drawn} drawn"),
        *_speeds(command, velocity),
        *lines,
      ),
    )


def _speeds(command: Array, velocity: Array) -> Lines:
  parts = zip(COMMAND, command.tolist(), velocity.tolist(), strict=True)
  return [(name, f"asked {asked:+.2f}, got {got:+.2f}") for name, asked, got in parts]


def open_show(
  env: Env, choice: Choice, budget: Budget, limits: Sequence[Range] | None = None
) -> Show | None:
  """A viewer on an env, or None, with a line that says why where one was asked for.

  Args:
    env: to look at.
    choice: which viewer.
    budget: what drawing it may take.
    limits: ranges within which its command may be steered; None lets nothing be steered.
  """
  subject = Subject(
    model=env.backend.model,
    base_body=env.robot.base_body,
    home_height_m=env.robot.home_height_m,
    joints=env.robot.joints,
    feet=env.robot.feet,
    rewards=tuple(env.rewards.rows),
    num_envs=env.num_envs,
  )
  panel = Panel(env.num_envs, limits)
  painter = open_viewer(choice, subject, panel, budget)
  return Show(env, panel, painter, subject.drawn) if painter else None
