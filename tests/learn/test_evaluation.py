"""Evaluation during training: exact, unbiased, repeatable, without a trace in what is learned."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

from mjrl.envs.describe import describe
from mjrl.envs.env import Env
from mjrl.envs.scene import compile_scene
from mjrl.envs.task import Event, at_run, reward, term
from mjrl.learn import checkpoints
from mjrl.learn import train as training
from mjrl.learn.evaluation import Evaluation, check_best_metric, check_evaluation, scalar_names
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.options import Options
from mjrl.learn.policy import load_policy
from mjrl.learn.train import train
from mjrl.sim import memory
from mjrl.sim.native import NativeBackend
from mjrl.sim.resolve import Resolved
from mjrl.sim.seeds import streams

STEPS = 10  # of an episode


def one(s):
  return torch.ones(len(s.command))


def asked_to_go_forward(s):
  return s.command[:, 0] > 0


def first_action(s):
  return s.action[:, 0], torch.ones(len(s.action))


def forward_command(s):
  return s.command[:, 0], torch.ones(len(s.command))


def always(s):
  return torch.ones(len(s.command), dtype=torch.bool)


def wide(s):
  return torch.ones(len(s.command), 2)


@pytest.fixture(scope="session")
def tiny(small):
  """Episodes of ten steps, a reward of 1 per second, and nothing that ends them early."""
  return replace(
    small,
    episode_s=STEPS * small.control_dt_s,
    rewards={"one": reward(1.0, one)},
    terminations={},
    metrics={"first_action": term(first_action)},
    curriculum=None,
    command=replace(small.command, standing=0.0, heading=0.0),
    recipes={"native": replace(small.recipes["native"], curriculum={})},
  )


@pytest.fixture(scope="session")
def hasty(tiny):
  """Half of the episodes end in their first step, and well; the others run on, and fail."""
  terminations = {"forward": term(asked_to_go_forward)}
  return replace(tiny, terminations=terminations, success=term(asked_to_go_forward))


def make_env(task, num_envs, seed=0):
  return Env(task, NativeBackend(compile_scene(task), num_envs, 2), seed, history=1)


class Counting:
  """A policy whose every action is the number of the step."""

  def __init__(self):
    self.at = 0

  def __call__(self, observations):
    self.at += 1
    return torch.full((len(observations["policy"]), 20), float(self.at))

  def reset(self, ended=None):
    self.at = 0 if ended is None else self.at


def evaluate(env, episodes, policy=None, stop=lambda: False, fire=lambda *_, **__: None):
  evaluation = Evaluation(env, every=1, episodes=episodes, best_metric="eval/reward")
  return evaluation.run(policy or Counting(), stop=stop, fire=fire), evaluation


@pytest.mark.parametrize("episodes", [1, 3, 8, 11, 16])
def test_there_are_as_many_episodes_as_asked_for(tiny, episodes):
  # Guards: a mean over whatever number of episodes ended in time.
  moments = []
  scalars, _ = evaluate(make_env(tiny, 8), episodes, fire=lambda name, **_: moments.append(name))
  assert scalars["eval/episodes"] == episodes
  assert scalars["eval/episode_length"] == STEPS
  assert scalars["eval/reward"] == pytest.approx(STEPS * tiny.control_dt_s)
  assert scalars["eval/success"] == 1 and scalars["eval/failure/diverged"] == 0
  assert moments.count("eval_step") == -(-episodes // 8) * STEPS


def test_short_episodes_are_not_favoured(hasty):
  # Guards: the first N episodes to end taken for N episodes: the short ones, which succeed.
  env = make_env(hasty, 64)
  forward = env.commands.value[:, 0] > 0  # what each env's first episode comes to
  share = float(forward.float().mean())
  assert 0.3 < share < 0.7
  scalars, _ = evaluate(env, 64)
  assert scalars["eval/success"] == scalars["eval/failure/forward"] == share
  assert scalars["eval/episode_length"] == pytest.approx(share + (1 - share) * STEPS)
  for num_envs, episodes in ((32, 48), (7, 100)):
    scalars, _ = evaluate(make_env(hasty, num_envs), episodes)
    assert scalars["eval/episodes"] == episodes
    assert scalars["eval/success"] == pytest.approx(0.5, abs=0.15), num_envs


def test_without_a_row_success_is_the_time_out(hasty):
  # Guards: a robot that falls, and is a success.
  scalars, _ = evaluate(make_env(replace(hasty, success=None), 64), 64)
  assert scalars["eval/success"] == 1 - scalars["eval/failure/forward"] > 0


def test_a_success_that_is_not_one_per_env_is_refused(tiny):
  # Guards: a mistake in the row found out at the first evaluation, after an hour.
  with pytest.raises(ValueError, match=r"success gives \[\(4, 2\)\]"):
    make_env(replace(tiny, success=term(wide)), 4)


def test_metrics_are_of_the_episodes_that_count(tiny):
  # Guards: means that hold steps after the quota, or the first state of the next episode.
  scalars, _ = evaluate(make_env(tiny, 2), 3)
  first, second = range(1, 2 * STEPS + 1), range(1, STEPS + 1)
  mean = (sum(first) + sum(second)) / (len(first) + len(second))
  assert scalars["eval/first_action"] == pytest.approx(mean)
  assert scalars["eval/terminal/first_action"] == pytest.approx((10 + 20 + 10) / 3)


def test_what_is_logged_is_what_the_names_promise(small):
  # Guards: a best_metric that is accepted and never there.
  task = replace(small, episode_s=0.2)
  scalars, _ = evaluate(make_env(task, 16), 16)
  assert set(scalars) <= {*scalar_names(task), "eval/episodes", "eval/seconds"}
  missing = set(scalar_names(task)) - set(scalars)
  assert all(name.startswith("eval/terminal/") for name in missing)  # nothing landed just then


def test_an_env_that_diverges_has_failed(tiny):
  # Guards: one bad number that makes every mean one, or an episode that nobody counts.
  def poison(name, **_):
    if name == "eval_start":
      env.commands.value[3] = torch.nan

  task = replace(tiny, metrics={"command": term(forward_command)}, success=term(always))
  env = make_env(task, 8)
  scalars, evaluation = evaluate(env, 8, fire=poison)
  assert scalars["eval/failure/diverged"] == 1 / 8 and scalars["eval/success"] == 7 / 8
  assert scalars["eval/episodes"] == 8
  assert all(value == value for value in scalars.values())
  assert "evaluation: diverged, and started anew: env 3" in evaluation.take_notes()[0]


def test_an_evaluation_repeats_to_the_bit(small):
  # Guards: a difference between two evaluations that is the luck of their draws.
  env = make_env(replace(small, episode_s=2.0), 4)  # long enough for pushes
  evaluation = Evaluation(env, every=1, episodes=6, best_metric="eval/reward")

  class Shaky:
    def __call__(self, observations):
      return 0.1 * observations["policy"][:, :20]

    def reset(self, ended=None):
      pass

  first, again = (
    evaluation.run(Shaky(), stop=lambda: False, fire=lambda *_, **__: None) for _ in range(2)
  )
  del first["eval/seconds"], again["eval/seconds"]
  assert first == again and len(first) > 10


def test_an_evaluation_is_on_the_task_itself(small, make_runner):
  # Guards: numbers of different iterations that are not of the same task: eased, or on a low rung;
  # and a reward that is not the one that late training shows, for want of the ladder's widths.
  runner = make_runner(small, options=Options(eval_every=1, num_eval_episodes=64), num_envs=64)
  env = runner.evaluation.env
  speed = small.command.forward_m_s[1]
  assert runner.mjrl_env.commands.value[:, 0].max() < 0.55 * speed < 0.9 * speed
  assert env.commands.value[:, 0].max() > 0.9 * speed
  assert runner.mjrl_env.rewards.eased() and not env.rewards.eased()
  last, widths = small.curriculum.rungs[-1], runner.mjrl_env.rewards
  runner.mjrl_env.ladder.go_to(len(small.curriculum.rungs) - 1)
  for name, row in small.rewards.items():
    own = {"weight": row.weight, **row.params}
    own |= {"std_m_s": last.linear_std_m_s} if name == "track_linear_velocity" else {}
    own |= {"std_rad_s": last.angular_std_rad_s} if name == "track_angular_velocity" else {}
    assert env.rewards.numbers[name] == own == widths._own[name]
  assert env.ladder is None and own != small.rewards


SEEN = []


def zero_the_clock(moment):
  SEEN.append(moment)
  moment.env.episode_steps.zero_()


def test_an_episode_that_never_ends_ends_the_evaluation(tiny, make_runner, capsys):
  # Guards: a run that hangs in an evaluation, or whose best are the episodes that ended soon.
  task = replace(tiny, events=tiny.events | {"clock": at_run("eval_step", zero_the_clock)})
  runner = make_runner(task, options=Options(eval_every=1, num_eval_episodes=9))
  SEEN.clear()
  runner.learn(1)
  assert len(SEEN) == 30  # two episodes of ten steps, and a little
  assert runner.last_log["eval/episodes"] == 0 and "eval/reward" not in runner.last_log
  assert runner.saves.best is None and not (runner.folder / "model_best.pt").exists()
  out = capsys.readouterr().out
  assert "cut short after 30 control steps, with 0 of 9 episodes complete" in out


@pytest.mark.parametrize(
  ("every", "first", "last", "after"),
  [(2, 0, 5, [1, 3, 5]), (2, 0, 4, [1, 3, 4]), (3, 4, 6, [5, 6]), (9, 0, 7, []), (1, 3, 4, [3, 4])],
)
def test_evaluations_are_due(tiny, every, first, last, after):
  # Guards: a final policy that was never evaluated, and a count that starts anew with each resume.
  env = make_env(tiny, 1)
  evaluation = Evaluation(env, every=every, episodes=1, best_metric="eval/reward")
  assert [i for i in range(first, last + 1) if evaluation.due(i, first, last)] == after


def test_streams_of_a_seed_do_not_depend_on_their_number():
  # Guards: a run that learns something else because it is evaluated.
  assert all(streams(seed, 3)[:2] == streams(seed, 2) for seed in range(50))


@pytest.fixture
def run(tmp_path):
  """Train on eight envs; the run's folder."""

  def go(task, options=None, **changes):
    logs = tmp_path / "logs"
    arguments = {
      "task": task,
      "resolved": Resolved(
        backend="native", device="cpu", num_envs=8, threads=2, torch_threads=1, reasons={}
      ),
      "seed": 3,
      "max_iterations": 4,
      "checkpoint": None,
      "log_dir": logs,
      "command": "",
      "options": options or Options(),
      "stop": StopAsked(),
    }
    before = set(logs.glob("*/*/*"))
    assert train(**arguments | changes) == 0
    (folder,) = set(logs.glob("*/*/*")) - before
    return folder

  return go


def draw_from_everything(moment):
  torch.rand(7)
  torch.manual_seed(0)


def test_what_is_learned_does_not_depend_on_it(small, run):
  # Guards: an evaluation that leaves its mark: on the stream that explores, the train mode, the
  # normaliser, or the envs that learn.
  task = replace(small, episode_s=0.2)
  plain = checkpoints.read(run(task) / "model_3.pt")
  task = replace(task, events=task.events | {"draw": at_run("eval_step", draw_from_everything)})
  options = Options(eval_every=1, num_eval_episodes=10)
  evaluated = checkpoints.read(run(task, options) / "model_3.pt")
  assert evaluated["best"] and plain["best"] is None
  for part in ("actor_state_dict", "critic_state_dict"):
    assert all(torch.equal(value, evaluated[part][key]) for key, value in plain[part].items()), part
  assert plain["actor_state_dict"]["obs_normalizer.count"] > 0
  assert plain["curriculum"] == evaluated["curriculum"]


def see(moment):
  SEEN.append(moment)
  moment.scalars["eval/mine"] = 42.0


def test_the_moments_of_an_evaluation_fire(tiny, make_runner):
  # Guards: an event of the table that is accepted and never happens.
  names = ("eval_start", "eval_step", "eval_end")
  events = {name: Event(when=name, fn=see, params={}) for name in names}
  task = replace(tiny, events=tiny.events | events)
  runner = make_runner(task, options=Options(eval_every=2, num_eval_episodes=9))
  SEEN.clear()
  runner.learn(2)
  assert [m.event for m in SEEN] == ["eval_start", *["eval_step"] * 2 * STEPS, "eval_end"]
  assert all(m.env is runner.evaluation.env is not runner.mjrl_env for m in SEEN)
  assert all(m.iteration == 1 for m in SEEN)
  assert SEEN[STEPS].step.timed_out.all() and SEEN[0].step is SEEN[-1].step is None
  assert SEEN[-1].scalars["eval/episodes"] == 9
  assert runner.last_log["eval/mine"] == 42


def test_what_is_found_is_logged(tiny, make_runner, capsys):
  # Guards: curves that lack the evaluation, or that stand at another iteration.
  from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

  runner = make_runner(tiny, options=Options(eval_every=2, num_eval_episodes=3))
  runner.learn(5)
  events = EventAccumulator(str(runner.folder))
  events.Reload()
  assert [p.step for p in events.Scalars("eval/reward")] == [1, 3, 4]
  assert capsys.readouterr().out.count("eval/reward:") == 3


def test_a_stop_abandons_an_evaluation(tiny, make_runner, stop_when):
  # Guards: Ctrl-C that waits for a thousand steps, or half an evaluation in the log.
  names = ("eval_start", "eval_step", "eval_end")
  events = {name: Event(when=name, fn=see, params={}) for name in names}
  task = replace(tiny, events=tiny.events | events)
  runner = make_runner(task, options=Options(eval_every=1, num_eval_episodes=9))
  SEEN.clear()
  runner.learn(5, stop=stop_when(lambda: len(SEEN) > 4))
  assert [m.event for m in SEEN] == ["eval_start", *["eval_step"] * 4]
  assert "Loss/value" in runner.last_log
  assert not any(name.startswith("eval/") for name in runner.last_log)
  assert [p.name for p in runner.folder.glob("model_*.pt")] == ["model_0.pt"]


@pytest.fixture
def scripted(monkeypatch):
  """Evaluations that find what they are told to."""
  values = []

  def find(self, policy, *, stop, fire):
    return {"eval/reward": values.pop(0), "eval/episodes": self.episodes}

  monkeypatch.setattr(Evaluation, "run", find)
  return values


def summary(folder):
  return json.loads((folder / "summary.json").read_text())


def test_the_best_is_kept_over_a_resume(tiny, run, scripted, capsys):
  # Guards: a resumed run whose first evaluation, however bad, is the best ever.
  options = Options(eval_every=1, num_eval_episodes=2)
  scripted += [3.0, 5.0, float("nan"), 4.0]
  first = run(tiny, options)
  best = {"metric": "eval/reward", "value": 5.0, "iteration": 1}
  saved = torch.load(first / "model_best.pt", weights_only=True)
  assert saved["best"] == best and saved["iteration"] == 1
  last = checkpoints.read(first / "model_3.pt")
  assert last["best"] == summary(first)["best"] == best and saved.keys() == last.keys()
  assert "best: eval/reward 5 at iteration 1" in capsys.readouterr().out

  scripted += [4.5, 5.0]
  second = run(tiny, options, checkpoint=first / "model_3.pt", max_iterations=2)
  assert summary(second)["best"] == best and not (second / "model_best.pt").exists()
  scripted += [5.5]
  third = run(tiny, options, checkpoint=second / "model_5.pt", max_iterations=1)
  assert summary(third)["best"] == {"metric": "eval/reward", "value": 5.5, "iteration": 6}
  assert (third / "model_best.pt").exists()


def test_another_task_has_another_best(tiny, run, scripted, capsys):
  # Guards: a best that can never be beaten, because a weight was halved since.
  options = Options(eval_every=1, num_eval_episodes=2)
  scripted += [5.0, 2.0]
  first = run(tiny, options, max_iterations=1)
  changed = replace(tiny, rewards={"one": reward(0.5, one)})
  second = run(changed, options, checkpoint=first / "model_0.pt", max_iterations=1)
  assert summary(second)["best"]["value"] == 2 and (second / "model_best.pt").exists()
  assert "the best evaluation is looked for anew" in capsys.readouterr().out


def test_the_best_is_not_forgotten_over_events_of_the_run(tiny, run, scripted, capsys):
  # Guards: a best that is lost to a plain --resume, since the events came from a --config.
  options = Options(eval_every=1, num_eval_episodes=2)
  scripted += [5.0, 2.0]
  noted = replace(tiny, events=tiny.events | {"see": at_run("iteration", lambda moment: None)})
  first = run(noted, options, max_iterations=1)
  second = run(tiny, options, checkpoint=first / "model_0.pt", max_iterations=1)
  assert summary(second)["best"] == {"metric": "eval/reward", "value": 5.0, "iteration": 0}
  assert not (second / "model_best.pt").exists()
  assert "the best evaluation is looked for anew" not in capsys.readouterr().out


def test_a_best_that_could_not_be_written_is_looked_for_again(tiny, make_runner, scripted, capsys):
  # Guards: a best of which there is no file, and that no later evaluation replaces.
  runner = make_runner(tiny, options=Options(eval_every=1, num_eval_episodes=2))
  scripted += [5.0, 4.0]
  (runner.folder / "model_best.pt").mkdir()
  runner.learn(1)
  assert runner.saves.best is None
  assert capsys.readouterr().out.count("could not write the best checkpoint: ") == 1
  (runner.folder / "model_best.pt").rmdir()
  runner.learn(1)
  assert checkpoints.read(runner.folder / "model_best.pt")["best"]["value"] == 4.0
  assert runner.saves.best["value"] == 4.0
  assert "write the best checkpoint" not in runner.failures.open


def test_an_error_of_an_event_is_no_failure_of_the_best(tiny, make_runner, scripted):
  # Guards: a user's upload that fails, and is said to be a full disk.
  def upload(moment):
    raise OSError("no route to host")

  task = replace(tiny, events=tiny.events | {"upload": at_run("checkpoint", upload)})
  runner = make_runner(task, options=Options(eval_every=1, num_eval_episodes=2))
  scripted.append(5.0)
  with pytest.raises(OSError, match="no route to host"):
    runner.learn(1)
  assert not runner.failures.counts


def test_the_best_can_be_played_and_gone_on_from(small, run, capsys):
  # Guards: a model_best.pt that is there, and that nothing can load.
  task = replace(small, episode_s=0.2)
  folder = run(task, Options(eval_every=1, num_eval_episodes=4), max_iterations=2)
  path = folder / "model_best.pt"
  assert checkpoints.find(folder, "jumper", task.name, folder).name == "model_1.pt"
  assert checkpoints.find(folder, "jumper", task.name, path) == path
  saved = checkpoints.read(path)
  env = make_env(task, 2)
  assert load_policy(saved, env)(env.observations()).shape == (2, 20)
  checkpoints.check_networks(path, saved, describe(task), describe(task.recipes["native"]))
  run(task, checkpoint=path, max_iterations=1)
  assert f"at iteration {saved['iteration'] + 1}; running 1 more" in capsys.readouterr().out


def test_what_is_evaluated_is_the_policy_that_learns(tiny, run, monkeypatch):
  # Guards: a copy that stays what it was when the run began, or one that samples.
  found = []
  own = Evaluation.run

  def look(self, policy, *, stop, fire):
    observations = self.env.observations()
    found.append((observations, policy(observations)))
    return own(self, policy, stop=stop, fire=fire)

  monkeypatch.setattr(Evaluation, "run", look)
  folder = run(tiny, Options(eval_every=4, num_eval_episodes=8))
  ((observations, action),) = found
  policy = load_policy(checkpoints.read(folder / "model_3.pt"), make_env(tiny, 8))
  assert torch.equal(action, policy(observations))


def test_a_metric_that_is_none_is_refused_at_once(tiny, run, monkeypatch, tmp_path):
  # Guards: an hour of training without a best, for a typo.
  def built(*_):
    raise AssertionError("something was built")

  monkeypatch.setattr(training, "compile_scene", built)
  with pytest.raises(ValueError, match=r"'eval/rewrad' is none.*did you mean 'eval/reward'\? val"):
    run(tiny, Options(eval_every=1, best_metric="eval/rewrad"))
  with pytest.raises(ValueError, match="metric 'success' would be logged as eval/success"):
    check_best_metric(replace(tiny, metrics={"success": term(first_action)}), "eval/success")
  assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(("every", "first", "num"), [(1000, 0, 10), (11, 0, 10), (30, 60, 29)])
def test_an_evaluation_that_never_comes_is_refused(tiny, every, first, num):
  # Guards: --eval_every of a long run in a short one: no evaluation, no best, and not a word.
  check = partial(check_evaluation, tiny, best_metric="eval/reward", first=first, iterations=num)
  text = rf"ends with iteration {first + num - 1}, before the first .* give at most {num}, or leave"
  with pytest.raises(ValueError, match=rf"--eval_every {every}: this run {text}"):
    check(every)
  for good in (None, 1, num):
    check(good)


def test_a_run_refuses_an_evaluation_that_never_comes(tiny, run, tmp_path):
  # Guards: the same, of the iterations that a resumed run has before it.
  first = run(tiny, max_iterations=3)
  options = Options(eval_every=5)
  with pytest.raises(
    ValueError, match=r"--eval_every 5: this run ends with iteration 3, .* most 1"
  ):
    run(tiny, options, checkpoint=first / "model_2.pt", max_iterations=1)
  run(tiny, options, checkpoint=first / "model_2.pt", max_iterations=2)


def test_the_second_batch_is_counted(tiny, run, monkeypatch):
  # Guards: a run that fits until its evaluation is built.
  asked = []
  monkeypatch.setattr(
    memory, "check_memory", lambda *_, fixed_bytes, **__: asked.append(fixed_bytes)
  )
  per_env = memory.engine_bytes_per_env(compile_scene(tiny))
  for options in (Options(), *(Options(eval_every=1, num_eval_episodes=n) for n in (5, 64))):
    run(tiny, options, max_iterations=1)
  assert asked == [0, 5 * per_env, 8 * per_env]
