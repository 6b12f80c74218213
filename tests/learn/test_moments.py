"""The moments of a run are seen by the task's own functions, when they come."""

from dataclasses import replace

import pytest

from mjrl.envs.task import at_run
from mjrl.learn import checkpoints
from mjrl.learn.interrupts import StopAsked
from mjrl.learn.moments import check_can_fire
from mjrl.learn.options import Options
from mjrl.learn.train import train
from mjrl.sim.resolve import Resolved


def test_every_moment_of_a_run_is_seen(small, tmp_path):
  # Guards: an event that is checked, accepted, and never called (embodichain: events.train).
  seen = []

  def note(moment, *, mark):
    there = moment.checkpoint and checkpoints.read(moment.checkpoint)["iteration"]
    has_reward = "Policy/mean_std" in moment.scalars
    seen.append((mark, moment.event, moment.iteration, moment.env_steps, there, has_reward))
    assert moment.folder.is_dir() and moment.env.num_envs == 8

  rows = {
    when: at_run(when, note, mark=when[:2])
    for when in ("train_end", "checkpoint", "iteration", "train_start")
  }
  recipe = replace(small.recipes["native"], save_every=2)
  task = replace(small, events=small.events | rows, recipes={"native": recipe})
  code = train(
    task=task,
    resolved=Resolved(
      backend="native", device="cpu", num_envs=8, threads=2, torch_threads=1, reasons={}
    ),
    seed=3,
    max_iterations=3,
    checkpoint=None,
    log_dir=tmp_path,
    command="",
    options=Options(),
    stop=StopAsked(),
  )
  assert code == 0
  steps = 4 * 8
  assert seen == [
    ("tr", "train_start", -1, 0, None, False),
    ("it", "iteration", 0, steps, None, True),
    ("it", "iteration", 1, 2 * steps, None, True),
    ("ch", "checkpoint", 1, 2 * steps, 1, False),
    ("it", "iteration", 2, 3 * steps, None, True),
    ("ch", "checkpoint", 2, 3 * steps, 2, False),
    ("tr", "train_end", 2, 3 * steps, 2, False),
  ]


def test_what_an_event_logs_is_logged(small, make_runner):
  # Guards: an event's number that reaches neither console nor TensorBoard.
  from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

  def count(moment):
    moment.scalars["Mine/count"] = 10.0 + moment.iteration

  task = replace(small, events=small.events | {"count": at_run("iteration", count)})
  runner = make_runner(task)
  runner.learn(2)
  assert runner.last_log["Mine/count"] == 11
  log = EventAccumulator(str(runner.folder))
  log.Reload()
  assert [point.value for point in log.Scalars("Mine/count")] == [10, 11]


@pytest.mark.parametrize("when", ["eval_start", "eval_step", "eval_end"])
def test_an_event_without_its_moment_is_refused(small, tmp_path, when):
  # Guards: an event that is waited for in vain, with nothing built to show for it.
  task = replace(small, events=small.events | {"look": at_run(when, lambda moment: None)})
  with pytest.raises(ValueError, match=f"event look is of {when}, which never comes"):
    train(
      task=task,
      resolved=Resolved(
        backend="native", device="cpu", num_envs=8, threads=2, torch_threads=1, reasons={}
      ),
      seed=3,
      max_iterations=1,
      checkpoint=None,
      log_dir=tmp_path,
      command="",
      options=Options(),
      stop=StopAsked(),
    )
  assert list(tmp_path.iterdir()) == []
  check_can_fire(task.events, eval_every=1)
