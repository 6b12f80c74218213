"""The page, as a browser meets it: over HTTP and its websocket."""

import time
import urllib.request

import msgspec
import pytest
import viser
from viser import _messages as messages
from websockets.sync.client import connect

from mjrl.ports import free_port
from mjrl.view.choice import Choice
from mjrl.view.controls import Panel
from mjrl.view.plots import SHOWN_S, History, plots, row
from mjrl.view.web import Page

LIMITS = ((-0.5, 1.0), (-0.4, 0.4), (-0.8, 0.8))


def until(true):
  """Wait for the server's thread."""
  end = time.monotonic() + 10
  while not true():
    assert time.monotonic() < end
    time.sleep(0.005)


class Browser:
  """What a browser says, without one."""

  def __init__(self, page):
    at = page.address.replace("http", "ws")
    self._socket = connect(at, subprotocols=[f"viser-v{viser.__version__}"], max_size=None)
    origin = (0.0, 0.0, 0.0)
    self.say(
      messages.ViewerCameraMessage(
        wxyz=(1.0, 0.0, 0.0, 0.0), position=(1.0, 1.0, 1.0), fov=1.0, near=0.1, far=9.0,
        image_height=100, image_width=100, look_at=origin, up_direction=(0.0, 0.0, 1.0),
      )
    )  # fmt: skip

  def say(self, message):
    self._socket.send(msgspec.msgpack.encode(message.as_serializable_dict()))

  def set(self, handle, value):
    self.say(messages.GuiUpdateMessage(handle._impl.uuid, {"value": value}))

  def close(self):
    self._socket.close()


@pytest.fixture
def open_page(make_subject):
  opened = []

  def open_page(limits=LIMITS, num_envs=2):
    panel = Panel(num_envs, limits)
    page = Page(make_subject(num_envs), panel, Choice(kind="web", port=8123))
    opened.append(page)
    return page, panel

  yield open_page
  for thing in opened:
    thing.close()


def of_gui(page, kind):
  """The controls of a kind, by their label."""
  handles = page._server.gui._gui_input_handle_from_uuid.values()
  return {h.label: h for h in handles if isinstance(h, kind)}


def test_a_browser_is_served_and_noticed(open_page, capsys):
  # Guards: an address that is printed and answers nothing; frames made for nobody.
  page, _ = open_page()
  with urllib.request.urlopen(page.address) as answer:
    assert answer.status == 200 and b"<html" in answer.read().lower()
  assert page.address.startswith("http://127.0.0.1:") and not page.watched
  browser = Browser(page)
  until(lambda: page.watched)
  browser.close()
  until(lambda: not page.watched)
  assert capsys.readouterr().out == ""  # nothing but our own line


def test_a_port_that_is_taken_is_passed_over(open_page):
  # Guards: a second run whose page is the first one's.
  (first, _), (second, _) = open_page(), open_page()
  assert first.address != second.address


def test_buttons_keys_and_sliders_ask(open_page):
  # Guards: a page whose controls are not connected, or to one another's.
  page, panel = open_page()
  browser = Browser(page)
  until(lambda: page.watched)
  for group in of_gui(page, viser.GuiButtonGroupHandle).values():
    for option in group.options:
      browser.set(group, option)
  named = [r.name for r in panel.controls if r.steers]
  asked = []
  until(lambda: asked.extend(panel.take()) or len(asked) == len(named))
  assert asked == named
  for key in page._server.gui._command_handle_from_uuid.values():
    browser.say(messages.CommandTriggerMessage(key._impl.uuid))
  asked.clear()
  until(lambda: asked.extend(panel.take()) or len(asked) == len(named))
  assert asked == named
  forward, _, turn = page._sliders
  assert (forward.min, forward.max) == LIMITS[0]
  browser.set(forward, 0.25)
  browser.set(turn, -0.5)
  asked.clear()
  until(lambda: asked.extend(panel.take()) or len(asked) == 2)
  assert asked == [(0.25, 0.0, 0.0), (0.25, 0.0, -0.5)]
  browser.close()


def test_a_page_to_look_at_steers_nothing(open_page):
  # Guards: a slider over a training that seems to drive.
  page, panel = open_page(limits=None)
  assert not page._sliders
  assert list(of_gui(page, viser.GuiButtonGroupHandle)) == ["env"]
  assert panel.take() == []


def test_a_frame_is_what_the_page_shows(open_page, make_frame):
  # Guards: a page that stands still; a slider that fights the keyboard; a model that was changed
  # under the simulation's feet.
  page, panel = open_page()
  frame = make_frame((0.0, 0.0, 2.0), (0.5, 0.0, 3.0), lines=(("speed", "1x real time"),))
  page.paint(frame)
  box = next(g for g in page._scene._mesh_groups if 1 in g.body_ids)
  # The world moves under the robot that is followed.
  assert box.handle.batched_positions[0] == pytest.approx((0.0, 0.0, 0.0))
  assert box.handle.batched_positions[1] == pytest.approx((0.5, 1.0, 1.0))
  assert "**speed** 1x real time" in page._said.content
  assert [s.value for s in page._sliders] == pytest.approx([0.1, 0.2, 0.3])
  assert panel.take() == []
  speed, count = page._charts._charts[0]
  assert count == 2 and [float(part[-1]) for part in speed.data] == pytest.approx([0.0, 0.1, 0.4])


def test_plots_have_a_number_for_each_line(make_subject, make_frame):
  # Guards: a curve under another's name.
  names = [(plot.title, line) for plot in plots(make_subject()) for line in plot.lines]
  values = row(make_frame((0, 0, 1), (0, 0, 1)))
  numbers = dict(zip(names, values.tolist(), strict=True))
  assert numbers["forward, m/s", "asked"] == pytest.approx(0.1)
  assert numbers["turn, rad/s", "got"] == pytest.approx(0.6)
  # One step over the other: the first foot on top and up, the second below and down.
  assert numbers["feet on the ground", "L"] == pytest.approx(1.0)
  assert numbers["feet on the ground", "R"] == pytest.approx(0.7)
  assert numbers["torque, N·m", "knee"] == pytest.approx(0.7)
  assert numbers["reward terms, weighted, per second", "alive"] == pytest.approx(0.8)


def test_plots_keep_the_last_seconds_of_one_env(make_frame):
  # Guards: memory that grows with the run, a pause that fills it, one env's curve glued to
  # another's.
  history = History()
  for k in range(1000):
    for _ in range(2):
      history.add(make_frame((0, 0, 1), time_s=0.1 * k))
  times, rows = history.arrays()
  assert len(times) == len(rows) <= SHOWN_S / 0.1 + 2 and (times[1:] > times[:-1]).all()
  history.add(make_frame((0, 0, 1), env=1, time_s=100.0))
  assert len(history.arrays()[0]) == 1


def test_the_last_port_is_free_again(open_page):
  # Guards: a page that is served after its run, for good.
  page, _ = open_page()
  port = int(page.address.rpartition(":")[2])
  page.close()
  until(lambda: free_port(port) == port)
