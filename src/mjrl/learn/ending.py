"""What a run says of itself when it is over: to the folder, and to the console."""

from pathlib import Path
from typing import Any

from mjrl.envs.describe import describe
from mjrl.envs.scenes import physics_of
from mjrl.learn.atomic import write_json
from mjrl.learn.failures import CHECKPOINT, CONSOLE, PROFILE
from mjrl.learn.profile import Profile, table
from mjrl.learn.runner import Runner
from mjrl.sim.resolve import Resolved


def summary(runner: Runner, resolved: Resolved, seed: int, wall_s: float) -> dict[str, Any]:
  """What came of the run, in plain values."""
  log, env, saves = runner.last_log, runner.mjrl_env, runner.saves
  tracking = {
    name: {"reached": log.get(f"Episode_Reward/{name}"), "weight": env.task.rewards[name].weight}
    for name in env.rewards.rows
    if name.startswith("track_")
  }
  return {
    "task": env.task.name,
    "scene": {"name": env.task.scene, "physics": physics_of(env.task.scene, env.robot.name)},
    "backend": resolved.name,
    "processes": resolved.ranks.world_size,
    "num_envs": resolved.num_envs,
    "memory": describe(runner.recipe.memory),
    "seed": seed,
    "iterations": runner.next_iteration,
    "env_steps": runner.env_steps,
    "wall_s": round(wall_s, 1),
    "reward_first": runner.episodes.first_reward,
    "reward_last": log.get("Train/mean_reward"),
    "tracking": tracking,
    "eased_rewards": {
      number: {"own": own, "used": used} for number, (own, used) in env.rewards.eased().items()
    },
    "curriculum": {k: v for k, v in log.items() if k.startswith("Curriculum/")},
    "evaluation": {k: v for k, v in log.items() if k.startswith("eval/")},
    "action_std": log.get("Policy/mean_std"),
    "findings": runner.judge.plain(),
    "updates_skipped": runner.alg.skipped_updates,
    "file_failures": dict(runner.failures.counts),
    "lost": {f"{what}; cure: {cure}": count for (what, cure), count in env.lost.items()},
    "checkpoint": saves.newest.name if saves.newest else None,
    "best": saves.best,
  }


def say_farewell(runner: Runner, ended_by: str | None) -> None:
  """How the run ended, and what to do next.

  Args:
    runner: of the run.
    ended_by: name of the signal, or the error; None where it ended by itself.
  """
  with runner.failures.survived(CONSOLE):
    print("\n".join(_farewell(runner, ended_by)))


def show_profile(runner: Runner, profile: Profile, path: Path | None) -> None:
  """Print the table, and write the report; None writes none."""
  report = profile.report()
  with runner.failures.survived(CONSOLE):
    print(table(report))
  if path is None:
    return
  with runner.failures.survived(PROFILE):
    write_json(path, report)
  if PROFILE not in runner.failures.open:
    with runner.failures.survived(CONSOLE):
      print(f"profile: {path}")


def _farewell(runner: Runner, ended_by: str | None) -> list[str]:
  newest, best = runner.saves.newest, runner.saves.best
  if CHECKPOINT in runner.failures.open:
    whole = f"the newest whole one is {newest}" if newest else "there is none"
    return [f"the last checkpoint could not be written; {whole}"]
  if newest is None:
    return ["stopped before the first iteration was done: there is no checkpoint"]
  lines = [f"{f'stopped by {ended_by}' if ended_by else 'done'}: {newest}"]
  if best:
    lines.append("best: {metric} {value:.4g} at iteration {iteration}".format(**best))
  found = list(runner.judge.found.values())
  lines += [f"found at iteration {finding.iteration}: {finding.text}" for finding in found]
  return [
    *lines,
    "a finished run is not a result; measure it: "
    f"python scripts/play.py --task {runner.mjrl_env.task.name} --headless --measure",
  ]
