"""The model of jumper against its figures: each test names the silent failure that it guards."""

import math

import mujoco
import numpy as np
import pytest

from mjrl.robots.jumper import JUMPER

# Joint limits, rad. None of them may be read from the model under test.
RANGE_RAD = {
  "LF_J0": (-2.75, 0.70), "RF_J0": (-0.70, 2.75),
  "LF_J1": (-4.75, 1.40), "RF_J1": (-4.75, 1.40),
  "LF_J2": (-2.20, 1.65), "RF_J2": (-1.65, 2.20),
  "LF_J3": (-2.10, 1.65), "RF_J3": (-1.65, 2.10),
  "LF_J4": (-1.60, 0.10), "RF_J4": (-0.10, 1.60),
  "LM_J0": (-0.75, 1.00), "RM_J0": (-1.00, 0.75),
  "LM_J1": (-2.40, 1.50), "RM_J1": (-1.50, 2.40),
  "LM_J2": (-2.40, 1.80), "RM_J2": (-1.80, 2.40),
  "LR_J0": (-0.60, 2.75), "RR_J0": (-2.75, 0.60),
  "LR_J1": (-2.40, 1.60), "RR_J1": (-1.60, 2.40),
  "LR_J2": (-2.40, 1.80), "RR_J2": (-1.80, 2.40),
}  # fmt: skip

MASS_KG = {
  "base_link": 0.886006, "upper_shell_link": 0.102437, "display_module_link": 0.0228873,
  "tof_sensor_link": 0.00148539, "camera_link": 0.00201956,
  "LF_upper_arm": 0.0602596, "RF_upper_arm": 0.0604939,
}  # fmt: skip
ARM_MASS_KG = {
  "shoulder": 0.047816, "forearm": 0.0585194, "palm": 0.0941372, "palm_grip_insert": 0.01142411,
  "finger": 0.0588541, "finger_tip": 0.00203299, "finger_grip_insert": 0.01160129,
}  # fmt: skip
LEG_MASS_KG = {"hip": 0.0651491, "thigh": 0.0585194, "calf": 0.0776801, "foot_tip": 0.00637705}

FOOT_LINK = {
  "LF": "LF_palm_pad_b", "RF": "RF_palm_pad_b", "LM": "LM_foot_tip",
  "RM": "RM_foot_tip", "LR": "LR_foot_tip", "RR": "RR_foot_tip",
}  # fmt: skip

# Origins of the foot links in the base frame, mm.
FEET_AT_HOME_MM = {
  "LF": (199.5, 45.6, -103.9), "RF": (194.8, -41.1, -103.7), "LM": (-6.8, 205.0, -106.5),
  "RM": (-8.2, -204.7, -106.5), "LR": (-144.9, 165.5, -106.5), "RR": (-146.0, -164.4, -106.5),
}  # fmt: skip
FEET_AT_ZERO_MM = {
  "LF": (43.0, 306.8, -20.9), "LM": (-6.6, 293.6, -11.2), "LR": (-64.6, 282.6, -11.2),
}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
  """Jumper on a floor that would grip harder than the feet, were it asked."""
  spec = mujoco.MjSpec.from_file(str(JUMPER.mjcf))
  spec.worldbody.add_geom(
    name="floor",
    type=mujoco.mjtGeom.mjGEOM_PLANE,
    size=(0, 0, 0.1),
    condim=1,
    friction=(2, 0.01, 0.01),
  )
  return spec.compile()


@pytest.fixture
def data(model: mujoco.MjModel) -> mujoco.MjData:
  """At HOME, with every derived quantity up to date."""
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_forward(model, data)
  return data


def _feet_mm(data: mujoco.MjData) -> dict[str, np.ndarray]:
  base = data.body(JUMPER.base_body)
  to_base = base.xmat.reshape(3, 3).T
  return {f: 1e3 * to_base @ (data.body(b).xpos - base.xpos) for f, b in FOOT_LINK.items()}


def _owner(model: mujoco.MjModel, geom: int) -> str:
  """The limb that the geom belongs to, or "base" or "floor"."""
  body = model.body(model.geom_bodyid[geom]).name
  if body == "world":
    return "floor"
  return body[:2] if body[:2] in JUMPER.feet else "base"


def test_mass(model):
  """Guards a link that weighs nothing, or visual shapes that add weight: it would still stand."""
  assert model.body_mass.sum() == pytest.approx(2.54296, abs=1e-5)


def test_mass_of_each_link(model):
  """Guards two links exchanged, which leaves the total right and the limbs' swing wrong."""
  arm_links = {f"{limb}_{k}": v for limb in ("LF", "RF") for k, v in ARM_MASS_KG.items()}
  leg_links = {f"{limb}_{k}": v for limb in JUMPER.feet[2:] for k, v in LEG_MASS_KG.items()}
  stated = MASS_KG | arm_links | leg_links
  pads = {f"{limb}_palm_pad_{side}": 0.001925 for limb in ("LF", "RF") for side in "fb"}
  assert {model.body(i).name for i in range(1, model.nbody)} == stated.keys() | pads.keys()
  for body, mass_kg in stated.items():
    assert model.body(body).mass[0] == pytest.approx(mass_kg, rel=1e-6), body
  for body, mass_kg in pads.items():
    assert model.body(body).mass[0] == pytest.approx(mass_kg, abs=2e-6), body


def test_joint_ranges(model):
  """Guards a lost sign in a limit: the policy would learn around a joint that cannot move."""
  assert set(RANGE_RAD) == set(JUMPER.joints)
  for joint, range_rad in RANGE_RAD.items():
    assert model.joint(joint).limited, joint
    np.testing.assert_allclose(model.joint(joint).range, range_rad, atol=1e-9, err_msg=joint)


def test_joint_dynamics(model):
  """Guards a default class that does not reach every joint: its servo would have no rotor."""
  hinges = slice(6, None)
  np.testing.assert_allclose(model.dof_armature[hinges], 0.0015)
  np.testing.assert_allclose(model.dof_damping[hinges], 0.017, atol=1e-12)
  np.testing.assert_allclose(model.dof_frictionloss[hinges], 0.011)
  np.testing.assert_allclose(model.jnt_actfrcrange[1:], [[-2.0, 2.0]] * 22)


def test_names_and_order_are_those_of_the_model(model):
  """Guards a wire order other than the model's: each action would go to another joint."""
  hinges = [model.joint(i).name for i in range(1, model.njnt)]
  assert model.body(JUMPER.base_body).jntnum[0] == 1
  assert hinges == [model.actuator(i).name for i in range(model.nu)] == list(JUMPER.joints)
  assert model.actuator_trnid[:, 0].tolist() == list(range(1, model.njnt))
  for foot in JUMPER.feet:
    assert model.geom(f"{foot}_foot").bodyid[0] == model.site(foot).bodyid[0]
    np.testing.assert_array_equal(model.geom(f"{foot}_foot").pos, model.site(foot).pos)
    for sensor in ("pos", "vel", "contact"):
      assert model.sensor(f"{foot}_{sensor}").id >= 0


def test_actuators_have_the_gains_of_the_robot(model):
  """Guards gains stated twice and changed once: the policy would run on another servo."""
  kp, kd, limit = JUMPER.kp_n_m_rad, JUMPER.kd_n_m_s_rad, JUMPER.effort_limit_n_m
  np.testing.assert_allclose(model.actuator_gainprm[:, 0], kp)
  np.testing.assert_allclose(model.actuator_biasprm[:, :3], [[0.0, -kp, -kd]] * model.nu)
  np.testing.assert_allclose(model.actuator_forcerange, [[-limit, limit]] * model.nu)
  assert not model.actuator_ctrllimited.any()


def test_keyframe_is_home(model):
  """Guards a pose stated twice and changed once: resets would start off the policy's zero."""
  home = list(JUMPER.home_rad.values())
  assert model.key(0).name == "home"
  np.testing.assert_array_equal(model.key_qpos[0, :7], [0, 0, JUMPER.home_height_m, 1, 0, 0, 0])
  np.testing.assert_array_equal(model.key_qpos[0, 7:], home)
  np.testing.assert_array_equal(model.key_ctrl[0], home)


def test_feet_at_home(data):
  """Guards a wrong offset, axis or sign in a limb: a robot of another shape also learns to walk."""
  feet = _feet_mm(data)
  for foot, expected_mm in FEET_AT_HOME_MM.items():
    np.testing.assert_allclose(feet[foot], expected_mm, atol=1.0, err_msg=foot)


def test_feet_at_zero(model, data):
  """Guards two errors that cancel at HOME, such as an angle offset and a tilted link."""
  data.qpos[7:] = 0.0
  mujoco.mj_kinematics(model, data)
  feet = _feet_mm(data)
  for foot, expected_mm in FEET_AT_ZERO_MM.items():
    np.testing.assert_allclose(feet[foot], expected_mm, atol=1.0, err_msg=foot)


def test_only_feet_touch_at_home(model, data):
  """Guards a start inside the floor or another limb: every episode would begin with a kick."""
  assert data.ncon == 0
  for foot in JUMPER.feet:
    lowest_m = data.site(foot).xpos[2] - model.geom(f"{foot}_foot").size[0]
    assert 0.0 <= lowest_m < 0.0001, foot


def test_stands_at_home(model, data):
  """Guards a robot that sags, slides or leans on a knee: rewards would hide it as a bad policy."""
  feet = {model.geom(f"{foot}_foot").id for foot in JUMPER.feet}
  base = data.body(JUMPER.base_body)
  largest_n_m = 0.0
  for _ in range(round(5.0 / model.opt.timestep)):
    mujoco.mj_step(model, data)
    largest_n_m = max(largest_n_m, np.abs(data.actuator_force).max())
    assert set(data.contact.geom2) <= feet and not data.contact.geom1.any()
  assert set(data.contact.geom2) == feet
  assert np.hypot(*base.xpos[:2]) < 0.005
  assert math.degrees(math.acos(base.xmat[8])) < 2.0
  assert largest_n_m < 0.5
  np.testing.assert_allclose(data.sensor("imu_up").data, [0.0, 0.0, 1.0], atol=0.02)


def test_foot_sensors_carry_the_weight(model, data):
  """Guards contact sensors that miss a foot, or report in the contact frame: gait terms read 0."""
  for _ in range(400):
    mujoco.mj_step(model, data)
  contact = np.array([data.sensor(f"{foot}_contact").data for foot in JUMPER.feet])
  np.testing.assert_array_equal(contact[:, 0], 1.0)
  weight_n = 2.54296 * 9.81
  np.testing.assert_allclose(contact[:, 1:].sum(axis=0), [0.0, 0.0, -weight_n], atol=0.1)


def test_feet_decide_the_contact_with_the_ground(model, data):
  """Guards a lost priority: a scene's floor would set the friction, not the foot."""
  for _ in range(400):
    mujoco.mj_step(model, data)
  assert data.ncon == 6
  np.testing.assert_array_equal(data.contact.dim, 3)
  np.testing.assert_allclose(data.contact.friction[:, :2], 1.2)
  np.testing.assert_allclose(data.contact.solref, [[0.02, 1.0]] * 6)


def test_limbs_touch_each_other_but_never_themselves(model):
  """Guards a wrong bit: a limb could pass through its neighbour, or jam on its own thigh."""
  shapes = [g for g in range(model.ngeom) if model.geom_group[g] != 2]
  assert {_owner(model, g) for g in shapes} == {"floor", "base", *JUMPER.feet}
  for a in shapes:
    for b in shapes:
      meets = bool(
        model.geom_contype[a] & model.geom_conaffinity[b]
        or model.geom_contype[b] & model.geom_conaffinity[a]
      )
      if a != b and _owner(model, a) != "floor":
        apart = _owner(model, a) != _owner(model, b)
        assert meets == apart, f"{model.geom(a).name} and {model.geom(b).name}"


def test_visual_shapes_never_touch(model):
  """Guards a picture that collides: it costs time, and changes the physics with the looks."""
  visual = model.geom_group == 2
  assert visual.sum() > 50
  assert not model.geom_contype[visual].any() and not model.geom_conaffinity[visual].any()
  assert all(model.geom(g).name for g in np.flatnonzero(~visual))  # none lost its class


def test_self_collision_sensor(model, data):
  """Guards a sensor that never speaks: the penalty on crossed limbs would be free."""
  assert data.sensor("self_collision").data[0] == 0
  data.joint("LF_J0").qpos, data.joint("RF_J0").qpos = -1.2, 1.2
  mujoco.mj_forward(model, data)
  assert data.sensor("self_collision").data[0] > 0
  assert np.linalg.norm(data.sensor("self_collision").data[1:]) > 0.1


def test_mirrored_pose_mirrors_the_feet(model, data):
  """Guards a wrong sign or partner: symmetry in learning would teach a contradiction.

  The robot itself is only symmetric within 1.4 mm, since its right limbs are turned left ones.
  """
  rng = np.random.default_rng(0)
  low, high = model.jnt_range[1:].T
  for _ in range(20):
    pose = dict(zip(JUMPER.joints, rng.uniform(low, high), strict=True))
    mirrored = {partner: sign * pose[j] for j, (partner, sign) in JUMPER.mirror_joints.items()}
    sites = []
    for angles in (pose, mirrored):
      for joint, angle_rad in angles.items():
        data.joint(joint).qpos = angle_rad
      mujoco.mj_kinematics(model, data)
      sites.append({foot: data.site(foot).xpos.copy() for foot in JUMPER.feet})
    for foot, partner in JUMPER.mirror_feet.items():
      expected = sites[0][foot] * (1.0, -1.0, 1.0)
      assert np.linalg.norm(sites[1][partner] - expected) < 0.002, foot


def test_mirrored_ranges(model):
  """Guards a mirrored target beyond its partner's limit, which the model would clip unseen."""
  for joint, (partner, sign) in JUMPER.mirror_joints.items():
    expected = np.sort(sign * model.joint(joint).range)
    np.testing.assert_allclose(model.joint(partner).range, expected, err_msg=joint)


def test_servos_agree_at_a_tenth_of_the_step():
  """Guards servos too stiff for 5 ms, or an explicit integrator: they chatter, yet stand well."""
  angles_rad = {}
  for dt_s in (0.005, 0.0005):
    spec = mujoco.MjSpec.from_file(str(JUMPER.mjcf))
    spec.option.timestep, spec.option.gravity = dt_s, (0.0, 0.0, 0.0)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.ctrl += 0.1 * np.where(np.arange(22) % 2, 1.0, -1.0)
    for _ in range(round(0.02 / dt_s)):
      mujoco.mj_step(model, data)
    angles_rad[dt_s] = data.qpos[7:].copy()
  np.testing.assert_allclose(angles_rad[0.005], angles_rad[0.0005], atol=0.003)
