"""YAML as it is meant: `1e-3` is a number, and a key that stands twice is a mistake.

Below every layer: it imports none of them.
"""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
  def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen = set()
    for key, _ in node.value:
      name = str(key.value)
      if name in seen:
        raise yaml.MarkedYAMLError(
          problem=f"the key {name!r} stands twice", problem_mark=key.start_mark
        )
      seen.add(name)
    return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
  """Quotes the texts that the loader would take for numbers."""

  def ignore_aliases(self, data: Any) -> bool:
    return True  # every value in full: nobody should have to look up what &id001 is


for _class in (_Loader, _Dumper):
  # PyYAML reads numbers with an exponent only where they have a point and a sign: 1.0e-3.
  _class.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d[\d_]*(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
  )


def load(text: str) -> Any:
  """The plain value that a text stands for.

  Raises:
    ValueError: it is no YAML, with the line, in one sentence.
  """
  try:
    return yaml.load(text, _Loader)
  except yaml.MarkedYAMLError as error:
    line = error.problem_mark.line + 1 if error.problem_mark else "?"
    raise ValueError(f"line {line}: {error.problem}") from None
  except yaml.YAMLError as error:
    raise ValueError(f"it is no YAML: {' '.join(str(error).split())}") from None


def dump(value: Any, *, inline: bool = False) -> str:
  """A plain value as a text that `load` turns into the same value.

  Args:
    value: dicts, lists, texts, numbers, booleans and None.
    inline: whether the innermost lists and mappings stand in one line each.
  """
  return yaml.dump(
    value,
    Dumper=_Dumper,
    sort_keys=False,
    allow_unicode=True,
    width=100,
    default_flow_style=None if inline else False,
  )
