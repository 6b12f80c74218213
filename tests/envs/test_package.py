"""Scene packages: what is refused before anything is built, and what a robot finds in one."""

import io
import json
import re
import stat
import zipfile
from dataclasses import replace
from math import pi

import mujoco
import numpy as np
import pytest
import torch
from PIL import Image

from mjrl.envs import package_files
from mjrl.envs.package import read_package
from mjrl.envs.scene import compile_scene
from mjrl.envs.terms import events


@pytest.fixture
def refused(make_package):
  """The error that a package is refused with, without its path."""

  def error(*args, **changes):
    path = make_package(*args, **changes)
    with pytest.raises(ValueError) as caught:
      read_package(path, "jumper")
    before, _, after = str(caught.value).partition(f"{path}: ")
    assert before == "scene package ", caught.value
    return after

  return error


def room(make_package, text, new):
  """The room's MJCF with one text in place of another."""
  with zipfile.ZipFile(make_package("before.map")) as archive:
    old = archive.read("scene.xml").decode()
  assert text in old
  return {"scene.xml": old.replace(text, new, 1)}


@pytest.mark.parametrize("name", ["room.map", "room.scene.zip", "room"])
def test_a_package_is_read_from_archive_and_folder(make_package, name):
  # Guards: one of the three forms that is read otherwise than the others.
  found = read_package(make_package(name, extra=[("README.md", "hello")]), "jumper")
  assert (found.id, found.world, found.ground) == ("room", "scene.xml", "ground")
  assert found.spawn_rad == pytest.approx(pi / 2)  # its degrees
  assert [prop.name for prop in found.props] == ["ball"]


def test_the_second_version_s_robot_is_for_display(make_package):
  # Guards: a package refused for the robot in it, which we leave there.
  path = make_package(
    manifest={
      "schema": "kk-scene-package/2",
      "robot": {"skin": "bee", "platform": "hexa-v1"},
      "requiredCapabilities": ["rigid", "hexa-v1"],
    },
    files={"robot/robot.xml": "<mujoco><option timestep='1'/></mujoco>"},
  )
  assert read_package(path, "jumper").world == "scene.xml"


MANIFESTS = {
  "another schema": ({"schema": "kk-scene-package/3"}, "its schema is 'kk-scene-package/3'"),
  "no schema": ({"schema": None}, "its schema is None"),
  "another use": ({"use": "racing"}, "use is 'racing'"),
  "a capability": ({"requiredCapabilities": ["rigid", "fluid"]}, "it needs 'fluid'"),
  "capabilities that are no list": ({"requiredCapabilities": "rigid"}, "must be a list"),
  "no title": ({"title": None}, "title is None; it must be a text"),
  "no world": ({"world": None}, "world is None; it must be a mapping"),
  "a world that is not there": (
    {"world": {"file": "room.xml", "ground": {"geom": "ground"}}},
    "room.xml is named, and not there",
  ),
  "no ground": ({"world": {"file": "scene.xml"}}, "ground is None; it must be a mapping"),
  "no spawn": ({"spawn": None}, "spawn is None; it must be a mapping"),
  "two coordinates": ({"spawn": {"position": [1, 2]}}, "position is [1, 2]"),
  "a yaw in words": ({"spawn": {"position": [1, 2, 0], "yaw": "east"}}, "spawn.yaw is 'east'"),
  "a prop that is nowhere": (
    {"props": [{"file": "props/ball.xml"}]},
    "initPositionRelativeToRobot is None; it must be three numbers",
  ),
  "a prop that is no mapping": ({"props": ["ball"]}, "props: 'ball' must be a mapping"),
  "no files": ({"files": None}, "files is None; it must be a mapping"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_manifest_that_is_wrong_is_refused(refused, case):
  # Guards: a package that is half understood, and a traceback for a file of somebody else's.
  manifest, message = MANIFESTS[case]
  assert message in refused(manifest=manifest)


@pytest.mark.parametrize(
  ("raw", "message"),
  [
    ('{"id": "a", "id": "b"}', "the key 'id' stands twice"),
    ('{"spawn": {"yaw": NaN}}', "NaN is no number"),
    ('{"spawn": {"yaw": -Infinity}}', "-Infinity is no number"),
    ("[]", "must be a mapping"),
    ("{", "Expecting property name"),
  ],
)
def test_json_that_can_be_read_in_two_ways_is_refused(refused, raw, message):
  # Guards: a manifest that another reader understands otherwise.
  assert message in refused(raw=raw)


LISTS = {
  "a size": ({"listed": {"scene.xml": {"bytes": 3, "sha256": ""}}}, "is listed with 3"),
  "a file that is gone": (
    {"listed": {"assets/a.png": {}}},
    "assets/a.png is listed, and not there",
  ),
  "an unlisted file": ({"extra": [("run.py", "")]}, "run.py is there, and not listed"),
  "an entry that is none": ({"listed": {"scene.xml": 7}}, "must have bytes and sha256"),
}


@pytest.mark.parametrize("case", LISTS)
def test_files_are_those_that_are_listed(refused, case):
  # Guards: a package that was changed after it was made.
  changes, message = LISTS[case]
  assert message in refused(**changes)


def test_another_file_of_the_same_size_is_refused(refused, make_package):
  # Guards: hashes that are read and not compared.
  with zipfile.ZipFile(make_package("a.map")) as archive:
    entry = json.loads(archive.read("scene-package.json"))["files"]["props/ball.xml"]
  assert "SHA-256" in refused(listed={"props/ball.xml": entry | {"sha256": "0" * 64}})


NAMES = ["../up.txt", "/root.txt", "a/../b", "C:/a", "a\\b", "a//b", "./a"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_is_refused(refused, name):
  # Guards: a package that reads or writes elsewhere on the machine.
  assert "could lead out of it" in refused(extra=[(name, "x")])
  assert "could lead out of it" in refused(listed={name: {}})


def test_two_names_that_are_one_elsewhere_are_refused(refused):
  # Guards: a file that hides another on a system where case does not count.
  assert "where case does not count" in refused(extra=[("SCENE.xml", "x")])
  with pytest.warns(UserWarning, match="Duplicate name"):
    assert "where case does not count" in refused(extra=[("scene.xml", "x")])


def test_links_are_refused(refused, make_package):
  # Guards: a package that shows files of the machine it is read on.
  link = zipfile.ZipInfo("link")
  link.external_attr = (stat.S_IFLNK | 0o777) << 16
  assert "link is a symbolic link" in refused(extra=[(link, "/etc/passwd")])
  folder = make_package("folder")
  (folder / "assets/link").symlink_to("/etc/passwd")
  with pytest.raises(ValueError, match="assets/link is a symbolic link"):
    read_package(folder, "jumper")


def test_what_is_too_large_is_refused_with_the_numbers(refused, monkeypatch):
  # Guards: an archive of a few bytes that unpacks to fill the memory.
  for name, most in (("MAX_PACKED", 1000), ("MAX_UNPACKED", 1000), ("MAX_FILES", 3)):
    with monkeypatch.context() as patched:
      patched.setattr(package_files, name, most)
      assert re.search(r"at most \d+ (MiB )?are read", refused())
  monkeypatch.setattr(package_files, "MAX_FILES", 3)
  assert "more than 3 files" in refused("folder")


def test_an_archive_that_is_none_or_hidden_is_refused(make_package, tmp_path):
  # Guards: a traceback from zipfile.
  whole = make_package().read_bytes()
  for number, broken in enumerate((b"no archive", whole[:-200], whole[:300] + whole[301:])):
    path = tmp_path / f"{number}.map"
    path.write_bytes(broken)
    with pytest.raises(ValueError, match="no whole ZIP archive"):
      read_package(path, "jumper")
  path = tmp_path / "secret.map"
  flag = bytearray(whole)
  for head, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
    flag[flag.find(head) + offset] |= 1
  path.write_bytes(flag)
  with pytest.raises(ValueError, match="is encrypted"):
    read_package(path, "jumper")
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
    archive.writestr("scene-package.json", "{}")
  path.write_bytes(buffer.getvalue())
  with pytest.raises(ValueError, match="another method than deflate"):
    read_package(path, "jumper")
  with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
    read_package(tmp_path / "none.map", "jumper")
  (tmp_path / "empty").mkdir()
  with pytest.raises(ValueError, match=r"there is no scene-package.json at its root"):
    read_package(tmp_path / "empty", "jumper")


XML = {
  "option": ("<compiler", "<option timestep='1'/><compiler", "must have no <option>"),
  "include": ("<compiler", "<include file='assets/ramp.obj'/><compiler", "must have no <include>"),
  "plugin": ("<asset>", "<asset><plugin/>", "must have no <plugin>"),
  "extension": ("<compiler", "<extension/><compiler", "must have no <extension>"),
  "actuator": ("</mujoco>", "<actuator/></mujoco>", "must have no <actuator>"),
  "a doctype": ("<mujoco", "<!DOCTYPE mujoco><mujoco", "must have no DTD and no entities"),
  "an entity": (
    "<mujoco",
    '<!DOCTYPE m [<!ENTITY x "y">]><mujoco',
    "must have no DTD and no entities",
  ),
  "no XML": ("<mujoco", "<mujoco <", "scene.xml is no XML"),
  "a file of the machine": ('file="ramp.obj"', 'file="/etc/a.obj"', "not in the package"),
  "a file above": ('file="ramp.obj"', 'file="../../a.obj"', "not in the package"),
  "a file elsewhere": ('meshdir="assets"', 'meshdir="."', "not in the package"),
  "a face of a sky": (
    "<asset>",
    '<asset><texture name="s" type="skybox" fileup="a.png"/>',
    "names the file 'a.png'",
  ),
}


@pytest.mark.parametrize("case", XML)
def test_a_scene_that_reaches_too_far_is_refused(refused, make_package, case):
  # Guards: a package that changes the physics, or reads the machine's files.
  text, new, message = XML[case]
  assert message in refused(files=room(make_package, text, new))


def test_props_are_looked_at_too(refused):
  # Guards: the same, by a prop.
  xml = "<mujoco><option gravity='0 0 0'/><worldbody/></mujoco>"
  assert "props/ball.xml: a scene must have no <option>" in refused(files={"props/ball.xml": xml})


COMPILED = {
  "too few": ("<site", '<geom size=".1"/><site', "it has 5 geoms, and its manifest counts 4"),
  "another ground": ('name="ground"', 'name="floor"', "there is no such geom"),
  "a ground that is passed through": (
    'name="ground" type',
    'name="ground" contype="0" conaffinity="0" type',
    "would fall through the ground",
  ),
  "what MuJoCo refuses": ('type="plane"', 'type="flat"', "invalid keyword"),
}


@pytest.mark.parametrize("case", COMPILED)
def test_a_scene_that_is_not_what_it_says_is_refused(make_package, tripod, case):
  # Guards: a robot in a world that is not the one described, or that falls out of it.
  text, new, message = COMPILED[case]
  path = make_package(files=room(make_package, text, new))
  with pytest.raises(ValueError, match=message):
    compile_scene(replace(tripod, scene=str(path)))


def test_a_ground_in_a_body_is_refused(make_package, tripod):
  # Guards: feet that stand, and count as in the air: their sensors look at the world body.
  plane = '<geom name="ground" type="plane" size="5 5 .1" material="wood"/>'
  files = room(make_package, plane, f'<body name="b">{plane}</body>')
  with pytest.raises(ValueError, match="must be a geom of the worldbody"):
    manifest = {"world": {"file": "scene.xml", "ground": {"geom": "ground"}}}
    compile_scene(replace(tripod, scene=str(make_package(files=files, manifest=manifest))))


def test_the_robot_stays_what_it_is(make_package, tripod):
  # Guards: defaults and compiler settings of a scene that reach the robot, and a world that is not
  # turned and moved as one.
  alone = mujoco.MjModel.from_xml_path(str(tripod.robot.mjcf))
  model = compile_scene(replace(tripod, scene=str(make_package())))
  for joint in tripod.robot.joints:
    assert np.array_equal(alone.joint(joint).range, model.joint(joint).range)
    assert np.array_equal(alone.joint(joint).damping, model.joint(joint).damping)
  base = tripod.robot.base_body
  assert model.body(base).subtreemass[0] == alone.body(base).subtreemass[0]
  assert model.opt.timestep == 0.005 and model.nu == alone.nu
  assert model.joint("scn_hinge").range == pytest.approx([-pi / 2, pi / 2])
  assert model.geom("scn_crate").friction[0] == 0.3  # the scene's own default holds in it
  data = mujoco.MjData(model)
  mujoco.mj_forward(model, data)
  # Entered at (2, 2) with a quarter turn to the left: a crate one metre along x lies to the right.
  assert data.body("scn_crate").xpos == pytest.approx([0, -1, 0.06], abs=1e-9)
  assert data.body("scn_ball_ball").xpos == pytest.approx([0.5, 0.1, 0.05])


def test_a_change_to_the_robot_is_found(make_package, tripod, monkeypatch):
  # Guards: a comparison that compares nothing.
  import mjrl.envs.attach as attach

  real = attach._add

  def meddle(spec, *args):
    real(spec, *args)
    spec.joint("LM_J0").damping[0] = 1.0

  monkeypatch.setattr(attach, "_add", meddle)
  with pytest.raises(ValueError, match="would change the robot: dof_damping"):
    compile_scene(replace(tripod, scene=str(make_package())))


def test_a_site_may_say_where_to_start(make_package, tripod):
  # Guards: a start elsewhere than where the scene's author put it.
  path = make_package(manifest={"spawn": {"site": "start"}})
  model = compile_scene(replace(tripod, scene=str(path)))
  assert model.body("scn_crate").pos == pytest.approx([2, 3, 0.06])
  path = make_package("b.map", manifest={"spawn": {"site": "begin"}})
  with pytest.raises(ValueError, match=r"spawn.site is 'begin'; its sites are start"):
    compile_scene(replace(tripod, scene=str(path)))


def test_robots_start_where_the_package_says_and_meet_it(make_package, calm, make_env):
  # Guards: robots spread over walls, objects that start at the origin or follow the robot's reset,
  # and feet that do not count as down.
  env = make_env(replace(calm, scene=str(make_package())), num_envs=3)
  qpos = env.backend.read("qpos")
  assert qpos[:, :2].abs().max() < 1e-6 and (env.state.forward_w[:, 0] > 0.999).all()
  for _ in range(40):
    step = env.step(torch.zeros(3, 20))
  assert step.state.foot_contact.all() and not step.terminated.any()
  objects = qpos[:, 29:]
  start = torch.from_numpy(env.backend.model.qpos0[29:]).float()
  assert (objects - start).abs().max() < 0.02  # they rest where they were put
  env.reset()
  assert torch.equal(qpos[:, 29:], start.expand(3, -1))


def test_a_robot_s_mass_is_scaled_alone(make_package, calm, make_env):
  # Guards: objects that weigh more because the robot does, and count as its mass.
  env = make_env(replace(calm, scene=str(make_package())), num_envs=2)
  events.mass_scale(env.world, torch.ones(2, dtype=torch.bool), factor=(2.0, 2.0))
  model, mass = env.backend.model, env.backend.get_model("body_mass")
  assert mass[:, model.body("scn_crate").id] == pytest.approx(0.1)
  assert mass[:, model.body("base_link").id] == pytest.approx(2 * 0.886006)


def test_files_are_looked_for_where_the_engine_does(make_package, tripod):
  # Guards: a whole package that is refused, or compiles with another file than was checked.
  picture = io.BytesIO()
  Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(picture, "png")
  asset = (
    '<asset><hfield name="hills" file="hills.png" size="1 1 .1 .1"/>'
    '<texture name="wood" type="2d" file="assets/hills.png"/>'
  )
  path = make_package(
    files=room(make_package, "<asset>", asset) | {"assets/hills.png": picture.getvalue()},
    manifest={
      "requiredCapabilities": ["rigid", "hfield"],
      "world": {"file": "scene.xml", "ground": {"geom": "ground"}},
    },
  )
  model = compile_scene(replace(tripod, scene=str(path)))
  assert model.nhfield == 1 and model.hfield_nrow[0] == 8


def test_soft_bodies_are_said(make_package, tripod):
  # Guards: a replay that is ten times slower for no reason that anybody sees.
  soft = (
    '<flexcomp name="mat" type="grid" count="3 3 1" spacing=".05 .05 .05" pos="0 0 .3" dim="2" '
    'radius=".01" mass=".1"><edge equality="true"/></flexcomp><site'
  )
  xml = room(make_package, "<site", soft)["scene.xml"].replace('<joint damping="7"/>', "")
  path = make_package(
    files={"scene.xml": xml},
    manifest={
      "requiredCapabilities": ["flex"],
      "world": {"file": "scene.xml", "ground": {"geom": "ground"}},
    },
  )
  assert "soft bodies" in read_package(path, "jumper").physics
  assert compile_scene(replace(tripod, scene=str(path))).nflex == 1
