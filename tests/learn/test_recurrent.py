"""Networks that remember: what they learn, what a time-out is worth to them, and their replay."""

from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest
import torch
from tensordict import TensorDict

from mjrl import tasks
from mjrl.envs.env import Env
from mjrl.envs.policy import advance, begin
from mjrl.envs.recipe import RECURRENT, Memory, for_envs
from mjrl.envs.scene import compile_scene
from mjrl.learn import checkpoints, resume
from mjrl.learn import train as training
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.policy import NetworkPolicy, load_policy
from mjrl.learn.ppo import Ppo
from mjrl.learn.rsl_config import rsl_config
from mjrl.sim.native import NativeBackend
from mjrl.sim.ranks import ALONE

LSTM = Memory(kind="lstm", hidden=8, layers=1)
GRU = Memory(kind="gru", hidden=8, layers=2)


def make(recipe, obs, num_actions, num_envs):
  """The algorithm that a recipe asks for, without an environment."""
  torch.manual_seed(0)
  env = SimpleNamespace(num_envs=num_envs, num_actions=num_actions)
  config = rsl_config(recipe, env) | {"multi_gpu": None}
  with redirect_stdout(StringIO()):
    return Ppo.construct_algorithm(obs, env, config, "cpu")


def pack(value):
  return TensorDict({"policy": value, "critic": value.clone()}, batch_size=[value.shape[0]])


class Cue:
  """N envs in which the sign seen in an episode's first step is asked for in its last, the fifth.

  An observation holds the sign, and whether it is asked for; in between it holds nothing.
  """

  LENGTH = 5

  def __init__(self, num_envs):
    self.rng = torch.Generator().manual_seed(1)
    self.at = torch.arange(num_envs) % self.LENGTH  # so that episodes end anywhere in a rollout
    self.sign = self._draw()

  def _draw(self):
    return torch.randint(2, self.at.shape, generator=self.rng) * 2.0 - 1

  def observe(self):
    return pack(torch.stack([self.sign * (self.at == 0), (self.at == self.LENGTH - 1) * 1.0], 1))

  def step(self, action):
    asked = self.at == self.LENGTH - 1
    reward = asked * (1 - (action[:, 0] - self.sign).square())
    self.at = (self.at + 1) % self.LENGTH
    self.sign = torch.where(asked, self._draw(), self.sign)
    return reward, asked


@pytest.mark.parametrize(
  ("memory", "learns"),
  [(replace(LSTM, hidden=16), True), (replace(GRU, hidden=16), True), (None, False)],
)
def test_what_was_seen_at_the_start_is_learned_if_it_can_be_remembered(small, memory, learns):
  # Guards: a network with a memory that learns no more than one without, because what it remembered
  # is not what it learns from.  Without one, no answer is worth more than 0; the right one 1.
  recipe = replace(
    small.recipes["native"],
    memory=memory,
    num_envs=64,
    rollout_steps=12,
    epochs=4,
    learning_rate=3e-3,
    gamma=0.9,
    entropy_coef=0.0,
  )
  env = Cue(recipe.num_envs)
  alg = make(recipe, env.observe(), 1, recipe.num_envs)
  for _ in range(20):
    earned = answers = 0.0
    with torch.inference_mode():
      for _ in range(recipe.rollout_steps):
        reward, ended = env.step(alg.act(env.observe()))
        alg.process_env_step(env.observe(), reward, ended, {"time_outs": ~ended & False})
        earned, answers = earned + float(reward.sum()), answers + int(ended.sum())
      alg.compute_returns(env.observe())
    alg.update()
  worth = earned / answers
  assert worth > 0.9 if learns else worth < 0.2, worth


@pytest.mark.parametrize("memory", [LSTM, GRU])
def test_a_time_out_is_valued_by_what_its_env_remembers(small, memory):
  # Guards: a terminal observation that the critic takes for a step of every env's episode, or
  # values without what it remembers, or with what is left after the episode was forgotten.
  obs, terminal, after = (pack(torch.randn(4, 2)) for _ in range(3))
  recipe = replace(small.recipes["native"], memory=memory)
  alg = make(recipe, obs, 1, num_envs=4)
  critic, plain = deepcopy(alg.critic), deepcopy(alg.critic)
  with torch.inference_mode():
    alg.act(obs)
    extras = {"time_outs": torch.tensor([True, False, False, True]), "terminal": terminal}
    alg.process_env_step(after, torch.zeros(4), torch.tensor([True, True, False, True]), extras)
    critic(obs)
    saved = alg.save_memory()["critic"]
    shape = (memory.layers, 4, memory.hidden)
    assert [part.shape for part in saved] == [shape] * (2 if memory.kind == "lstm" else 1)
    for mine, theirs in zip(saved, parts(critic.get_hidden_state()), strict=True):
      assert torch.equal(mine[:, 2], theirs[:, 2])
      assert mine[:, [0, 1, 3]].count_nonzero() == 0
    value = critic(terminal).squeeze(1)
    assert not torch.allclose(value, plain(terminal).squeeze(1), atol=1e-3)  # the test can tell
  expected = recipe.gamma * value * torch.tensor([1, 0, 0, 1])
  torch.testing.assert_close(alg.storage.rewards[0].squeeze(1), expected)


def parts(state):
  return state if isinstance(state, tuple) else (state,)


def recorded(task, steps):
  """What five envs see under zero actions, and which of their episodes end in each step."""
  env = Env(task, NativeBackend(compile_scene(task), 5, 1), 9, history=1)
  seen = []
  for _ in range(steps):
    observations = {name: group.clone() for name, group in env.observations().items()}
    step = env.step(torch.zeros(5, len(env.robot.gait_joints)))
    seen.append((observations, step.terminated | step.timed_out))
  return env, seen


@pytest.mark.parametrize("memory", [LSTM, GRU])
def test_a_replay_forgets_where_training_did(small, make_runner, memory):
  # Guards: a replay whose second episode begins with the memory of the first, as none did in
  # training, or in which all envs forget when one has ended.
  task = replace(small, episode_s=0.1)
  runner = make_runner(task, memory=memory)
  runner.learn(3)
  env, seen = recorded(task, steps=8)
  assert seen[4][1].all()
  seen[1][1][3] = True  # one of them earlier, in what both are told
  actor = runner.alg.get_policy()
  actor.reset()
  told, untold = (load_policy(checkpoints.read(runner.saves.newest), env) for _ in range(2))
  for k, (observations, ended) in enumerate(seen):
    with torch.inference_mode():
      expected = actor(TensorDict(observations, batch_size=[5]))
      actor.reset(ended)
    assert torch.equal(told(observations), expected)
    told.reset(ended)
    differs = (untold(observations) != expected).any(1)
    assert differs.tolist() == [k > 4, k > 4, k > 4, k > 1, k > 4]
  told.reset()  # all, and another number of envs
  first = {name: group[:2] for name, group in seen[0][0].items()}
  actor.reset()
  with torch.inference_mode():
    assert torch.equal(told(first), actor(TensorDict(first, batch_size=[2])))


class Spy:
  """Stands still, and notes when it is asked and what it is told to forget."""

  def __init__(self, env):
    self.action = torch.zeros(env.num_envs, len(env.robot.gait_joints))
    self.told = []

  def __call__(self, observations):
    self.told.append("act")
    return self.action

  def reset(self, ended=None):
    self.told.append("all" if ended is None else ended.tolist())


def test_whoever_drives_a_policy_tells_it_what_ended(small):
  # Guards: a policy that is asked before it has forgotten, or after a failure alone.
  env = Env(replace(small, episode_s=0.06), NativeBackend(compile_scene(small), 2, 1), 0)
  spy = Spy(env)
  observations = begin(env, spy)
  env.episode_steps[1] = 1
  for _ in range(3):
    observations = advance(env, spy, observations).observations
  none, second, first = [False, False], [False, True], [True, False]
  assert spy.told == ["all", "act", none, "act", second, "act", first]


def test_a_look_at_a_policy_in_training_leaves_its_memory_alone(small, make_runner):
  # Guards: an evaluation between two iterations, of other envs, that training goes on from.
  runner = make_runner(small, memory=LSTM)
  runner.learn(1)
  before = runner.alg.save_memory()
  policy = NetworkPolicy(runner.alg.get_policy())
  for _ in range(3):
    policy({"policy": torch.randn(3, runner.mjrl_env.observer.width("policy"))})
  after = runner.alg.save_memory()
  for name in ("actor", "critic"):
    assert before[name][0].shape == (1, 8, 8) and before[name][0].count_nonzero() > 0
    assert all(map(torch.equal, before[name], after[name]))


def test_a_world_without_the_memory_is_refused(small, make_runner):
  # Guards: episodes that go on in networks that have forgotten how they began.
  runner = make_runner(small, memory=LSTM)
  runner.learn(1)
  path = runner.saves.newest
  world = checkpoints.unpickle(resume.path_for(path.parent, 0))["world"]
  assert [v.shape for v in world["memory"]["critic"]] == [(1, 8, 8)] * 2
  assert resume.read(path, 0, "native:cpu", 8, memory=True)[1] == ""
  assert "this run none" in resume.read(path, 0, "native:cpu", 8, memory=False)[1]
  resume.write(path.parent, 0, "native:cpu", world | {"memory": {"actor": [], "critic": []}})
  assert "has none of the memory" in resume.read(path, 0, "native:cpu", 8, memory=True)[1]


def test_networks_with_and_without_a_memory_do_not_fit(small, make_runner):
  # Guards: "Missing key(s) in state_dict: rnn.rnn.weight_ih_l0".
  runner = make_runner(small, memory=LSTM)
  runner.learn(1)
  saved = checkpoints.read(runner.saves.newest)
  same = saved["recipe"]
  for other, says in (
    (same | {"memory": None}, r"recipe\.memory: .*lstm.* -> None \(--recurrent: give it"),
    (same | {"memory": same["memory"] | {"hidden": 9}}, r"recipe\.memory\.hidden: 8 -> 9$"),
  ):
    with pytest.raises(ValueError, match=says):
      checkpoints.check_networks(runner.saves.newest, saved, saved["task"], other)
  del same["memory"]
  with pytest.raises(ValueError, match="another version of mjrl, whose recipes have no memory"):
    checkpoints.check_networks(runner.saves.newest, saved, saved["task"], same)


@pytest.mark.parametrize(
  ("changes", "says"),
  [
    ({"mirror_coef": 1.0}, "mirror_coef 1.0: what a network remembers has no mirror image; set"),
    ({"mirror_augmentation": True}, "set them to False and 0, or memory to None"),
    ({"rollout_steps": 1}, "rollout_steps 1: .* at least 2"),
    ({"num_envs": 130}, "num_envs is 130 with a memory and 4 mini-batches: .* take 128 or 132"),
    ({"num_envs": 4}, "num_envs is 4 .* 2 or more; take 8"),
  ],
)
def test_a_recipe_whose_memory_cannot_learn_is_refused(changes, says):
  # Guards: an error of rsl_rl's after everything has been built, envs that are never learned from,
  # and a mini-batch of one env, which rsl_rl takes for one of as many as it has steps.
  recipe = tasks.build("jumper.tripod").recipes["native"]
  replace(recipe, **changes)  # without a memory, all of it may be
  with pytest.raises(ValueError, match=says):
    replace(recipe, memory=LSTM, **changes)


def test_a_number_of_envs_that_its_memory_cannot_learn_from_ends_a_run_at_once(
  small, tmp_path, monkeypatch
):
  # Guards: the same, where --num_envs departs from the recipe.
  task = replace(small, recipes={"native": replace(small.recipes["native"], memory=LSTM)})
  monkeypatch.setattr(training, "compile_scene", lambda _: pytest.fail("something was built"))
  resolved = SimpleNamespace(backend="native", name="native:cpu", num_envs=7, ranks=ALONE)
  with pytest.raises(ValueError, match="num_envs is 7 with a memory and 2 mini-batches"):
    training.train(
      task=task,
      resolved=resolved,
      seed=0,
      max_iterations=1,
      checkpoint=None,
      log_dir=tmp_path,
      command="",
      options=Options(),
      stop=StopAsked(),
    )
  assert for_envs(task.recipes["native"], 6).num_envs == 6


@pytest.mark.parametrize(
  ("changes", "says"),
  [
    ({"kind": "lstn"}, r"memory: kind 'lstn'; did you mean 'lstm'\?"),
    ({"hidden": 0}, "memory: hidden is 0"),
    ({"layers": 0}, "memory: layers is 0"),
  ],
)
def test_a_memory_that_is_none_is_refused(changes, says):
  # Guards: a typo that rsl_rl takes for an LSTM.
  with pytest.raises(ValueError, match=says):
    replace(RECURRENT, **changes)
