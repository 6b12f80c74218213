"""Runs an exported policy in plain MuJoCo: python player.py --command 0.25 0 0 --seconds 10.

Needs mujoco, onnxruntime and numpy.  Read it to port the policy: `Controller` is what a robot runs
once per control step, `Simulation` stands in for the robot.  layout.json has every number that is
used here, reference.json has inputs and outputs to compare a port with.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import onnxruntime

Measured = dict[str, np.ndarray]
"""What a robot senses at one instant; J joints stand in wire order, axes are those of the base
(x forward, y left, z up), or of the world where the name ends in _w.

quat_wxyz         (4,) orientation of the base: turns base vectors into world vectors
ang_vel_b         (3,) angular velocity of the base, rad/s
joint_pos_rad     (J,)
joint_vel_rad_s   (J,)
joint_torque_n_m  (J,) of the servo on the joint, positive as the joint's angle

Not on every robot, and there only if the policy reads them (layout.json, not_measurable):
lin_vel_b         (3,) m/s
foot_height_m     (F,) of the lowest point over flat ground
foot_contacts     (F,) number of contacts with the ground
foot_force_w      (F, 3) N, of the foot on the ground
"""


class Output(NamedTuple):
  """What a control step gives: network input, network output, joint targets in wire order."""

  observation: np.ndarray
  action: np.ndarray
  targets_rad: np.ndarray


class Network:
  """actor.onnx, with its memory if it is recurrent.  The normaliser is inside."""

  def __init__(self, path: Path, layout: dict[str, Any]) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the network is small
    options.log_severity_level = 3
    self._session = onnxruntime.InferenceSession(
      str(path), options, providers=["CPUExecutionProvider"]
    )
    self._memory = layout["network"]["memory"]
    self.start()

  def start(self) -> None:
    """Forget."""
    self._state = {m["input"]: np.zeros(_at_one(m["shape"]), np.float32) for m in self._memory}

  def __call__(self, observation: np.ndarray) -> np.ndarray:
    """The action for an observation, both 1-d; remembers."""
    inputs = {"obs": observation[None].astype(np.float32), **self._state}
    names = ["action", *(m["output"] for m in self._memory)]
    action, *state = self._session.run(names, inputs)
    self._state = dict(zip(self._state, state, strict=True))
    return np.asarray(action)[0]


class Controller:
  """From what is measured and commanded to joint targets, once per control step."""

  def __init__(self, layout: dict[str, Any], network: Network) -> None:
    joints = layout["joints"]
    self.layout, self._network = layout, network
    self._home_rad = np.array([layout["home_rad"][j] for j in joints["wire"]])
    self._seen = [joints["wire"].index(j) for j in joints["observation"]]
    self._driven = [joints["wire"].index(j) for j in joints["action"]]
    self.start()

  def start(self, clock_step: int = 0) -> None:
    """Begin: nothing remembered, nothing done yet, the gait clock at any step of its cycle."""
    self._network.start()
    self._clock_step = clock_step
    self._action = np.zeros(len(self._driven))
    self._air_steps = np.zeros(len(self.layout["feet"]))
    self._frames: dict[str, list[np.ndarray]] = {}  # of each term, from the oldest to the newest

  def step(self, measured: Measured, command: np.ndarray) -> Output:
    """One control step.

    Args:
      measured: see `Measured`.
      command: (3,) m/s forward, m/s left, rad/s counter-clockwise.
    """
    observation = self._observe(measured, command)
    action = self._network(observation)
    # A joint that the policy does not drive is held at HOME.  Neither actions nor targets are
    # clipped: the servo's torque limit, and the joint's stop, are what bounds them.
    targets_rad = self._home_rad.copy()
    targets_rad[self._driven] += self.layout["action"]["scale_rad"] * action
    self._action = action
    if self.layout["gait"]:  # the clock runs on while the robot stands
      self._clock_step = (self._clock_step + 1) % self.layout["gait"]["cycle_steps"]
    return Output(observation, action, targets_rad)

  def _observe(self, measured: Measured, command: np.ndarray) -> np.ndarray:
    """The terms one after the other; of each its frames, the oldest first."""
    now = self._quantities(measured, command)
    shown = []
    for term in self.layout["observation"]["terms"]:
      value = now[term["quantity"]]
      if term["clip"] is not None:
        value = np.clip(value, *term["clip"])
      value = value * term["scale"]
      kept = term["frames"] + term["delay_steps"]
      # The first frame fills the whole history.
      frames = self._frames.setdefault(term["name"], [value] * kept)
      frames.append(value)
      del frames[:-kept]
      shown += frames[: term["frames"]]  # a delayed term leaves its newest frames out
    return np.concatenate(shown).astype(np.float32)

  def _quantities(self, m: Measured, command: np.ndarray) -> dict[str, np.ndarray]:
    """Every quantity that a term can be made of and that was measured."""
    w, x, y, z = m["quat_wxyz"]
    seen = self._seen
    offset_rad = (m["joint_pos_rad"] - self._home_rad)[seen]
    now = {
      "ang_vel_b": m["ang_vel_b"],
      # World's down in the base frame: (0, 0, -1) when level, (-1, 0, 0) with the nose straight up.
      "gravity_b": np.array([2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1]),
      "joint_offset": offset_rad,
      "encoder_offset": offset_rad,
      "joint_vel": m["joint_vel_rad_s"][seen],
      "joint_torque": m["joint_torque_n_m"][seen],
      "action": self._action,
      "command": command,
    }
    gait = self.layout["gait"]
    if gait:
      angle = 2 * np.pi * self._clock_step / gait["cycle_steps"]
      moving = np.linalg.norm(command) > self.layout["command"]["standing_norm"]
      now["gait_phase"] = np.array([np.sin(angle), np.cos(angle)]) * moving
    if "lin_vel_b" in m:
      now["lin_vel_b"] = m["lin_vel_b"]
    if "foot_height_m" in m:
      now["foot_height"] = m["foot_height_m"]
    if "foot_contacts" in m:
      down = m["foot_contacts"] > 0
      self._air_steps = np.where(down, 0, self._air_steps + 1)
      now["foot_contact"] = down.astype(float)
      now["foot_air_time"] = self._air_steps * self.layout["control"]["control_dt_s"]
    if "foot_force_w" in m:
      force = m["foot_force_w"].ravel()
      now["foot_force_log"] = np.sign(force) * np.log1p(np.abs(force))
    return now


class Simulation:
  """scene.xml in MuJoCo, which reads and acts as a robot would."""

  def __init__(self, path: Path, layout: dict[str, Any]) -> None:
    self.model = mujoco.MjModel.from_xml_path(str(path))
    self.data = mujoco.MjData(self.model)
    self.layout = layout
    wire, model = layout["joints"]["wire"], self.model
    self._qpos = [model.joint(j).qposadr[0] for j in wire]
    self._qvel = [model.joint(j).dofadr[0] for j in wire]
    self._ctrl = [model.actuator(j).id for j in wire]
    self._imu = model.sensor("imu_ang_vel").objid[0]
    self._home_rad = np.array([layout["home_rad"][j] for j in wire])
    self.start()

  def start(self) -> None:
    """Stand at HOME, with the servos holding it."""
    mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
    self.data.ctrl[self._ctrl] = self._home_rad
    mujoco.mj_forward(self.model, self.data)
    self._forces = self._read_forces()

  def load(self, state: np.ndarray, forces: Measured) -> None:
    """Go on from an mjSTATE_INTEGRATION vector, and the forces of the step that led there."""
    mujoco.mj_setState(self.model, self.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_step1(self.model, self.data)
    self._forces = forces

  def step(self, targets_rad: np.ndarray) -> None:
    """One control step: the servos hold the targets for `decimation` physics steps."""
    self.data.ctrl[self._ctrl] = targets_rad
    for _ in range(self.layout["control"]["decimation"]):
      # The two halves of mj_step in reverse, so that positions, velocities and their sensors are
      # left at the new state.  Forces are those of the last physics step.
      mujoco.mj_step2(self.model, self.data)
      mujoco.mj_step1(self.model, self.data)
    self._forces = self._read_forces()

  def read(self) -> Measured:
    """What a robot would sense now."""
    data = self.data
    quat_wxyz = np.zeros(4)
    mujoco.mju_mat2Quat(quat_wxyz, data.site_xmat[self._imu])
    measured = {
      "quat_wxyz": quat_wxyz,
      "ang_vel_b": data.sensor("imu_ang_vel").data.copy(),
      "joint_pos_rad": data.qpos[self._qpos],
      "joint_vel_rad_s": data.qvel[self._qvel],
      "joint_torque_n_m": self._forces["joint_torque_n_m"],
    }
    if self.layout["not_measurable"]:  # known in simulation alone
      feet = self.layout["feet"]
      radius_m = [self.model.geom(f"{foot}_foot").size[0] for foot in feet]
      measured |= {
        "lin_vel_b": data.sensor("imu_lin_vel").data.copy(),
        "foot_height_m": np.array([data.sensor(f"{f}_pos").data[2] for f in feet]) - radius_m,
        **self._forces,
      }
    return measured

  def _read_forces(self) -> Measured:
    contacts = [self.data.sensor(f"{foot}_contact").data for foot in self.layout["feet"]]
    contact = np.array(contacts).reshape(-1, 4)
    return {
      "joint_torque_n_m": self.data.actuator_force[self._ctrl],
      "foot_contacts": contact[:, 0],
      "foot_force_w": contact[:, 1:],
    }

  @property
  def velocity(self) -> np.ndarray:
    """What a command asks for, (3,): m/s forward, m/s left, rad/s counter-clockwise."""
    forward, left, _ = self.data.sensor("imu_lin_vel").data
    return np.array([forward, left, self.data.sensor("imu_ang_vel").data[2]])

  @property
  def fallen(self) -> bool:
    """Tilted by more than 60 degrees."""
    return bool(self.data.site_xmat[self._imu][8] < 0.5)


def _at_one(shape: list[Any]) -> list[int]:
  return [1 if size == "batch" else size for size in shape]


def main() -> None:
  """Walk by one command, and say how well."""
  about, usage = (__doc__ or "").split("\n")[0].split(": ")
  parser = argparse.ArgumentParser(description=f"{about}, such as: {usage}")
  parser.add_argument(
    "--command",
    type=float,
    nargs=3,
    default=[0.25, 0.0, 0.0],
    metavar=("VX", "VY", "WZ"),
    help="m/s forward, m/s left, rad/s counter-clockwise (default: 0.25 0 0)",
  )
  parser.add_argument("--seconds", type=float, default=10.0, help="simulated time (default: 10)")
  parser.add_argument("--view", action="store_true", help="open a window, in real time")
  args = parser.parse_args()

  folder = Path(__file__).parent
  layout = json.loads((folder / "layout.json").read_text(encoding="utf-8"))
  controller = Controller(layout, Network(folder / "actor.onnx", layout))
  robot = Simulation(folder / "scene.xml", layout)
  command, dt_s = np.array(args.command), layout["control"]["control_dt_s"]
  viewer = None
  if args.view:
    import mujoco.viewer

    viewer = mujoco.viewer.launch_passive(robot.model, robot.data)
  velocities = []
  for k in range(max(round(args.seconds / dt_s), 1)):
    start_s = time.perf_counter()
    robot.step(controller.step(robot.read(), command).targets_rad)
    velocities.append(robot.velocity)
    if robot.fallen:
      print(f"fell after {(k + 1) * dt_s:.2f} s")
      break
    if viewer:
      if not viewer.is_running():
        break
      viewer.sync()
      time.sleep(max(0.0, start_s + dt_s - time.perf_counter()))
  if viewer:
    viewer.close()
  mean = np.mean(velocities, axis=0)
  print("            m/s forward    m/s left   rad/s counter-clockwise")
  print("commanded  {:+12.3f} {:+12.3f} {:+12.3f}".format(*command))
  print("achieved   {:+12.3f} {:+12.3f} {:+12.3f}".format(*mean), end="")
  print(f"   mean over {len(velocities) * dt_s:.2f} s")


if __name__ == "__main__":
  main()
