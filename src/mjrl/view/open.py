"""Opening a viewer: the one that was chosen, or none and a line that says why."""

import os
import sys

from mjrl.view.choice import Choice
from mjrl.view.controls import Panel
from mjrl.view.display import probe_window, window_obstacle
from mjrl.view.frame import Subject
from mjrl.view.painter import Budget, Canvas, Painter


def open_viewer(choice: Choice, subject: Subject, panel: Panel, budget: Budget) -> Painter | None:
  """The chosen viewer of a subject, which tells the panel what its user asks for."""
  if choice.kind == "none":
    return None
  try:
    canvas = _page(choice, subject, panel) if choice.kind == "web" else _window(subject, panel)
  except Exception as error:  # looking is never worth a run
    print(f"{choice.kind}: none, {error}; going on without", flush=True)
    return None
  return Painter(canvas, budget)


def _window(subject: Subject, panel: Panel) -> Canvas:
  obstacle = window_obstacle(sys.platform, os.environ)
  if not obstacle and sys.platform != "darwin":
    obstacle = probe_window()
  if obstacle:
    raise OSError(obstacle)
  from mjrl.view.window import open_window

  window = open_window(subject, panel)
  print(f"window: {_drawn(subject)}", flush=True)
  return window


def _page(choice: Choice, subject: Subject, panel: Panel) -> Canvas:
  from mjrl.view.web import Page  # loads viser, which an installation may lack

  page = Page(subject, panel, choice)
  print(f"viewer: {page.address} ({_drawn(subject)})", flush=True)
  return page


def _drawn(subject: Subject) -> str:
  """The envs that are drawn, of how many."""
  if subject.num_envs == 1:
    return "env 0"
  if subject.drawn == subject.num_envs:
    return f"all {subject.num_envs} envs"
  return f"{subject.drawn} of {subject.num_envs} envs"
