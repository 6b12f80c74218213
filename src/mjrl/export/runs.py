"""The task in the env of replays, without anything random: what an export is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi

import numpy as np
import torch
from numpy.typing import NDArray

from mjrl.envs.env import Env
from mjrl.envs.policy import Policy, advance, begin
from mjrl.envs.scene import compile_scene
from mjrl.envs.scenes import DEFAULT
from mjrl.envs.task import Task, at_reset, noiseless
from mjrl.envs.terms import events
from mjrl.export.player import Measured
from mjrl.sim.native import NativeBackend

_ENDLESS_S = 1e7
_LIFT_M = 0.01
"""Height above HOME at which the compared runs start, the least of those in training."""

Command = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Frame:
  """One control step of one env, before and after the policy acted.

  state         mjSTATE_INTEGRATION vector
  forces        of the step that led there, by the names of `mjrl.export.player.Measured`
  command       (3,);  clock_step on the gait clock
  observation, action  of the policy;  targets_rad (J,)
  velocity      (3,) forward m/s, left m/s, yaw rad/s, after the step;  fallen then: over 60 degrees
  """

  state: NDArray[np.float64]
  forces: Measured
  command: NDArray[np.float64]
  clock_step: int
  observation: NDArray[np.float32]
  action: NDArray[np.float32]
  targets_rad: NDArray[np.float64]
  velocity: NDArray[np.float64]
  fallen: bool


def quiet(task: Task) -> Task:
  """The task without noise, randomisation, pushes, ends, ladder; from HOME on flat ground."""
  # At any heading, so that axes of the world are not those of the base.
  start = at_reset(events.start_at_home, spread_m=0.0, lift_m=(_LIFT_M, _LIFT_M), yaw_rad=pi)
  return replace(
    task,
    scene=DEFAULT,
    events={"start": start},
    observations={name: noiseless(group) for name, group in task.observations.items()},
    terminations={},
    episode_s=_ENDLESS_S,
    curriculum=None,
    ladders={},
    terrain=None,
  )


def open_env(task: Task, history: int | None) -> Env:
  """One env of a quiet task on native:cpu."""
  return Env(task, NativeBackend(compile_scene(task), 1, 1), seed=0, history=history)


def drive(env: Env, policy: Policy, commands: Sequence[Command]) -> list[Frame]:
  """Run a policy from HOME, with a command for each control step."""
  env.commands.fix(torch.tensor([commands[0]]))
  observations = begin(env, policy)
  ctrl = env.backend.read("ctrl")
  frames = []
  for k in range(len(commands)):
    s, clock_step = env.state, int(env.clock_steps[0])
    state = env.backend.save()["state"][0].numpy().copy()
    forces = {
      "joint_torque_n_m": s.joint_torque_n_m,
      "foot_contacts": s.foot_contacts,
      "foot_force_w": s.foot_force_w,
    }
    forces = {name: value[0].numpy().astype(np.float64) for name, value in forces.items()}
    command, seen = s.command[0].numpy().astype(np.float64), observations["policy"][0].numpy()
    # What is asked next is seen in the observation that ends this step.
    env.commands.fix(torch.tensor([commands[min(k + 1, len(commands) - 1)]]))
    step = advance(env, policy, observations)
    frames.append(
      Frame(
        state=state,
        forces=forces,
        command=command,
        clock_step=clock_step,
        observation=seen.copy(),
        action=step.state.action[0].numpy().copy(),
        targets_rad=ctrl[0].numpy().astype(np.float64),
        velocity=step.state.velocity[0].numpy().astype(np.float64),
        fallen=bool(step.state.up_b[0, 2] < 0.5),
      )
    )
    observations = step.observations
  return frames
