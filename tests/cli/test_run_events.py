"""Events of the run from a configuration: they arrive, or it is said why they cannot."""

import sys

import pytest
import yaml

from mjrl.cli import play, train

MODULE = """
import json
def note(moment, *, n):
  moment.scalars["noted"] = float(n)
def loose(moment, n):
  pass
_hidden = 3
"""


@pytest.fixture
def configured(called, tmp_path):
  """A command with one event, its row changed; returns the exit code."""
  (tmp_path / "my_events.py").write_text(MODULE)
  (tmp_path / "my_broken.py").write_text("import not_there_at_all")

  def go(*argv, command=train.main, **changes):
    row = {"call": "my_events:note", "when": "iteration", "params": {"n": 3}} | changes
    row = {key: value for key, value in row.items() if value is not None}
    (tmp_path / "some.yaml").write_text(yaml.safe_dump({"events": {"mine": row}}))
    return command(["--task", "hop.flat", "--config", "some.yaml", *argv])

  yield go
  sys.modules.pop("my_events", None)
  while str(tmp_path) in sys.path:
    sys.path.remove(str(tmp_path))


def test_a_function_of_the_current_folder_is_found(configured, called):
  # Guards: events.train of embodichain, which is validated and never arrives.
  assert configured() == 0
  (given,) = called.train
  event = given["task"].events["mine"]
  assert (event.when, event.fn.__name__, event.params) == ("iteration", "note", {"n": 3})
  assert list(given["run_events"]) == ["mine"] and "push" in given["task"].events


@pytest.mark.parametrize(
  ("changes", "says"),
  [
    ({"call": "my_evnts:note"}, "there is no module 'my_evnts', neither in"),
    ({"call": "my_evnts:note"}, "my_events"),
    ({"call": "my_events:not"}, "my_events.py has no function 'not'; did you mean 'note'"),
    ({"call": "my_events:_hidden"}, "has no function '_hidden'"),
    ({"call": "my_events"}, "it must be module:function"),
    ({"call": "my_events:loose"}, "behind a star"),
    ({"call": None}, "call is None; it must be a text"),
    ({"when": "iteratoin"}, "when is 'iteratoin'; did you mean 'iteration'"),
    ({"when": "reset"}, "when is 'reset'; "),
    ({"params": {"m": 3}}, "unknown parameters ['m'], missing ['n']"),
    ({"params": 3}, "params is 3; it must be a mapping"),
    ({"param": {}}, "there is no 'param'; did you mean 'params'"),
    ({"when": "eval_end"}, "never comes: there is no evaluation; give --eval_every"),
  ],
)
def test_an_event_that_could_not_be_called_is_refused(configured, called, capsys, changes, says):
  # Guards: an event that is found out to be misspelled when its moment comes, hours later.
  assert configured(**changes) == 2
  err = capsys.readouterr().err
  assert says in err and "mine" in err and err.count("\n") == 1 and not called.train


def test_with_evaluations_their_events_are_welcome(configured, called):
  # Guards: the rule above being too strict.
  assert configured("--eval_every", "5", when="eval_end") == 0


def test_a_module_that_fails_keeps_its_traceback(configured):
  # Guards: a mistake within the user's module told as a misspelled name of it.
  with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
    configured(call="my_broken:note")


def test_a_replay_has_no_events_of_a_run(configured, capsys):
  # Guards: an event that is configured for a replay, and never fires.
  assert configured("--agent", "zero", command=play.main) == 2
  assert "events has no effect here, only in train.py" in capsys.readouterr().err


def test_a_name_of_the_tasks_own_is_refused(called, tmp_path, capsys):
  # Guards: a push that is replaced by a function that prints.
  (tmp_path / "some.yaml").write_text("events: {push: {call: 'a:b', when: iteration}}")
  assert train.main(["--task", "hop.flat", "--config", "some.yaml"]) == 2
  assert "events.push: the task has an event of this name" in capsys.readouterr().err
