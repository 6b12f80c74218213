"""Every check on a layout, made to fail."""

import re
from dataclasses import replace
from types import SimpleNamespace

import mujoco
import pytest

from mjrl import tasks
from mjrl.export.actor import Actor
from mjrl.export.checks import (
  check_joints,
  check_pose,
  check_scene,
  check_servos,
  check_widths,
)
from mjrl.export.runs import quiet
from mjrl.export.scene_files import scene_files


def term(layout, name):
  return next(t for t in layout["observation"]["terms"] if t["name"] == name)


def swap(names, a=0, b=1):
  names[a], names[b] = names[b], names[a]


def test_what_was_exported_passes(tripod):
  # Guards: checks that fail on anything, so that those below mean nothing.
  check_widths(tripod.layout, Actor(tripod.network))
  for check in (check_joints, check_servos, check_pose):
    check(tripod.layout, tripod.model)


@pytest.mark.parametrize(
  ("breaks", "message"),
  [
    (lambda t: term(t, "joint_vel").update(offset=25), "'joint_vel' is at 25, not at 26"),
    (lambda t: term(t, "command").update(width=4), "'command' is 4 wide, and has 1 frames of 3"),
    (lambda t: term(t, "actions").update(frames=2), "'actions' is 20 wide, and has 2 frames of 20"),
    (lambda t: t["observation"]["terms"].pop(), "terms are 89 wide together"),
    (lambda t: t["observation"].update(width=92), "the observation 92, and the network takes 91"),
    (lambda t: t["action"].update(width=22), "gives 20 numbers, the action has 22, for 20 joints"),
  ],
)
def test_a_wrong_width_is_found(tripod, breaks, message):
  # Guards: terms that end up in one another's place.
  layout = tripod.layout
  breaks(layout)
  with pytest.raises(ValueError, match=message):
    check_widths(layout, Actor(tripod.network))


@pytest.mark.parametrize(
  ("breaks", "message"),
  [
    (lambda t: swap(t["joints"]["wire"]), "joint order 'wire' is ['LF_J1', 'LF_J0'"),
    (lambda t: swap(t["joints"]["model"]), "joint order 'model' is ['LF_J1', 'LF_J0'"),
    (lambda t: swap(t["joints"]["action"]), "joint order 'action' is ['LF_J1', 'LF_J0'"),
    (lambda t: swap(t["joints"]["observation"], 4, 9), "joint order 'observation' is"),
    (lambda t: t["joints"]["held_at_home"].pop(), "['LF_J4'] are held at HOME; not driven are"),
    (lambda t: swap(term(t, "joint_pos")["parts"]), "'joint_pos' has the joints ['LF_J1'"),
  ],
)
def test_a_wrong_joint_order_is_found(tripod, breaks, message):
  # Guards: one joint's target sent to another.
  layout = tripod.layout
  breaks(layout)
  with pytest.raises(ValueError, match=re.escape(message)):
    check_joints(layout, tripod.model)


@pytest.mark.parametrize(
  ("name", "value", "message"),
  [
    ("kp_n_m_rad", 1.0, "kp_n_m_rad is 1; the model's servos have"),
    ("kd_n_m_s_rad", 0.0, "kd_n_m_s_rad is -0; the model's servos have"),
    ("effort_limit_n_m", 2.0, "effort_limit_n_m is 2; the model's servos have"),
    ("physics_dt_s", 0.001, "physics_dt_s is 0.001; the model's step is 0.005 s"),
  ],
)
def test_a_wrong_servo_is_found(tripod, name, value, message):
  # Guards: gains that are filled in as a placeholder, or that the model does not have.
  layout = tripod.layout
  layout["control"][name] = value
  with pytest.raises(ValueError, match=message):
    check_servos(layout, tripod.model)


@pytest.mark.parametrize(
  ("breaks", "message"),
  [
    (
      lambda t: t["home_rad"].update(LM_J2=-1.8),
      "HOME of LM_J2 is -1.8 rad; the model's is -1.8271",
    ),
    (lambda t: t["home_rad"].pop("RR_J2"), "home_rad is of "),
    (lambda t: t["joint_limits_rad"].pop("RR_J2"), "joint_limits_rad is of "),
    (lambda t: t["joint_limits_rad"].update(LF_J0=[-2.7, 0.7]), "limits of LF_J0 are -2.7 to 0.7"),
    (lambda t: t.update(home_height_m=0.2), "height at HOME is 0.2 m; the model's is 0.10647"),
  ],
)
def test_a_wrong_pose_is_found(tripod, breaks, message):
  # Guards: a robot that is set to a pose from which the policy was never trained.
  layout = tripod.layout
  breaks(layout)
  with pytest.raises(ValueError, match=message):
    check_pose(layout, tripod.model)


def test_a_home_beyond_its_limits_is_found(tripod):
  # Guards: a robot whose servos are asked for what they cannot reach.
  model = mujoco.MjModel.from_xml_path(str(tripod.folder / "scene.xml"))
  model.joint("LF_J0").range[:] = (-0.5, 0.7)
  layout = tripod.layout
  layout["joint_limits_rad"]["LF_J0"] = [-0.5, 0.7]
  with pytest.raises(ValueError, match=r"LF_J0 are -0\.5 to 0\.7 rad, .* HOME, -0\.5507, must"):
    check_pose(layout, model)


@pytest.mark.parametrize(
  ("old", "new", "message"),
  [
    ('timestep="0.005"', 'timestep="0.004"', "option timestep is 0.004, not 0.005"),
    ('condim="1"', 'condim="3"', "geom_condim is"),
    ('file="robot.xml"', 'file="robt.xml"', "does not compile"),
  ],
)
def test_another_scene_is_found(tripod, tmp_path, old, new, message):
  # Guards: a player that walks on other ground, or at another rate, than training.
  for name in ("scene.xml", "robot.xml"):
    (tmp_path / name).write_bytes((tripod.folder / name).read_bytes())
  path = tmp_path / "scene.xml"
  check_scene(path, tripod.model)
  path.write_text(path.read_text().replace(old, new))
  with pytest.raises(ValueError, match=message):
    check_scene(path, tripod.model)


def robot_of(folder, mesh):
  """A robot whose MJCF is in two files, and has a mesh."""
  (folder / "parts" / "meshes").mkdir(parents=True)
  corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
  (folder / "parts" / "meshes" / "box.obj").write_text(
    corners + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
  )
  (folder / "legs.xml").write_text(
    f'<mujoco><asset><mesh name="box" file="{mesh}"/></asset></mujoco>'
  )
  path = folder / "some robot.xml"
  path.write_text(
    '<mujoco><compiler meshdir="parts"/><include file="legs.xml"/><worldbody><body><freejoint/>'
    '<geom type="mesh" mesh="box"/></body></worldbody></mujoco>'
  )
  return SimpleNamespace(robot=SimpleNamespace(mjcf=path, name="box"), physics_dt_s=1 / 300)


def test_the_files_of_a_robot_go_with_it(tmp_path):
  # Guards: an export that can be opened only where the robot's meshes are.
  files = scene_files(robot_of(tmp_path / "in", "meshes/box.obj"))
  assert sorted(files) == ["legs.xml", "parts/meshes/box.obj", "robot.xml", "scene.xml"]
  for name, data in files.items():
    (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "out" / name).write_bytes(data)
  model = mujoco.MjModel.from_xml_path(str(tmp_path / "out" / "scene.xml"))
  assert model.nmesh == 1 and model.opt.timestep == 1 / 300 and model.geom("ground").condim == 1


def test_a_robot_whose_files_lie_elsewhere_is_refused(tmp_path):
  # Guards: files written outside of the export's folder.
  task = robot_of(tmp_path / "in" / "robot", "../../box.obj")
  (tmp_path / "in" / "robot" / "parts" / "meshes" / "box.obj").rename(tmp_path / "in" / "box.obj")
  with pytest.raises(ValueError, match="must lie in its folder"):
    scene_files(task)


def test_an_export_stands_on_flat_ground():
  # Guards: a policy trained on ice whose export is refused: its scene.xml is of flat ground.
  assert quiet(replace(tasks.build("jumper.tripod"), scene="ice")).scene == "studio"
