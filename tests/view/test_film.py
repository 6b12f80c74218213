"""Films, drawn and encoded by the process that the commands use, and read back."""

import pickle
import subprocess
import sys
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from PIL import Image

from mjrl.view.caption import Captions
from mjrl.view.film import Film, Frame, Subject
from mjrl.view.shot import Shot

BOX = """
<mujoco>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="5 5 .1" rgba="0 0 .6 1"/>
    <body name="base" pos="0 0 .1">
      <freejoint/>
      <geom type="box" size=".2 .05 .1" rgba=".8 .3 0 1"/>
      <geom type="sphere" pos=".2 0 .1" size=".06" rgba="1 1 1 1"/>
    </body>
  </worldbody>
</mujoco>
"""
STANDING = (0, 0, 0.1, 1, 0, 0, 0)
TURNED = (0, 0, 0.1, 0.7071, 0, 0, 0.7071)


@pytest.fixture
def a_shot(tmp_path):
  return Shot(path=tmp_path / "a.mp4", width=96, height=64, fps=5, camera="follow")


@pytest.fixture
def subject():
  model = mujoco.MjModel.from_xml_string(BOX)
  return Subject(model=model, base_body="base", home_height_m=0.1, tiles=1)


def frame(*qpos, began=True, lines=()):
  tiles = len(qpos)
  return Frame(qpos=np.array(qpos), began=np.full(tiles, began), lines=[lines] * tiles)


def test_a_film_is_one_that_plays_everywhere(a_shot, subject, library, tmp_path, read_film):
  # Guards: a film that only some players show, that has lost frames, or whose robots do not move.
  film = Film(a_shot, subject, library)
  for x in np.linspace(0, 1, 7):
    film.add(frame((x, 0, 0.1, 1, 0, 0, 0)))
  assert film.close() == a_shot.path
  about, found = read_film(a_shot.path)
  assert "Video: h264 (High)" in about and "yuv420p" in about and "96x64" in about
  assert "5 fps" in about and (len(found), film.frames) == (7, 7)
  assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]
  head = a_shot.path.read_bytes()
  assert head.find(b"moov") < head.find(b"mdat")  # the index first: it starts before it is loaded


def test_robots_have_tiles_of_their_own(a_shot, subject, library, read_film):
  # Guards: one robot shown as several, and one that is left out.
  shot = replace(a_shot, width=192, height=128, camera="side")
  film = Film(shot, replace(subject, tiles=3), library)
  film.add(frame(STANDING, STANDING, TURNED, began=False))
  film.close()
  (picture,) = read_film(shot.path)[1]
  first, second, third = picture[:64, :96], picture[:64, 96:], picture[64:, :96]
  assert np.abs(first.astype(int) - second).mean() < 3
  assert np.abs(first.astype(int) - third).mean() > 8
  assert picture[64:, 96:].mean() < 20  # there is no fourth


def test_a_camera_looks_at_the_robot_s_side_whatever_its_heading(
  a_shot, subject, library, read_film
):
  # Guards: "side" that is the world's, for robots that start at any heading.
  shot = replace(a_shot, camera="side")
  film = Film(shot, subject, library)
  film.add(frame(STANDING))
  film.add(frame(TURNED))  # an episode has begun: the camera goes round with it
  film.add(frame(STANDING, began=False))  # the robot turns, and the camera does not
  film.close()
  first, second, third = read_film(shot.path)[1]
  assert np.abs(first.astype(int) - second).mean() < 4
  assert np.abs(first.astype(int) - third).mean() > 8


def test_text_is_drawn(a_shot, subject, library, read_film):
  # Guards: a film that does not say what it shows.
  shot = replace(a_shot, width=320, height=240)
  film = Film(shot, subject, library)
  film.add(frame(STANDING))
  film.add(frame(STANDING, lines=("asked +0.25",)))
  film.close()
  plain, said = read_film(shot.path)[1]
  changed = np.abs(plain.astype(int) - said).max(2) > 60
  assert changed[:40, :120].mean() > 0.03 and changed[120:].mean() < 0.001


def test_a_film_that_fails_leaves_what_was_there(a_shot, subject, tmp_path):
  # Guards: a film half written over a good one, and a failure that nobody is told of.
  a_shot.path.write_bytes(b"a film")
  film = Film(a_shot, subject, "no such library")
  with pytest.raises(OSError, match=r"no film was made: .*no such library"):
    for _ in range(100_000):
      film.add(frame(STANDING))
  with pytest.raises(OSError, match="no film was made"):
    film.close()
  film = Film(a_shot, subject, "no such library")
  film.add(frame(STANDING))  # taken by a process that has not yet failed
  with pytest.raises(OSError, match=r"no film was made: .*no such library"):
    film.close()
  assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]
  assert a_shot.path.read_bytes() == b"a film"


def test_a_film_of_a_run_that_dies_does_not_appear(a_shot, subject, library, tmp_path):
  # Guards: a film cut short that looks whole: whoever sent the frames is gone.
  unfinished = tmp_path / "unfinished.mp4"
  source = pickle.dumps((a_shot, unfinished, None, subject, False))
  source += 80 * pickle.dumps(frame(STANDING))  # so many that some are in the file already
  env = {"MUJOCO_GL": library, "PYTHONPATH": ":".join(filter(None, sys.path))}
  command = [sys.executable, "-m", "mjrl.view.drawing"]
  done = subprocess.run(command, input=source, env=env, capture_output=True)
  assert done.returncode and list(tmp_path.iterdir()) == []


def test_frames_may_be_kept_for_later(a_shot, subject, library, tmp_path, read_film):
  # Guards: a film of a training that is never drawn, or has no excerpt.
  gif = tmp_path / "a.gif"
  film = Film(a_shot, subject, library, later=True, gif=gif)
  for _ in range(3):
    film.add(frame(STANDING))
  assert not film.drawing and not a_shot.path.exists()
  film.develop()
  film.close()
  assert len(read_film(a_shot.path)[1]) == 3
  with Image.open(gif) as image:
    assert image.format == "GIF" and image.size[0] <= 320


def test_captions_can_be_read():
  # Guards: a speed that flickers with every step, and one that is another robot's.
  captions = Captions(0.1, ["a", "b"])
  for k in range(20):
    captions.add(np.array([[0.5 + 0.3 * (-1) ** k, -0.001, 0], [0.1, 0, 0]], np.float32))
  (name, header, asked, does), other = captions.lines(2.0, np.array([[0.5, 0, 0], [0.2, 0, 0]]))
  assert name.startswith("a") and name.endswith("2.0 s") and "forward" in header
  assert asked.split() == ["asked", "+0.50", "+0.00", "+0.00"]
  assert abs(float(does.split()[1]) - 0.5) < 0.07 and does.split()[2] == "+0.00"
  assert other[3].split()[1] == "+0.10"
  assert len(captions.lines(2.0, None)[0]) == 3
