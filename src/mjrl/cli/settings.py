"""Settings from the shell and from .env files: MJRL_<NAME> stands for a flag that was not given.

Order: command line > --config > shell > .env.local > .env > the flag's default. The .env files are
those of the current folder. Every MJRL_ key is checked, wherever it stands: an unknown one, or a
bad value, is an error.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from mjrl.names import nearest
from mjrl.sim.resolve import check_names

PREFIX = "MJRL_"

Flags = TypeVar("Flags")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
  """A value and where it came from, as the banner says it."""

  value: Any
  source: str


def _whole(text: str) -> int:
  try:
    return int(text)
  except ValueError:
    raise ValueError("it must be a whole number") from None


def _switch(text: str) -> bool:
  words = {"1": True, "true": True, "on": True, "yes": True}
  words |= {"0": False, "false": False, "off": False, "no": False}
  if text.lower() not in words:
    raise ValueError(f"it must be one of: {', '.join(words)}")
  return words[text.lower()]


def _backend(text: str) -> str:
  check_names(text, "auto")
  return text


def _device(text: str) -> str:
  check_names("auto", text)
  return text


KEYS: Mapping[str, Callable[[str], Any]] = {
  "MJRL_TASK": str,
  "MJRL_NUM_ENVS": _whole,
  "MJRL_PLAY_NUM_ENVS": _whole,
  "MJRL_BACKEND": _backend,
  "MJRL_DEVICE": _device,
  "MJRL_CPU_THREADS": _whole,
  "MJRL_LOG_DIR": Path,
  "MJRL_SEED": _whole,
  "MJRL_TENSORBOARD": _switch,
  "MJRL_TB_PORT": _whole,
}


def read_settings(folder: Path, environ: Mapping[str, str]) -> dict[str, Setting]:
  """The settings in force, by key.

  Raises:
    ValueError: a key that does not exist or a value that it cannot take, naming where it stands.
  """
  layers = [(".env", _read_env_file(folder / ".env"))]
  layers += [(".env.local", _read_env_file(folder / ".env.local")), ("the shell", environ)]
  settings: dict[str, Setting] = {}
  for where, values in layers:
    for key, text in values.items():
      if key.startswith(PREFIX):
        settings[key] = Setting(value=_parse(key, text, where), source=f"{key} in {where}")
  return settings


def given_flags(argv: Sequence[str]) -> set[str]:
  """Names of the flags that a command line gives."""
  words = [word.split("=")[0].removeprefix("--") for word in argv if word.startswith("--")]
  return {word.replace("-", "_").replace(".", "_").removeprefix("no_") for word in words}


def apply_settings(
  flags: Flags,
  argv: Sequence[str],
  keys: Mapping[str, str],
  settings: Mapping[str, Setting],
  config: Mapping[str, Setting],
) -> tuple[Flags, dict[str, str]]:
  """Fill the flags that were not given on the command line.

  Args:
    flags: what was parsed from argv.
    argv: the command line, to see which flags it gives.
    keys: flag name to MJRL_ key.
    settings: the settings in force.
    config: by flag name, what --config says.

  Returns:
    The flags, and for each that was given or set, where it came from.
  """
  given = given_flags(argv)
  sources = {field.name: "given" for field in dataclasses.fields(flags) if field.name in given}  # pyright: ignore
  found = {flag: settings[key] for flag, key in keys.items() if key in settings} | dict(config)
  found = {flag: setting for flag, setting in found.items() if flag not in given}
  sources |= {flag: setting.source for flag, setting in found.items()}
  values = {flag: setting.value for flag, setting in found.items()}
  return dataclasses.replace(flags, **values), sources  # pyright: ignore


def _read_env_file(path: Path) -> Mapping[str, str | None]:
  if not path.is_file():
    return {}
  with path.open(encoding="utf-8") as stream:
    for binding in parse_stream(stream):
      if binding.error:
        text = binding.original.string.strip()
        raise ValueError(f"{path.name} line {binding.original.line}: {text!r} is not KEY=value")
  return dotenv_values(path)


def _parse(key: str, text: str | None, where: str) -> Any:
  if key not in KEYS:
    raise ValueError(f"{where}: there is no setting {key}; {nearest(key, KEYS)}")
  if not text:
    raise ValueError(f"{where}: {key} is empty; give it a value or remove it")
  try:
    return KEYS[key](text)
  except ValueError as error:
    raise ValueError(f"{where}: {key} is {text!r}; {error}") from None
