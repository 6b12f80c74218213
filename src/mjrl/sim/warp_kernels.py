"""The few kernels that mujoco_warp does not have."""

# Warp reads the annotations of kernels, which are not quite Python's, and knows no `-> None`.
# ruff: noqa: ANN201
# pyright: reportInvalidTypeForm=false, reportAssignmentType=false, reportGeneralTypeIssues=false

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def copy_where(
  mask: wp.array(dtype=wp.bool),
  source: wp.array2d(dtype=wp.float32),
  target: wp.array2d(dtype=wp.float32),
):
  """Copy the rows of the masked envs."""
  env, column = wp.tid()
  if mask[env]:
    target[env, column] = source[env, column]


@wp.kernel
def find_bad(
  values: wp.array2d(dtype=wp.float32),
  limit: wp.float32,
  bad: wp.array(dtype=wp.bool),
):
  """Flag the envs that have a number which is NaN or further from 0 than the limit."""
  env, column = wp.tid()
  if not (wp.abs(values[env, column]) <= limit):
    bad[env] = True


@wp.kernel
def count_bits(
  bits: wp.array(dtype=wp.int32),
  counts: wp.array(dtype=wp.int32),
):
  """Count in how many envs each bit is set, and clear the bits."""
  env = wp.tid()
  found = bits[env]
  if found != 0:
    for k in range(counts.shape[0]):
      if (found >> k) & 1:
        wp.atomic_add(counts, k, 1)
    bits[env] = 0
