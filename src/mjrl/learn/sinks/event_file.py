"""TensorBoard's event file."""

import io
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event  # pyright: ignore
from tensorboard.compat.proto.summary_pb2 import Summary  # pyright: ignore
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from mjrl.learn.atomic import append_bytes, write_bytes


class EventFile:
  """A record per iteration, written when it is given; one that cannot be leaves the file whole.

  TensorBoard's own writer does that in a thread: a full disk is then met where nobody can say so,
  and a run that is killed loses what the thread had not yet written.
  """

  def __init__(self, folder: Path) -> None:
    """Of a run's folder, in which the first record begins the file."""
    now_s = time.time()
    # TensorBoard finds the files by "tfevents", and reads those of a folder in the order of names.
    name = f"events.out.tfevents.{int(now_s)}.{socket.gethostname()}.{os.getpid()}"
    self._path = folder / name
    self._head = _record(Event(wall_time=now_s, file_version="brain.Event:2"))
    self._begun = False

  def write(self, iteration: int, scalars: Mapping[str, float]) -> None:
    """See `Sink.write`."""
    values = [Summary.Value(tag=name, simple_value=value) for name, value in scalars.items()]
    self._keep(iteration, Summary(value=values))

  def say(self, iteration: int, name: str, text: str) -> None:
    """See `Sink.say`; TensorBoard shows it under its tab "Text"."""
    self._keep(iteration, text_pb(name, text))

  def film(self, iteration: int, path: Path, gif: bytes) -> None:
    """See `Sink.film`: TensorBoard shows moving pictures among its images."""
    width, height = Image.open(io.BytesIO(gif)).size
    image = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=gif)
    self._keep(iteration, Summary(value=[Summary.Value(tag="video", image=image)]))

  def close(self) -> None:
    """See `Sink.close`."""

  def _keep(self, iteration: int, summary: Summary) -> None:
    event = Event(wall_time=time.time(), step=iteration, summary=summary)
    if self._begun:
      append_bytes(self._path, _record(event))
    else:
      write_bytes(self._path, self._head + _record(event))
      self._begun = True


def _record(event: Event) -> bytes:
  buffer = io.BytesIO()
  RecordWriter(buffer).write(event.SerializeToString())
  return buffer.getvalue()
