"""Plain values, as files and command lines give them, checked against Python's types."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mjrl.envs.describe import describe


def convert(value: Any, hint: Any) -> Any:
  """The value as the type wants it: lists become tuples, whole numbers may stand for numbers.

  Args:
    value: None, a bool, number or text, or lists of these.
    hint: bool, int, float, str, Path, a Literal, a tuple of such, or a union of such.

  Raises:
    ValueError: it is of another type; says the one that is wanted.
  """
  if not _fits(value, hint):
    raise ValueError(f"{shown(value)} does not do; it must be {wanted(hint)}")
  return _converted(value, hint)


def wanted(hint: Any) -> str:
  """A type in words."""
  arms = _arms(hint)
  if len(arms) > 1:
    return " or ".join(wanted(arm) for arm in arms)
  if get_origin(hint) is Literal:
    return f"one of {', '.join(map(str, get_args(hint)))}"
  if get_origin(hint) is tuple:
    items = get_args(hint)
    if items[1:] == (...,):
      return f"a list, each item {wanted(items[0])}"
    kinds = list(dict.fromkeys(map(wanted, items)))
    each = f"each {kinds[0]}" if len(kinds) == 1 else ", ".join(kinds)
    return f"a list of {len(items)}, {each}"
  words = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    Path: "a path",
    NoneType: "null",
  }
  return words.get(hint, "a value of another kind, which cannot be written here")


def hint_of(value: Any) -> Any:
  """The type that stands for "like this value"."""
  if isinstance(value, list | tuple):
    return tuple[tuple(map(hint_of, value))]  # type: ignore[misc]
  return type(value)


def param_hint(fn: Callable[..., Any], name: str, value: Any) -> Any:
  """The type of a row's parameter: as its function says, or like its present value."""
  try:
    said = get_type_hints(fn).get(name)
  except (NameError, TypeError):  # names that only a type checker sees, or no function at all
    said = None
  return said if said is not None and _known(said) else hint_of(value)


def shown(value: Any) -> str:
  """A value as one would write it on a command line."""
  return json.dumps(describe(value), ensure_ascii=False, default=str)


def flat(nested: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
  """Mappings within mappings as one, with dots between their keys; an empty one is a value.

  Raises:
    ValueError: two of the paths are the same.
  """
  found: dict[str, Any] = {}
  for key, value in nested.items():
    path = f"{prefix}{key}"
    nested_too = isinstance(value, Mapping) and value
    items = flat(value, f"{path}.") if nested_too else {path: value}
    for name in items:
      if name in found:
        raise ValueError(f"{name} stands there twice; leave one out")
    found |= items
  return found


def _arms(hint: Any) -> tuple[Any, ...]:
  return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _known(hint: Any) -> bool:
  if get_origin(hint) is tuple or len(_arms(hint)) > 1:
    return all(map(_known, (item for item in get_args(hint) if item is not ...)))
  return get_origin(hint) is Literal or hint in (bool, int, float, str, Path, NoneType)


def _fits(value: Any, hint: Any) -> bool:
  arms = _arms(hint)
  if len(arms) > 1:
    return any(_fits(value, arm) for arm in arms)
  if get_origin(hint) is Literal:
    return value in get_args(hint)
  if get_origin(hint) is tuple:
    if not isinstance(value, list | tuple):
      return False
    items = _items(hint, len(value))
    return len(items) == len(value) and all(map(_fits, value, items))
  if hint is float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
  if hint is int:
    return isinstance(value, int) and not isinstance(value, bool)
  if hint is Path:
    return isinstance(value, str | Path)
  return isinstance(hint, type) and isinstance(value, hint)


def _converted(value: Any, hint: Any) -> Any:
  arms = _arms(hint)
  if len(arms) > 1:
    return _converted(value, next(arm for arm in arms if _fits(value, arm)))
  if get_origin(hint) is tuple:
    return tuple(map(_converted, value, _items(hint, len(value))))
  return hint(value) if hint in (float, Path) else value


def _items(hint: Any, count: int) -> tuple[Any, ...]:
  items = get_args(hint)
  return (items[0],) * count if items[1:] == (...,) else items
