"""What a run does beside learning.  None of it changes what is learned."""

from dataclasses import dataclass, field
from pathlib import Path

from mjrl.view.choice import Choice


@dataclass(frozen=True, kw_only=True)
class Options:
  """What a run keeps, shows and looks at.

  eval_every         iterations between evaluations; None evaluates never
  num_eval_episodes  complete episodes of an evaluation
  best_metric        scalar of an evaluation; `model_best.pt` is where it was highest
  video_every        iterations between films; None makes none
  video_library      that draws them, see `mjrl.view.offscreen`
  keep_last          checkpoints that are not pruned; None keeps all
  logger             "tensorboard" or "wandb"; event files and `scalars.csv` are written in any case
  tensorboard_port   first port to try; None serves no TensorBoard
  viewer             to look at the envs with
  profile            whether to time the parts of the run
  profile_output     JSON file for the times
  """

  eval_every: int | None = None
  num_eval_episodes: int = 64
  best_metric: str = "eval/reward"
  video_every: int | None = None
  video_library: str = ""
  keep_last: int | None = None
  logger: str = "tensorboard"
  tensorboard_port: int | None = None
  viewer: Choice = field(default_factory=Choice)
  profile: bool = False
  profile_output: Path | None = None

  def without_output(self) -> "Options":
    """Of a process that neither writes nor shows anything, and evaluates its share."""
    return Options(
      eval_every=self.eval_every,
      num_eval_episodes=self.num_eval_episodes,
      best_metric=self.best_metric,
    )
