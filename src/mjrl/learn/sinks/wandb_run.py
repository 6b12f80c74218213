"""A run on Weights & Biases."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_INIT_TIMEOUT_S, _FINISH_TIMEOUT_S = 30.0, 60.0
_ONLINE = ("online", "run", "shared")  # those of wandb's modes that need somebody who is logged in


class WandbRun:
  """Sends scalars to Weights & Biases, or keeps them in the run's folder, as `WANDB_MODE` says."""

  def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
    """Begin a run of the folder's name.

    Args:
      folder: of the run.
      config: what the run is, in plain values.

    Raises:
      ValueError: nobody is logged in.
      Exception: whatever else wandb raises, without a network for example.
    """
    import wandb  # here, because it takes a second, of which others are to know nothing

    # Looked at first: `wandb.init` would ask on a terminal, and try for long without a network.
    mode = wandb.setup().settings.mode
    if mode in _ONLINE and not wandb.login(prompt=False):
      raise ValueError(
        "nobody is logged in; `wandb login` does that, and WANDB_MODE=offline keeps the scalars "
        "in the run's folder"
      )
    self._newest = 0
    self._run = wandb.init(config=dict(config), settings=wandb.Settings(**_settings(folder)))

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    self._run.log(dict(scalars), step=iteration)
    self._newest = iteration

  def film(self, iteration: int, path: Path, gif: bytes) -> None:
    """See `Sink.film`: at the newest iteration, since wandb goes back to none."""
    import wandb

    video = wandb.Video(str(path), caption=f"iteration {iteration}", format="mp4")
    self._run.log({"video": video}, step=self._newest)

  def say(self, iteration: int, name: str, text: str) -> None:
    """See `Sink.say`; it stands among the run's results, where text is shown."""
    self._run.summary[name] = f"iteration {iteration}: {text}"

  def close(self) -> None:
    """Send what is not yet sent; an error that ends the run marks it as failed there, too."""
    self._run.finish(exit_code=0 if sys.exc_info()[0] is None else 1)


def _settings(folder: Path) -> dict[str, Any]:
  """Ours where the user has set no variable: an argument of `wandb.init` would overrule it."""
  ours = {
    "WANDB_PROJECT": ("project", "mjrl"),
    "WANDB_NAME": ("run_name", folder.name),
    "WANDB_DIR": ("root_dir", str(folder)),
    "WANDB_INIT_TIMEOUT": ("init_timeout", _INIT_TIMEOUT_S),
    "WANDB_FINISH_TIMEOUT": ("finish_timeout", _FINISH_TIMEOUT_S),
  }
  return {name: value for variable, (name, value) in ours.items() if variable not in os.environ}
