"""Whether a run that is repeated from its run.yaml is still the run that it was."""

from collections.abc import Mapping
from typing import Any

from mjrl.envs.describe import describe, differences
from mjrl.envs.task import Task
from mjrl.learn.run_folder import surroundings
from mjrl.sim.resolve import Resolved


def since(record: Mapping[str, Any], task: Task, resolved: Resolved) -> list[str]:
  """What has changed since a record was written, a line each: "path: then -> now".

  Args:
    record: of a run.yaml; an empty one differs in nothing.
    task: that is to run, with its overrides and events.
    resolved: engine and threads.
  """
  if not record:
    return []
  now = {"task": describe(task), "recipe": describe(task.recipes[resolved.backend])}
  del now["task"]["recipes"]  # the one that is used stands beside it
  now |= {"torch_threads": resolved.torch_threads, "processes": resolved.ranks.world_size}
  now |= surroundings()
  return [line for key in now if key in record for line in differences(record[key], now[key], key)]
