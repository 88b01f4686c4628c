"""Exact medians of numbers that are in parts on workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manifoldry.distributed.scheduler import combined, compute, delayed
from manifoldry.util.typing import Array, IntArray

# A number of 64 bits is found in digits of so many bits.
_DIGIT = 16


def median(parts: Sequence[Any]) -> float:
    """Return the median of nonnegative numbers.

    The bits of nonnegative floats, read as integers, have the order of the floats. Digit by digit,
    from the highest, workers count the numbers that begin with the digits found so far: no number
    leaves its worker.

    Parameters
    ----------
    parts : list of Delayed
        Arrays of nonnegative numbers, which are kept on workers.

    Returns
    -------
    float
        The median; NaN if there are no numbers.

    Examples
    --------
    >>> import dask
    >>> import numpy as np
    >>> from manifoldry.distributed.median import median
    >>> median([dask.delayed(np.array(part)) for part in ([0.5, 3.0], [], [2.0, 1e-30])])
    1.25
    """
    n = sum(compute([delayed(len)(part) for part in parts], "counting"))
    if n == 0:
        return float("nan")
    middle = [_of_rank(parts, rank) for rank in sorted({(n - 1) // 2, n // 2})]
    return float(np.mean(compute(middle, "computing a median")))


def _of_rank(parts: Sequence[Any], rank: int) -> Any:
    """The task of the number that has so many before it."""
    count, find = delayed(_counts), delayed(_next_digit)
    state: Any = (0, rank)
    for shift in range(64 - _DIGIT, -1, -_DIGIT):
        counts = combined([count(part, state, shift) for part in parts], sum)
        state = find(state, counts)
    return delayed(_number)(state)


def _counts(values: Array, state: tuple[int, int], shift: int) -> IntArray:
    """How many numbers have each next digit, of those that begin with the digits found."""
    bits = np.abs(np.asarray(values, dtype=np.float64)).view(np.uint64)
    leading = bits >> np.uint64(shift)
    same = (leading >> np.uint64(_DIGIT)) == np.uint64(state[0])
    digits = (leading[same] & np.uint64(2**_DIGIT - 1)).astype(np.intp)
    return np.bincount(digits, minlength=2**_DIGIT)


def _next_digit(state: tuple[int, int], counts: IntArray) -> tuple[int, int]:
    """The digits with the next one, and the rank among the numbers that begin with them."""
    before = np.cumsum(counts)
    digit = int(np.searchsorted(before, state[1], side="right"))
    return (state[0] << _DIGIT) | digit, state[1] - int(before[digit] - counts[digit])


def _number(state: tuple[int, int]) -> float:
    return float(np.array(state[0], dtype=np.uint64).view(np.float64))
