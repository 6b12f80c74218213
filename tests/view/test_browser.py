"""The page in a real browser: `make browser`, where there is Chromium."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import imageio.v3 as imageio
import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# A machine without a GPU draws in software, and one without a network asks nobody.
FLAGS = (
  "--no-sandbox --use-angle=swiftshader --enable-unsafe-swiftshader --disable-background-networking"
  " --disable-component-update --disable-quic --disable-sync --no-first-run"
)

pytestmark = [
  pytest.mark.browser,
  pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
  pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="make browser has it"),
]


@pytest.fixture
def replay(tmp_path):
  """A replay with a page, as a user starts one; gives its address."""
  command = [sys.executable, str(ROOT / "scripts/play.py"), "--task", "jumper.tripod"]
  command += ["--agent", "zero", "--num_envs", "2", "--viewer", "web", "--viewer_port", "8300"]
  environ = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
  out = tmp_path / "out.txt"
  with out.open("wb") as log:
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environ)
  end = time.monotonic() + 60
  while not (found := re.search(r"viewer: (http\S+) ", out.read_text())):
    assert time.monotonic() < end and process.poll() is None, out.read_text()
    time.sleep(0.1)
  yield found[1]
  process.terminate()
  process.wait()


@pytest.fixture
def page(replay):
  from playwright.sync_api import sync_playwright

  with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
    page = browser.new_page(viewport={"width": 900, "height": 600})
    page.set_default_timeout(60_000)  # a robot drawn in software is slow
    page.asked = []
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(replay)
    page.get_by_text("1x real time").wait_for()
    yield page
    browser.close()


def test_a_robot_is_seen_and_driven(page, replay, tmp_path):
  # Guards: a page that works in no browser: nothing drawn, keys and buttons that are not heard.
  page.get_by_role("button", name="forward").dispatch_event("click")
  page.get_by_text("asked +0.10").wait_for()
  page.mouse.click(200, 550)
  page.keyboard.press("ArrowUp")
  page.get_by_text("asked +0.20").wait_for()
  page.keyboard.press("Space")
  page.get_by_text("paused").wait_for()
  page.get_by_role("tab", name="Plots").click(force=True)  # without waiting for it to stand still
  page.get_by_text("feet on the ground").wait_for()
  assert page.locator("canvas").count() >= 5  # the scene, and four plots
  page.screenshot(path=tmp_path / "page.png")
  seen = imageio.imread(tmp_path / "page.png")[100:, :500].astype(int)
  orange = (seen[..., 0] > seen[..., 2] + 60).sum()
  assert orange > 500, "no robot in the picture"
  # Guards: a page that needs the internet.
  assert all(url.startswith((replay, "data:", "blob:", "ws://127.0.0.1")) for url in page.asked)
