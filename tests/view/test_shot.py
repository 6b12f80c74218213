from pathlib import Path

import pytest

from mjrl.view.shot import shot

GOOD = {"path": Path("a.mp4"), "size": "640x480", "fps": 25.0, "camera": "side", "control_hz": 50.0}


def test_a_film_is_as_asked():
  # Guards: width and height exchanged.
  found = shot(**GOOD | {"size": "320x240"})
  assert (found.width, found.height, found.fps, found.camera) == (320, 240, 25, "side")
  assert found.path.is_absolute()


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"path": Path("a.avi")}, "must end in .mp4"),
    ({"size": "641x480"}, "must be even"),
    ({"size": "640x481"}, "must be even"),
    ({"size": "640"}, "must be WIDTHxHEIGHT, such as 640x480"),
    ({"size": "640x-480"}, "must be WIDTHxHEIGHT"),
    ({"size": "10000x480"}, "from 64 to 3840"),
    ({"size": "0x0"}, "from 64 to 3840"),
    ({"fps": 60.0}, "from 1 to 50, the control rate"),
    ({"fps": 0.0}, "from 1 to 50"),
    ({"fps": float("nan")}, "from 1 to 50"),
    ({"camera": "sde"}, "did you mean 'side'"),
  ],
)
def test_what_cannot_be_is_refused(changes, message):
  # Guards: a replay that is played to its end, for a file that cannot be written.
  with pytest.raises(ValueError, match=message):
    shot(**GOOD | changes)


def test_a_folder_is_no_film(tmp_path):
  # Guards: an error of the operating system after all has been drawn.
  (tmp_path / "films.mp4").mkdir()
  with pytest.raises(ValueError, match="is a folder: name a file"):
    shot(**GOOD | {"path": tmp_path / "films.mp4"})
