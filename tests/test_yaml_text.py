import pytest

from mjrl import yaml_text


def test_a_number_with_an_exponent_is_a_number():
  # Guards: `learning_rate: 1e-3` read as a text.
  text = "[1e-3, 1E3, -2e+4, .5e1, 1.0e-3, 1e, e3]"
  assert yaml_text.load(text) == [0.001, 1000.0, -20000.0, 5.0, 0.001, "1e", "e3"]


def test_what_is_written_is_what_is_read():
  # Guards: a run that is repeated with a number that lost its last digit, or a text made a number.
  value = {"a": [0.1 + 0.2, 1e-300, 3, True, None, "x"], "b": {"c": "1e5", "d": "12e34"}, "1": "on"}
  for inline in (False, True):
    assert yaml_text.load(yaml_text.dump(value, inline=inline)) == value


@pytest.mark.parametrize(
  ("text", "says"),
  [
    ("a: 1\nb: 2\na: 3", r"line 3: the key 'a' stands twice"),
    ("a: {b: 1, b: 2}", "the key 'b' stands twice"),
    ("a: [1", "line 1: "),
    ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
  ],
)
def test_what_is_wrong_is_said_in_one_line(text, says):
  # Guards: the first of two values dropped without a word.
  with pytest.raises(ValueError, match=says) as error:
    yaml_text.load(text)
  assert "\n" not in str(error.value)
