"""One table of controls, and what passes from the viewer's threads to the simulation's."""

import re
from pathlib import Path

from mjrl.view.controls import CONTROLS, KEYS, MOVES, Panel

LIMITS = ((-1.0, 1.0),) * 3
DOCS = Path(__file__).parents[2] / "docs" / "viewing.md"


def test_every_control_has_a_key_of_its_own():
  # Guards: a key that does two things, and one that the window or the page never hears of.
  keys = [row.key for row in CONTROLS]
  assert len(set(keys)) == len(keys) and set(keys) == set(KEYS)
  assert len({code for code, _ in KEYS.values()}) == len({name for _, name in KEYS.values()})
  assert set(MOVES) < {row.name for row in CONTROLS}
  assert len({row.name for row in CONTROLS}) == len(CONTROLS)


def test_no_key_is_one_of_mujoco_s_own():
  # Guards: driving forward that switches shadows off, as letters and the first digits do.
  assert not [row.key for row in CONTROLS if re.fullmatch("[a-z]|[0-5]", row.key)]


def test_the_documentation_has_the_table():
  # Guards: a key that was moved, and is documented where it was.
  rows = [
    f"| `{row.key}` | {row.name} | {row.does} | {'replay' if row.steers else 'everywhere'} |"
    for row in CONTROLS
  ]
  assert "\n".join(rows) in DOCS.read_text(encoding="utf-8")


def test_what_was_asked_for_arrives_once_and_in_order():
  # Guards: a press that is lost, done twice, or done after a later one.
  panel = Panel(3, LIMITS)
  panel.press("push")
  panel.ask((0.1, 0.0, 0.0))
  panel.press("reset")
  assert panel.take() == ["push", (0.1, 0.0, 0.0), "reset"]
  assert panel.take() == []


def test_looking_alone_steers_nothing():
  # Guards: a key pressed over a training, or a measurement, that changes what comes out.
  panel = Panel(3, None)
  for row in CONTROLS:
    panel.press(row.name)
  panel.ask((0.1, 0.0, 0.0))
  assert panel.take() == [] and [row.name for row in panel.controls] == ["next", "previous"]


def test_following_goes_round():
  # Guards: an env that there is not, after the last one or before the first.
  panel = Panel(3, None)
  panel.press("previous")
  assert panel.followed == 2
  panel.press("next")
  assert panel.followed == 0
