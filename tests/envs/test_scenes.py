"""The scenes of the list: what they change, and what they leave alone."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from mjrl.cli.listing import scene_table
from mjrl.envs.scene import compile_scene, in_scene
from mjrl.envs.scenery import bumps
from mjrl.envs.scenes import SCENES, is_package, physics_of

LOOKS = [name for name, scene in SCENES.items() if not scene.physics]


def simulated(model):
  """Every number of a model that a simulation could read, by name."""
  looks = ("tex_", "mat_", "light_", "names", "text_")
  return {
    name: getattr(model, name)
    for name in dir(model)
    if not name.startswith(("_", *looks)) and isinstance(getattr(model, name), np.ndarray)
  }


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_changes_no_number(tripod, name):
  # Guards: a background that makes another policy.
  first = simulated(compile_scene(tripod))
  second = simulated(compile_scene(replace(tripod, scene=name)))
  assert len(first) > 100
  for field, value in first.items():
    assert np.array_equal(value, second[field]), field


@pytest.mark.parametrize(("name", "friction"), [("ice", 0.15), ("rubber", 2.0)])
def test_a_slippery_scene_is_slippery_in_every_env(calm, make_env, name, friction):
  # Guards: the friction that the task draws, over that of the scene; and one that is said, and not
  # there.
  env = make_env(replace(calm, scene=name), num_envs=3)
  geoms = [env.backend.model.geom(f"{foot}_foot").id for foot in env.robot.feet]
  assert env.backend.get_model("geom_friction")[:, geoms, 0] == pytest.approx(friction)
  assert env.task.events["foot_friction"].when == "never"
  assert f"{friction:g}" in physics_of(name, "jumper")


def test_a_push_slides_further_on_ice(calm, make_env):
  # Guards: a friction that the engine does not use.
  slid = {}
  for name in ("ice", "rubber"):
    env = make_env(replace(calm, scene=name), num_envs=2)
    for _ in range(30):
      env.step(torch.zeros(2, 20))
    before, qvel = env.state.base_pos_w.clone(), env.backend.read("qvel").clone()
    qvel[:, 0] += 0.6
    env.backend.set_state(torch.ones(2, dtype=torch.bool), qvel=qvel)
    for _ in range(25):
      env.step(torch.zeros(2, 20))
    slid[name] = float((env.state.base_pos_w - before)[:, 0].mean())
  assert slid["ice"] > 2 * slid["rubber"] > 0


def test_rough_ground_is_uneven_below_the_feet(calm, make_env):
  # Guards: bumps that are drawn, and stepped through.
  spread = {}
  for name in ("studio", "rough"):
    env = make_env(replace(calm, scene=name), num_envs=8)
    for _ in range(50):
      step = env.step(torch.zeros(8, 20))
    assert step.state.foot_contact.float().mean() > 0.8
    assert step.state.foot_height_m.abs().max() < 0.012
    spread[name] = step.state.foot_height_m.std(0).mean()  # of each foot, over the envs
  assert spread["rough"] > 1.4 * spread["studio"]
  model = compile_scene(replace(calm, scene="rough"))
  assert model.geom("ground").type[0] == mujoco.mjtGeom.mjGEOM_HFIELD
  assert model.geom("far_ground").type[0] == mujoco.mjtGeom.mjGEOM_PLANE


def test_bumps_are_the_same_always():
  # Guards: two replays on two grounds.
  heights = bumps(40)
  assert np.array_equal(heights, bumps(40)) and (heights.min(), heights.max()) == (0, 1)
  assert heights.std() > 0.1


def test_what_a_scene_rules_out_is_not_said_to_differ(tripod):
  # Guards: a report of a friction that differs from env to env, and does not.
  assert in_scene(tripod) is tripod
  events = in_scene(replace(tripod, scene="ice")).events
  assert events["foot_friction"].when == "never" and events["base_com"].when == "startup"


def test_a_scene_that_is_none_is_refused(tripod, tmp_path, monkeypatch):
  # Guards: a misspelt scene that is looked for among the files, and a folder that hides a scene.
  with pytest.raises(ValueError, match="did you mean 'rubber'"):
    replace(tripod, scene="ruber")
  monkeypatch.chdir(tmp_path)
  (tmp_path / "ice").mkdir()
  assert not is_package("ice") and is_package("./ice") and is_package("room.map")


def test_the_list_says_what_changes(tripod):
  # Guards: a scene whose physics is known to its table alone.
  for line in scene_table().splitlines()[1:]:
    assert line.endswith("as in training") == (line.split()[0] in LOOKS)
