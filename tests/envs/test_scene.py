"""The scene: the robot on its ground."""

from dataclasses import replace

import mujoco
import pytest

from mjrl.envs.scene import compile_scene
from mjrl.envs.task import at_startup
from mjrl.envs.terms import events


@pytest.fixture(scope="module")
def model(tripod):
  return compile_scene(tripod)


def test_friction_is_the_feet_s_own(model, tripod):
  # Guards: a ground whose friction hides that of the feet, and limbs that stick to it.
  ground = model.geom("ground")
  assert ground.condim[0] == 1
  feet = {f"{foot}_foot" for foot in tripod.robot.feet}
  for name in feet:
    foot = model.geom(name)
    assert foot.condim[0] == 3 and foot.priority[0] > ground.priority[0]
  for g in range(model.ngeom):
    geom = model.geom(g)
    if geom.contype[0] and geom.name not in feet:
      assert geom.condim[0] == 1 and geom.priority[0] <= ground.priority[0], geom.name


def test_the_task_sets_the_rate(tripod):
  # Guards: the MJCF's own time step under a task that says another.
  assert compile_scene(replace(tripod, physics_dt_s=0.002)).opt.timestep == 0.002
  assert compile_scene(tripod).opt.timestep == 0.005


def test_only_a_delay_row_costs_a_delay(model, tripod):
  # Guards: a delay compiled into every task, or one too short for the row that draws it.
  assert (model.actuator_delay == 0).all() and (model.actuator_history[:, 0] == 0).all()
  row = at_startup(events.actuator_delay, delay_s=(0.0, 0.013))
  late = compile_scene(replace(tripod, events={**tripod.events, "delay": row}))
  assert late.actuator_delay == pytest.approx([0.013] * 22)
  assert (late.actuator_history[:, 0] >= 0.013 / 0.005).all()


@pytest.mark.parametrize("what", ["joint", "actuator"])
def test_an_order_that_is_not_the_robot_s_is_refused(tripod, tmp_path, what):
  # Guards: actions that go to other joints than the policy means.
  text = tripod.robot.mjcf.read_text()
  first, second = (
    ('<joint name="LM_J0"', '<joint name="RM_J0"')
    if what == "joint"
    else [f'<position name="{leg}_J0" joint="{leg}_J0"/>' for leg in ("LM", "RM")]
  )
  text = text.replace(first, "?").replace(second, first).replace("?", second)
  path = tmp_path / "jumper.xml"
  path.write_text(text)
  assert mujoco.MjModel.from_xml_path(str(path)).nu == 22  # a good model, but for the order
  task = replace(tripod, robot=replace(tripod.robot, mjcf=path))
  with pytest.raises(ValueError, match="must both be, in this order"):
    compile_scene(task)
