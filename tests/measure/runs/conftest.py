"""Folders as runs leave them."""

import pytest

from mjrl import tasks, yaml_text
from mjrl.envs.describe import describe
from mjrl.learn.atomic import write_json
from mjrl.learn.sinks.csv_file import CsvFile
from mjrl.measure.files import write_json as write_measured

TRACKING = ("track_linear_velocity", "track_angular_velocity")


@pytest.fixture(scope="session")
def described():
  """The tripod task as a run's record has it."""
  task = describe(tasks.build("jumper.tripod"))
  return task, task.pop("recipes")["native"]


@pytest.fixture
def make_run(tmp_path, described):
  """Leave a run's folder; of what a killed or a crashed run lacks, None."""

  def make(name, task="jumper.tripod", *, iterations=3, summary={}, measured=None, **config):  # noqa: B006
    folder = tmp_path / "logs" / "jumper" / task / name
    folder.mkdir(parents=True)
    page, recipe = described
    record = {"task": page, "recipe": recipe, "command": f"train.py {name}"}
    settings = {"task": task, "backend": "native", "num_envs": 64, "seed": 1, "max_iterations": 9}
    (folder / "run.yaml").write_text(yaml_text.dump({**settings, **config, "record": record}))
    sink = CsvFile(folder)
    for k in range(iterations):
      scalars = {"Train/mean_reward": 50.0 + k, "Policy/mean_std": 0.5 - 0.01 * k}
      scalars |= {f"Episode_Reward/{row}": 1.0 + 0.1 * k for row in TRACKING}
      scalars |= {"Curriculum/command/level": 1, "Perf/collection_time": 2.0}
      scalars |= {"Perf/learning_time": 1.0, "Perf/env_steps": 3072 * (k + 1)}
      sink.write(k, scalars)
    if iterations:
      (folder / f"model_{iterations - 1}.pt").write_bytes(b"networks")
    if summary is not None:
      done = {
        "task": task,
        "backend": "native:cpu",
        "num_envs": 64,
        "seed": 1,
        "iterations": iterations,
        "env_steps": 3072 * iterations,
        "wall_s": 75.0,
        "reward_first": 50.0,
        "reward_last": 52.0,
        "tracking": {row: {"reached": 1.5, "weight": 2.0} for row in TRACKING},
        "curriculum": {"Curriculum/command/level": 2},
        "action_std": 0.48,
        "findings": [],
        "departures": [],
        "stopped_by": None,
        "failed": None,
      }
      write_json(folder / "summary.json", done | summary)
    if measured is not None:
      write_measured(folder / "measure" / "measure.json", measured)
    return folder

  return make
