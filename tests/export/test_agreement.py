"""What makes an exported policy act otherwise than in training, and is found."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from mjrl import tasks
from mjrl.envs.terms import observations
from mjrl.envs.terms.quantities import QUANTITIES
from mjrl.export import player
from mjrl.export.actor import Actor
from mjrl.export.agreement import (
  check_closed_loop,
  check_frames,
  check_network,
  check_one_step,
  place,
)
from mjrl.export.export import walking_forward
from mjrl.export.runs import drive, open_env, quiet
from mjrl.learn.policy import NetworkPolicy


def term(layout, name):
  return next(t for t in layout["observation"]["terms"] if t["name"] == name)


@pytest.fixture
def onnx_changed(tripod, tmp_path):
  """The export's network after a change."""

  def changed(change):
    model = onnx.load(str(tripod.folder / "actor.onnx"))
    change(model)
    path = tmp_path / "actor.onnx"
    onnx.save(model, str(path))
    return path

  return changed


def check(tripod, path):
  return check_network(path, tripod.network, Actor(tripod.network), tripod.frames)


def test_a_network_with_another_weight_is_found(tripod, onnx_changed):
  # Guards: a network of another checkpoint, or one that lost digits on the way.
  def nudge(model):
    weights = next(t for t in model.graph.initializer if t.name == "mlp.0.weight")
    values = onnx.numpy_helper.to_array(weights).copy()
    values[0, 0] += 1e-2
    weights.CopyFrom(onnx.numpy_helper.from_array(values, weights.name))

  assert check(tripod, onnx_changed(lambda model: None)) < 1e-5
  with pytest.raises(
    ValueError, match=r"actions differ from the checkpoint's: by .* at most 1e-05"
  ):
    check(tripod, onnx_changed(nudge))


def test_a_network_without_its_normaliser_is_found(tripod, onnx_changed):
  # Guards: the most common of silent failures.
  def forget(model):
    for tensor in model.graph.initializer:
      if tensor.name == "normaliser._mean":
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.zeros((1, 91), np.float32), tensor.name))

  with pytest.raises(ValueError, match="actions differ from the checkpoint's"):
    check(tripod, onnx_changed(forget))


def test_a_fixed_batch_and_a_second_file_are_found(tripod, onnx_changed, tmp_path):
  # Guards: a network for one robot alone, and one whose weights stay behind.
  def fix(model):
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1

  with pytest.raises(ValueError, match="obs has a fixed batch"):
    check(tripod, onnx_changed(fix))
  path = tmp_path / "two.onnx"
  model = onnx.load(str(tripod.folder / "actor.onnx"))
  onnx.save(model, str(path), save_as_external_data=True, location="two.data", size_threshold=0)
  with pytest.raises(ValueError, match="weights lie in another file: "):
    check(tripod, path)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_memory_is_torchs_own(kind):
  # Guards: gates in another order than those that were trained.
  torch.manual_seed(0)
  rnn = kind(5, 4, num_layers=2)
  state = tuple(torch.randn(2, 3, 4) for _ in range(2 if kind is nn.LSTM else 1))
  x = torch.randn(3, 5)
  wanted, after = rnn(x[None], state if kind is nn.LSTM else state[0])
  got, found = Actor._remember(rnn, x, state)
  torch.testing.assert_close(got, wanted[0])
  for mine, theirs in zip(found, after if kind is nn.LSTM else (after,), strict=True):
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
  ("breaks", "message"),
  [
    (
      lambda t: term(t, "joint_vel").update(scale=0.05),
      r"observation\[\d+\], joint_vel/.., differs",
    ),
    (lambda t: term(t, "joint_vel").update(clip=[-0.1, 0.1]), r", joint_vel/\w+, differs"),
    (lambda t: term(t, "actions").update(delay_steps=1), r", actions/\w+ 1 steps ago, differs"),
    (lambda t: t["home_rad"].update(LM_J2=-1.82), r", joint_pos/LM_J2, differs"),
    (lambda t: t["gait"].update(cycle_steps=17), r", gait_phase/\w+, differs"),
    (lambda t: t["command"].update(standing_norm=0.2), r", gait_phase/\w+, differs"),
    (lambda t: t["action"].update(scale_rad=0.2), r"the target of \w+ differs"),
  ],
)
def test_a_wrong_figure_is_found_and_named(tripod, breaks, message):
  # Guards: a robot that is fed, or told, something else than in training.
  layout = tripod.layout
  simulation = tripod.simulation(layout)
  check_frames(tripod.frames, tripod.controller(layout), simulation, layout)
  breaks(layout)
  with pytest.raises(ValueError, match=message.replace("..,", r"\w+,")):
    check_frames(tripod.frames, tripod.controller(layout), simulation, layout)


def test_a_simulation_that_steps_otherwise_is_found(tripod):
  # Guards: a player at another rate, or one that reads yesterday's state.
  layout = tripod.layout
  assert check_one_step(tripod.frames, tripod.simulation(layout)) < 1e-6
  layout["control"]["decimation"] = 3
  with pytest.raises(ValueError, match=r"one step after 0: .* differs"):
    check_one_step(tripod.frames, tripod.simulation(layout))


@pytest.fixture(scope="module")
def walk(tripod):
  """Two seconds of the policy on its own."""
  env = open_env(quiet(tripod.task), tripod.task.recipes["native"].history)
  return drive(env, NetworkPolicy(tripod.network), [walking_forward(tripod.layout)] * 100)


def closed_loop(tripod, walk, layout=None):
  layout = layout or tripod.layout
  return check_closed_loop(walk, tripod.controller(layout), tripod.simulation(layout), 0.02)


def test_the_player_goes_where_mjrl_goes(tripod, walk):
  # Guards: a check that would pass on anything: it passes on what is right ...
  figures = closed_loop(tripod, walk)
  assert figures["action_error_first_second"] < 1e-4
  assert figures["speed_difference_share"] < 0.02
  assert figures["seconds"] == 2.0 and figures["fell_after_s"] is None


def test_a_player_that_acts_otherwise_is_found(tripod, walk):
  # Guards: ... and fails on a policy that does something else, such as with a third of its action.
  layout = tripod.layout
  layout["action"]["scale_rad"] /= 3
  with pytest.raises(ValueError, match=r"the player's actions differ from mjrl's at 0\.02 s"):
    closed_loop(tripod, walk, layout)


def test_a_player_that_goes_elsewhere_is_found(tripod, walk):
  # Guards: a speed that nobody compared.
  faster = [replace(frame, velocity=1.1 * frame.velocity + 0.01) for frame in walk]
  with pytest.raises(ValueError, match=r"the player walks at .* over 2\.00 s .* at most 0\.02"):
    closed_loop(tripod, faster)


def test_a_fall_ends_the_comparison(tripod, walk):
  # Guards: two robots on their backs compared by how they tumble.
  fell = [replace(frame, fallen=k == 59) for k, frame in enumerate(walk)]
  figures = closed_loop(tripod, fell)
  assert figures["fell_after_s"] == pytest.approx(1.2) and figures["seconds"] == 1.2


def test_a_number_of_the_observation_is_named(tripod):
  # Guards: a finger that points to the wrong sensor.
  layout = tripod.layout
  assert place(layout, 0) == "base_ang_vel/x" and place(layout, 90) == "gait_phase/cos"
  assert place(layout, 26 + 19) == "joint_vel/RR_J2"
  joint_vel = term(layout, "joint_vel")
  joint_vel.update(frames=3, width=60, delay_steps=1)
  assert place(layout, 26) == "joint_vel/LF_J0 3 steps ago"


@pytest.mark.parametrize(
  ("quat_wxyz", "gravity"),
  [
    ((1, 0, 0, 0), (0, 0, -1)),
    ((np.cos(0.1), 0, np.sin(0.1), 0), (np.sin(0.2), 0, -np.cos(0.2))),  # nose down
    ((np.cos(0.1), -np.sin(0.1), 0, 0), (0, np.sin(0.2), -np.cos(0.2))),  # left side down
    ((np.cos(0.7), 0, 0, np.sin(0.7)), (0, 0, -1)),  # turned left
  ],
)
def test_the_signs_are_those_of_the_readme(tripod, quat_wxyz, gravity):
  # Guards: a sentence, on which a robot's wiring rests, that has it the wrong way round.
  zero = np.zeros(22)
  measured = {
    "quat_wxyz": np.array(quat_wxyz, float),
    "ang_vel_b": np.zeros(3),
    "joint_pos_rad": zero,
    "joint_vel_rad_s": zero,
    "joint_torque_n_m": zero,
  }
  seen = tripod.controller(tripod.layout).step(measured, np.zeros(3)).observation
  np.testing.assert_allclose(seen[3:6], gravity, atol=1e-6)


def test_every_row_of_the_library_is_described():
  # Guards: a new row that is forgotten until somebody exports a policy that reads it.
  library = {
    fn
    for fn in vars(observations).values()
    if getattr(fn, "__module__", "") == observations.__name__
  }
  assert library == set(QUANTITIES)
  task = tasks.build("jumper.tripod")
  state = open_env(quiet(task), None).state
  for row, quantity in QUANTITIES.items():
    assert row(state).shape == (1, len(quantity.labels(task.robot))), row.__name__


def test_a_policy_of_rough_ground_is_compared_on_the_flat_ground_of_its_scene():
  # Guards: an export that is refused, or compared on hills that its scene.xml has not.
  task = tasks.build("jumper.tripod")
  rough = replace(task, terrain=replace(task.terrain, ground="rough"))
  here, there = (open_env(quiet(t), None).backend.model.ngeom for t in (task, rough))
  assert here == there


def test_the_player_knows_every_row(tripod):
  # Guards: a row that can be exported, and that the player has never heard of.
  layout = tripod.layout | {"not_measurable": ["something"]}
  controller, simulation = (
    tripod.controller(layout),
    player.Simulation(tripod.folder / "scene.xml", layout),
  )
  known = controller._quantities(simulation.read(), np.zeros(3))
  assert set(known) == {row.__name__ for row in QUANTITIES}
