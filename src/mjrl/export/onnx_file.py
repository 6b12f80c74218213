"""actor.onnx: one file, weights inside, that says of itself what it is."""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onnx
import torch

from mjrl.export.actor import Actor

OPSET = 18


def onnx_bytes(actor: Actor, metadata: Mapping[str, Any]) -> bytes:
  """The actor as ONNX, the same bytes for the same actor and metadata.

  Args:
    actor: what to write.
    metadata: name to value, kept as JSON in the file's metadata_props.
  """
  shapes: tuple[Any, ...] = ({0: "batch"},)
  if actor.states:
    shapes += (tuple({1: "batch"} for _ in actor.states),)
  with _quiet():
    program = torch.onnx.export(
      actor,
      actor.examples(2),  # a size of 1 may be taken for a constant
      dynamo=True,
      opset_version=OPSET,
      input_names=actor.inputs,
      output_names=actor.outputs,
      dynamic_shapes=shapes,
      verbose=False,
    )
    assert program is not None  # it is with dynamo
    model = program.model_proto
  _forget_origin(model)
  for name, value in metadata.items():
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    model.metadata_props.add(key=name, value=text)
  onnx.checker.check_model(model, full_check=True)
  return model.SerializeToString(deterministic=True)


def external_data(model: onnx.ModelProto) -> list[str]:
  """Names of the weights that lie in another file."""
  outside = onnx.TensorProto.EXTERNAL
  return [t.name for t in model.graph.initializer if t.data_location == outside]


def _forget_origin(model: onnx.ModelProto) -> None:
  """Leave out where in Python each node comes from: paths of the machine that exported it."""
  graph = model.graph
  for item in (*graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info):
    del item.metadata_props[:]
    item.doc_string = ""
  del graph.metadata_props[:]


@contextmanager
def _quiet() -> Iterator[None]:
  """Without the exporter's remarks on what is not installed, and on its own workings."""
  logger = logging.getLogger("torch.onnx")
  level = logger.level
  logger.setLevel(logging.ERROR)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      yield
  finally:
    logger.setLevel(level)
