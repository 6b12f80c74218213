import pytest

from mjrl.cli import play
from mjrl.measure import evaluation

ZERO = ["--task", "hop.flat", "--agent", "zero", "--headless", "--seed", "3"]


@pytest.fixture
def evaluations(called, monkeypatch):
  """What evaluations were asked for."""
  asked = []
  monkeypatch.setattr(evaluation, "run_evaluation", lambda *a, **g: asked.append((*a, g)) or 0)
  return asked


def test_an_evaluation_is_what_was_asked_for(evaluations, called):
  # Guards: a flag that is printed and never delivered; envs that do not share the grid.
  argv = [*ZERO, "--evaluate", "--conditions", "base", "heavy", "--steps", "70"]
  assert play.main([*argv, "--physics_hz", "400"]) == 0 and not called.play
  ((contenders, given),) = evaluations
  assert [(one.agent, one.checkpoint) for one in contenders] == [("zero", None)]
  assert [row.name for row in given["conditions"]] == ["base", "heavy"]
  assert given["resolved"].num_envs == 8 * len(given["grid"].commands) == 200
  assert (given["steps"], given["seed"], given["physics_hz"]) == (70, 3, 400.0)
  assert play.main([*argv, "--set", "command.forward_m_s=[0, 0.5]"]) == 0
  assert evaluations[1][1]["resolved"].num_envs == 8 * 15


def test_two_policies_are_compared_by_their_files(evaluations, write_checkpoint, tmp_path, capsys):
  # Guards: the newest checkpoint taken for both, or A and B exchanged.
  paths = [tmp_path / f"logs/jumper/hop.flat/run/model_{k}.pt" for k in (5, 9)]
  write_checkpoint(paths[0])
  write_checkpoint(paths[1], overrides={"events.mass.when": "startup"})
  argv = ["--task", "hop.flat", "--headless", "--compare", *map(str, paths)]
  assert play.main(argv) == 0
  ((contenders, _),) = evaluations
  assert [one.checkpoint for one in contenders] == paths
  assert [one.task.events["mass"].when for one in contenders] == ["never", "startup"]
  assert f"A {paths[0]}; B {paths[1]}" in capsys.readouterr().out
  assert play.main([*argv[:-1], str(paths[0])]) == 2
  assert "does not differ from itself" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("argv", "says"),
  [
    (["--evaluate", "--measure"], "--measure does not go with --evaluate"),
    (["--evaluate", "--command", "0", "0", "0"], "--command does not go with --evaluate"),
    (["--evaluate", "--no-obs-noise"], "choose with --conditions clean"),
    (["--compare", "a", "b"], "--agent does not go with --compare"),
    (["--conditions", "clean"], "no effect without --evaluate or --compare"),
    (["--evaluate", "--conditions", "clen"], "did you mean 'clean'"),
    (["--evaluate", "--num_envs", "60"], "give 50 or 75"),
    (["--evaluate", "--steps", "20"], "at least 52"),
    (["--evaluate", "--compare_backend", "warp:cpu"], "no effect without --measure"),
    (["--evaluate", "--set", "rewards.action_rate.weight=1"], "a replay does not learn"),
  ],
)
def test_what_goes_with_no_evaluation_is_refused(evaluations, capsys, argv, says):
  # Guards: a flag that silently does nothing in an evaluation; a minute of building before it.
  assert play.main([*ZERO, *argv]) == 2
  assert says in capsys.readouterr().err and not evaluations


def test_a_changed_push_counts_in_an_evaluation(evaluations, capsys):
  # Guards: an override that --measure rightly refuses, refused where there are pushes.
  argv = [*ZERO, "--set", "events.push.horizontal_m_s=0.4"]
  assert play.main([*argv, "--measure"]) == 2
  assert play.main([*argv, "--evaluate"]) == 0
  ((contenders, _),) = evaluations
  assert contenders[0].task.events["push"].params["horizontal_m_s"] == 0.4
