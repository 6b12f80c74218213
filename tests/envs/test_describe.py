"""Tasks as plain values."""

import yaml

from mjrl.envs.describe import describe, differences


def plain(value):
  if isinstance(value, dict):
    return all(isinstance(k, str) and plain(v) for k, v in value.items())
  if isinstance(value, list):
    return all(map(plain, value))
  return value is None or type(value) in (int, float, str, bool)


def test_a_description_is_plain(tripod):
  # Guards: a run file that cannot be written, or a checkpoint that cannot be loaded safely.
  description = describe(tripod)
  assert plain(description)
  assert yaml.safe_load(yaml.safe_dump(description)) == description


def test_a_description_holds_every_number(tripod):
  # Guards: two tasks that look the same in their run files.
  description = describe(tripod)
  assert description["rewards"]["gait"] == {
    "weight": 1.0,
    "fn": "mjrl.envs.terms.rewards:gait",
    "params": {"width_feet": 0.7, "max_air_s": 0.5, "max_contact_s": 1.0},
  }
  assert description["events"]["push"]["every_s"] == [1.0, 3.0]
  assert description["robot"]["mjcf"] == "jumper.xml"  # of no one's home folder
  assert len(description["curriculum"]["rungs"]) == 4


def test_differences_name_their_place():
  # Guards: "the checkpoint does not fit", and nothing more.
  old = {"a": 1, "b": {"c": [1, 2], "d": None}, "gone": 0}
  new = {"a": 1, "b": {"c": [1, 3], "d": None, "e": 5}}
  assert differences(old, new) == [
    "b.c: [1, 2] -> [1, 3]",
    "b.e: absent -> 5",
    "gone: 0 -> absent",
  ]
  assert differences(old, new, "x")[0].startswith("x.b.c: ")
  assert differences(old, old) == []


def test_the_same_task_does_not_differ(tripod):
  # Guards: a description that holds addresses of functions.
  from mjrl import tasks

  assert differences(describe(tripod), describe(tasks.build("jumper.tripod"))) == []
