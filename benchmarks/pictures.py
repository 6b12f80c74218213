"""The pictures of README and docs, from checkpoints that the documented commands trained.

python benchmarks/pictures.py
python benchmarks/pictures.py tripod_gait scenes --log_dir logs --out docs
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray
from PIL import Image

from mjrl.view.offscreen import find_library
from mjrl.view.shot import CAMERAS, View

MOST_BYTES = 200_000
COLOURS = (256, 192, 128, 96, 64)
"""Numbers of colours to try, the most that make a file small enough."""
WALK_M_S = 0.25
SETTLE_STEPS = 150
PORTRAIT = View(146.0, -14.0, 5.6)
STRIP = View(112.0, -17.0, 6.4)
STEPS_PER_TILE = 2
GAP_PX = 8
INK, DOWN, CLOCK = "#222222", "#0072B2", "#d8d8d8"


@dataclass(kw_only=True)
class Flags:
  """Which pictures, of what, and where to."""

  log_dir: Path = Path("logs")
  """Folder of all runs; the newest of each task is taken."""
  out: Path = Path("docs")
  """Folder to write."""
  names: tyro.conf.Positional[list[str]] = field(default_factory=list)
  """Pictures to make; all if none is named."""


def artist(scene: str, width: int, height: int, view: View) -> Any:
  """Somebody who draws jumper in a scene, and its HOME pose."""
  from mjrl import tasks
  from mjrl.envs.scene import compile_scene
  from mjrl.view.drawing import Artist
  from mjrl.view.film import Subject

  task = replace(tasks.build("jumper.tripod"), scene=scene)
  robot, model = task.robot, compile_scene(task)
  subject = Subject(
    model=model, base_body=robot.base_body, home_height_m=robot.home_height_m, tiles=1
  )
  return Artist(subject, width, height, view, fine=True), model.key("home").qpos


def portrait(scene: str, width: int, height: int, view: View) -> NDArray[np.uint8]:
  """jumper at HOME."""
  one, home = artist(scene, width, height, view)
  picture = one.draw(one.place(home)).copy()
  one.close()
  return picture


def jumper(log_dir: Path) -> Image.Image:
  """The robot."""
  return Image.fromarray(portrait("studio", 960, 600, PORTRAIT))


def scenes(log_dir: Path) -> Image.Image:
  """Every scene of the list, with its name."""
  from mjrl.envs.scenes import SCENES
  from mjrl.view.drawing import captioned, font

  tiles = [
    captioned(portrait(name, 400, 280, CAMERAS["follow"]), [name], font(16)) for name in SCENES
  ]
  rows = [np.concatenate(tiles[k : k + 3], 1) for k in range(0, len(tiles), 3)]
  return Image.fromarray(np.concatenate(rows))


def walked(task_name: str, log_dir: Path) -> tuple[Any, list[Any], list[Any]]:
  """A task's gait, and positions and contacts of every control step of one cycle of it."""
  import torch

  from mjrl import tasks
  from mjrl.envs.policy import advance, begin
  from mjrl.learn import checkpoints
  from mjrl.measure.replay import open_replay
  from mjrl.sim.resolve import Resolved

  torch.set_num_threads(1)
  task = tasks.build(task_name)
  replay = open_replay(
    task,
    Resolved(backend="native", device="cpu", num_envs=1, threads=1, torch_threads=1, reasons={}),
    seed=0,
    agent="trained",
    checkpoint=checkpoints.find(log_dir, task.robot.name, task_name, None),
    command=(WALK_M_S, 0.0, 0.0),
    posture=None,
    obs_noise=False,
    physics_hz=None,
    measure=False,
  )
  env = replay.env
  env.commands.fix(torch.tensor([[WALK_M_S, 0.0, 0.0]]))
  observations = begin(env, replay.policy)
  qpos, contact = [], []
  assert task.gait is not None  # these are pictures of gaits
  for step in range(SETTLE_STEPS + 2 * task.gait.cycle_steps):
    begun = step >= SETTLE_STEPS and (qpos or int(env.clock_steps[0]) == 0)
    if begun and len(qpos) < task.gait.cycle_steps:
      qpos.append(env.backend.read("qpos")[0].numpy().copy())
      contact.append(env.state.foot_contact[0].numpy().copy())
    observations = advance(env, replay.policy, observations).observations
  return task, qpos, contact


def gait(task_name: str) -> Callable[[Path], Image.Image]:
  """A strip of one cycle, over which feet are on the ground, and which should be."""

  def strip(log_dir: Path) -> Image.Image:
    import matplotlib.pyplot as plt

    task, qpos, contact = walked(task_name, log_dir)
    steps = range(0, len(qpos), STEPS_PER_TILE)
    one, _ = artist("studio", round(2640 / len(steps)) - GAP_PX, 360, STRIP)
    heading_rad = float(np.mean([one.place(q) for q in qpos]))
    tiles = []
    for step in steps:
      one.place(qpos[step])
      tiles += [one.draw(heading_rad).copy(), np.full((360, GAP_PX, 3), 255, np.uint8)]
    one.close()
    figure, (above, below) = plt.subplots(
      2, 1, figsize=(13.2, 3.8), height_ratios=(1.8, 1.6), layout="constrained", dpi=100
    )
    above.imshow(np.concatenate(tiles, 1), aspect="auto")
    above.axis("off")
    contacts(below, task, np.array(contact), steps)
    with tempfile.TemporaryFile() as file:
      figure.savefig(file)
      plt.close(figure)
      file.seek(0)
      return Image.open(file).convert("RGB")

  return strip


def contacts(ax: Any, task: Any, contact: NDArray[np.bool_], steps: Sequence[int]) -> None:
  """Bars of the feet on the ground, over those of the clock, and lines where pictures are from."""
  feet, dt_ms = task.robot.feet, 1000 * task.control_dt_s
  wanted = np.array(task.gait.contact_table(feet))
  for row in range(len(feet)):
    for of, height, colour in ((wanted, 0.8, CLOCK), (contact, 0.45, DOWN)):
      bars = [(k * dt_ms, dt_ms) for k in range(len(of)) if of[k, row]]
      ax.broken_barh(bars, (row - height / 2, height), color=colour, linewidth=0)
  for step in steps:
    ax.axvline(step * dt_ms, color=INK, lw=0.8, ls=(0, (2, 3)))
  ax.set_xlim(0, len(contact) * dt_ms)
  ax.set_ylim(len(feet) - 0.5, -0.5)
  ax.set_yticks(range(len(feet)), feet)
  ax.set_xticks([step * dt_ms for step in steps])
  ax.set_xlabel(
    f"ms of one cycle of {task.gait.name} at {WALK_M_S:g} m/s; grey: by the clock, blue: on the "
    "ground; each picture is of its left edge"
  )
  ax.spines[["top", "right", "left"]].set_visible(False)
  ax.tick_params(length=0)


def measured(task_name: str) -> Callable[[Path], Image.Image]:
  """measure.png of the newest measured replay."""

  def shrunk(log_dir: Path) -> Image.Image:
    from mjrl.learn import checkpoints

    path = checkpoints.find(log_dir, task_name.split(".")[0], task_name, None)
    picture = path.parent / "measure" / "measure.png"
    if not picture.exists():
      raise FileNotFoundError(f"{picture}: first, scripts/play.py --task {task_name} --measure")
    image = Image.open(picture).convert("RGB")
    width = 1320
    return image.resize(
      (width, round(width * image.height / image.width)), Image.Resampling.LANCZOS
    )

  return shrunk


def curves(task_name: str) -> Callable[[Path], Image.Image]:
  """Learning curves of every run of a task."""

  def drawn(log_dir: Path) -> Image.Image:
    runs = sorted((log_dir / task_name.split(".")[0] / task_name).glob("*/events.out.tfevents*"))
    with tempfile.TemporaryDirectory() as folder:
      path = Path(folder) / "curves.png"
      command = [sys.executable, str(Path(__file__).with_name("curves.py"))]
      command += [str(run.parent) for run in runs]
      subprocess.run([*command, "--eased-until", "900", "--out", str(path)], check=True)
      return Image.open(path).convert("RGB")

  return drawn


PICTURES: dict[str, Callable[[Path], Image.Image]] = {
  "jumper": jumper,
  "scenes": scenes,
  "tripod_gait": gait("jumper.tripod"),
  "tetrapod_gait": gait("jumper.tetrapod"),
  "flat_measure": measured("jumper.flat"),
  "tripod_measure": measured("jumper.tripod"),
  "tetrapod_measure": measured("jumper.tetrapod"),
  "ripple_measure": measured("jumper.ripple"),
  "tripod_curves": curves("jumper.tripod"),
}
"""Name of the file to what makes it."""


def save(image: Image.Image, path: Path) -> None:
  """Write a PNG of at most `MOST_BYTES`, with as many colours as that allows."""
  for colours in COLOURS:
    image.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size <= MOST_BYTES:
      print(f"{path}: {path.stat().st_size / 1000:.0f} kB, {colours} colours")
      return
  raise ValueError(f"{path} has {path.stat().st_size} bytes; at most {MOST_BYTES} are wanted")


def main() -> int:
  """Make the pictures; 1 if one could not be made."""
  flags = tyro.cli(Flags)
  unknown = sorted(set(flags.names) - set(PICTURES))
  if unknown:
    raise SystemExit(f"there is no picture {unknown[0]!r}; valid names: {', '.join(PICTURES)}")
  os.environ["MUJOCO_GL"], _ = find_library(sys.platform, os.environ)
  failed = False
  for name in flags.names or PICTURES:
    try:
      save(PICTURES[name](flags.log_dir.absolute()), flags.out / f"{name}.png")
    except (FileNotFoundError, ValueError) as error:
      print(f"{name}: {error}", file=sys.stderr)
      failed = True
  return int(failed)


if __name__ == "__main__":
  sys.exit(main())
