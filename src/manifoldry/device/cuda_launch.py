"""What launches of kernels share: numbers of threads, types and pointers."""

from typing import Any

import numpy as np

from manifoldry.util.typing import Array

THREADS = 128
"""Threads of a block, unless a kernel needs another number."""


def grid(n_threads: int) -> tuple[tuple[int], tuple[int]]:
    """Number of blocks, and of threads in each, for at least so many threads."""
    return (-(-n_threads // THREADS),), (THREADS,)


def pointer(array: Array | None) -> Any:
    """An array as the argument of a kernel; None is the null pointer."""
    return np.intp(0) if array is None else array


def c_type(dtype: Any) -> str:
    """Name of a floating-point type in C."""
    return "float" if dtype == np.float32 else "double"
