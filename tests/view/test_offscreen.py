import os

import pytest

from mjrl.view import offscreen


@pytest.fixture
def works(monkeypatch):
  """Let only the named libraries draw; returns those that were tried."""

  def only(*names):
    tried = []

    def probe(name, environ):
      tried.append(name)
      return (f"{name}'s", "") if name in names else ("", "no such library")

    monkeypatch.setattr(offscreen, "probe", probe)
    return tried

  return only


def test_what_can_draw_is_found(works):
  # Guards: a machine that could draw and is told that it cannot; a window system asked for where
  # there is no display.
  tried = works("osmesa")
  assert offscreen.find_library("linux", {}) == ("osmesa", "osmesa's")
  assert tried == ["egl", "osmesa"]
  works("glfw")
  assert offscreen.find_library("linux", {"DISPLAY": ":0"}) == ("glfw", "glfw's")
  assert offscreen.find_library("darwin", {}) == ("glfw", "glfw's")


def test_a_choice_never_falls_back(works):
  # Guards: MUJOCO_GL that is looked past.
  tried = works("egl")
  with pytest.raises(ValueError, match=r"MUJOCO_GL is osmesa\); osmesa: no such library"):
    offscreen.find_library("linux", {"MUJOCO_GL": "osmesa"})
  assert tried == ["osmesa"]
  with pytest.raises(ValueError, match="MUJOCO_GL is off; unset it"):
    offscreen.find_library("linux", {"MUJOCO_GL": "off"})


def test_where_nothing_draws_it_is_said_what_to_install(works):
  # Guards: an import error of PyOpenGL's in place of the name of a package.
  tried = works()
  with pytest.raises(ValueError, match="apt install libegl1 libgl1-mesa-dri") as caught:
    offscreen.find_library("linux", {})
  assert tried == ["egl", "osmesa"] and "libosmesa6" in str(caught.value)
  assert "egl: no such library; osmesa: no such library" in str(caught.value)


def test_a_driver_that_crashes_is_survived(monkeypatch):
  # Guards: a run that ends with the driver that it asked.
  assert offscreen.probe("egl", os.environ, "import os; os.abort()")[1].startswith("the test of it")
  assert offscreen.probe("egl", os.environ, "1 / 0")[1] == "ZeroDivisionError: division by zero"
  monkeypatch.setattr(offscreen, "PROBE_S", 0.5)
  assert "does not answer" in offscreen.probe("egl", os.environ, "import time; time.sleep(9)")[1]


def test_this_machine_draws(library):
  # Guards: a probe that says yes without having drawn.
  drawn_by, why = offscreen.probe(library, os.environ)
  assert drawn_by and not why
  drawn_by, why = offscreen.probe("no such thing", os.environ)
  assert not drawn_by and "no such thing" in why
