from dataclasses import replace
from itertools import islice

import pytest

from mjrl import tasks
from mjrl.learn import sizing
from mjrl.learn.sizes import Size, advised, keep, knee, past_the_knee
from mjrl.sim.resolve import Resolved

NATIVE = Resolved(
  backend="native", device="cpu", num_envs=8, threads=1, torch_threads=1, reasons={}
)


def size(num_envs, env_steps_per_s):
  took_s = num_envs * 24 / env_steps_per_s
  return Size(
    num_envs=num_envs,
    env_steps_per_s=env_steps_per_s,
    collection_s=0.75 * took_s,
    learning_s=0.25 * took_s,
    taken_bytes=0,
  )


SIZES = [size(16, 1000), size(32, 1900), size(64, 2500), size(128, 2600), size(256, 2550)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_knee_is_where_more_envs_stop_paying():
  # Guards: the fastest number of all, which is where noise put it, called the knee.
  assert knee(SIZES) == 64
  assert knee(SIZES[:1]) == 16


def test_the_advice_is_the_recipe_s_number_where_it_fits():
  # Guards: a command that trains something else than the recipe for a few per cent of speed.
  assert advised(SIZES, 128) == 128
  assert advised(SIZES[:2], 128) == 32


def test_a_training_far_past_the_knee_warns_with_what_was_measured():
  # Guards: 4096 envs on two cores, half a minute an iteration, without a word.
  def said(envs, task="a.task", **machine):
    return past_the_knee(task, replace(NATIVE, num_envs=envs, **machine), 128)

  assert said(511) == "" and "32 times what the recipe for native" in said(4096)
  assert said(4096, backend="warp") == ""  # nothing is known
  keep("a.task", NATIVE, SIZES)
  keep("b.task", NATIVE, SIZES[:1])
  assert said(511) == ""
  assert "beyond 64 envs (doctor --size measured it)" in said(512)
  assert "about 39 s each" in said(4096)  # 16 times those 256 envs
  assert "doctor --size --task c.task" in said(4096, task="c.task")


def test_a_broken_record_is_none(tmp_path):
  # Guards: a training that cannot start for a file that only warns.
  path = keep("a.task", NATIVE, SIZES)
  path.write_text('{"schema": "mjrl/size/1", "machi')
  assert "doctor --size" in past_the_knee("a.task", replace(NATIVE, num_envs=4096), 128)


def test_the_recipe_s_own_number_is_among_those_tried():
  # Guards: a table without the line that users look for.
  assert list(islice(sizing.counts(NATIVE, 100), 5)) == [16, 32, 64, 100, 128]
  assert list(islice(sizing.counts(NATIVE, 128), 5)) == [16, 32, 64, 128, 256]


def test_sizes_are_those_of_the_real_training(monkeypatch, one_torch_thread):
  # Guards: a rollout that is cut short by the clock and learned from with whatever lay in storage;
  # a table that ends with a crash where memory ends.
  monkeypatch.setattr(sizing, "COLLECT_S", 0.0)
  learned = []
  update = sizing.Runner.__init__

  def spied(self, *args, **kwargs):
    update(self, *args, **kwargs)
    inner = self.alg.update
    self.alg.update = lambda: learned.append(self.alg.storage.step) or inner()

  monkeypatch.setattr(sizing.Runner, "__init__", spied)
  task = tasks.build("jumper.tripod")
  recipe = replace(task.recipes["native"], num_envs=4, rollout_steps=6)
  task = replace(task, recipes={"native": recipe})
  one, two, ended = sizing.measure(task, NATIVE, 1, iter([2, 4, 10**9]))
  assert [one.num_envs, two.num_envs] == [2, 4]
  assert learned == [12, 12, 6, 6]  # half of the envs, rollouts of twice the length
  assert one.env_steps_per_s == pytest.approx(24 / one.iteration_s)
  assert ended.startswith("1000000000 envs: --num_envs 1000000000 needs about")
