"""What tasks take of blocks of arrays and sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manifoldry.distributed.scheduler import combined, compute, delayed
from manifoldry.util.typing import Array, IntArray, Matrix


def taken(values: Any, rows: Array) -> Any:
    """Return some rows of a block, which may be sparse."""
    return values[rows]


def columns(block: Matrix) -> IntArray:
    """Return the column of each stored entry of a sparse block."""
    return np.asarray(block.indices, dtype=np.intp)


def row_numbers(block: Matrix) -> IntArray:
    """Return the row of each stored entry of a sparse block."""
    return np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))


def largest_entry(blocks: Sequence[Any], what: str) -> float:
    """Return the largest entry of sparse blocks, which are delayed; 0 if there are none."""
    return float(compute([combined([delayed(_largest)(each) for each in blocks], max)], what)[0])


def _largest(block: Matrix) -> float:
    return float(block.data.max(initial=0.0))
