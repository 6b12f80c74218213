"""What a run prints first: everything that was resolved, and why."""

from collections.abc import Mapping
from pathlib import Path

from mjrl.sim.resolve import Resolved
from mjrl.sim.versions import PACKAGES, WARP_PACKAGES, versions_in_doubt, versions_of


def banner(
  *,
  title: str,
  task: str,
  robot: str,
  resolved: Resolved,
  sources: Mapping[str, str],
  seed: int,
  log_dir: Path,
  checkpoint: str,
  viewer: str,
  departures: str,
  scene: str,
  video: str = "",
  compared: Resolved | None = None,
) -> str:
  """The block of lines, one fact each, with its reason in brackets.

  Args:
    title: what is run.
    task: the task's name.
    robot: the robot's name.
    resolved: engine, device and counts.
    sources: flag to where its value came from, for those that were given or set.
    seed: the seed in force; drawn if sources lacks it.
    log_dir: where this task's runs lie.
    checkpoint: the file that is loaded, in words.
    viewer: what to look with, in words.
    departures: every way in which the run was asked to differ from the task.
    scene: what it happens in, in words.
    video: what is filmed, in words.
    compared: the engine that is measured after the first.
  """
  why = {
    field: reason.replace("given", sources.get(_FLAG_OF.get(field, field), "given"), 1)
    for field, reason in resolved.reasons.items()
  }
  engines = [engine for engine in (resolved, compared) if engine]
  warp = any(engine.backend == "warp" for engine in engines)
  packages = PACKAGES + (WARP_PACKAGES if warp else ())
  versions = ", ".join(f"{name} {version}" for name, version in versions_of(packages).items())
  doubt = versions_in_doubt() if warp else ""
  threads = str(resolved.threads) if resolved.threads else "none"
  processes = resolved.ranks.world_size
  in_all = f", in each of {processes} processes: {processes * resolved.num_envs} in all"
  lines = [
    ("task", f"{task}, robot {robot} ({sources.get('task', 'given')})"),
    ("backend", f"{resolved.name} ({why['backend']})"),
    ("device", f"{resolved.device} ({why['device']})"),
    *([("compared with", _compared(compared))] if compared else []),
    *[("CUDA graphs", engine.cuda_graphs) for engine in engines if engine.cuda_graphs],
    ("num_envs", f"{resolved.num_envs} ({why['num_envs']}){in_all if processes > 1 else ''}"),
    ("threads", f"{threads} ({why['threads']})"),
    ("torch threads", f"{resolved.torch_threads} ({why['torch_threads']})"),
    ("seed", f"{seed} ({sources.get('seed', 'drawn')})"),
    ("versions", f"{versions} ({doubt})" if doubt else versions),
    ("logs", str(log_dir)),
    ("checkpoint", checkpoint),
    ("scene", scene),
    ("viewer", viewer),
    *([("video", video)] if video else []),
    ("departures", departures),
  ]
  width = max(len(label) for label, _ in lines)
  return "\n".join([title, *(f"  {label.ljust(width)}  {text}" for label, text in lines)])


def _compared(engine: Resolved) -> str:
  threads = f", {engine.threads} threads" if engine.threads else ""
  return f"{engine.name} on {engine.device}{threads} ({engine.reasons['device']})"


# Fields of Resolved whose flag has another name.
_FLAG_OF = {"threads": "cpu_threads"}
