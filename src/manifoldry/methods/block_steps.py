"""What is done to distributed data before the method: logarithms and standardized columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import combined, compute
from manifoldry.methods.preprocessing import Preprocessing, check_above_minus_one
from manifoldry.util.typing import Array

Moments = tuple[int, Array, Array]  # number of rows, mean, and sum of squares about it


def fit_blocks(rows: Rows, log1p: bool, scale: bool) -> tuple[list[tuple[str, Any]], Rows]:
    """Return the fitted steps by name, and the data that they make, lazily.

    They are those that :class:`Preprocessing` fits in memory; the mean and variance are of all
    rows, and take one pass over them.

    Parameters
    ----------
    rows : Rows
        The data.
    log1p : bool
        Whether to take log(1 + x).
    scale : bool
        Whether to standardize columns.

    Returns
    -------
    steps : list of (str, transformer)
        The fitted steps.
    rows : Rows
        The data after them.
    """
    two_rows = np.zeros((2, rows.n_features))
    steps, _ = Preprocessing(log1p=log1p, scale=scale).fit(two_rows, lambda note: None)
    for name, step in steps:
        if name == "scale":
            _set_moments(step, rows)
        rows = _applied(step, rows, checked=name == "log1p")
    return steps, rows


def _applied(step: Any, rows: Rows, *, checked: bool) -> Rows:
    transform = partial(_transformed, checked=checked)
    return replace(rows, array=rows.mapped(transform, step, rows.n_features))


def _transformed(block: Array, step: Any, *, checked: bool) -> Array:
    if checked:
        check_above_minus_one(block)
    return np.asarray(step.transform(block), block.dtype) if len(block) else block


def _set_moments(scaler: Any, rows: Rows) -> None:
    """Give a scaler the mean and the variance of all rows."""
    [(n, mean, squares)] = compute([combined(rows.tasks(_moments), _together)], "scales of columns")
    variance = squares / n
    rounding = n * np.finfo(float).eps
    constant = variance <= rounding * variance + (rounding * mean) ** 2
    scaler.n_samples_seen_ = n
    scaler.mean_, scaler.var_ = mean, variance
    scaler.scale_ = np.where(constant, 1.0, np.sqrt(variance))


def _moments(block: Array) -> Moments:
    if not len(block):
        return 0, np.zeros(block.shape[1]), np.zeros(block.shape[1])
    mean = block.mean(axis=0, dtype=np.float64)
    return len(block), mean, ((block - mean) ** 2).sum(axis=0)


def _together(parts: list[Moments]) -> Moments:
    """Moments of several blocks, by the formula of Chan, Golub and LeVeque (1983)."""
    counts = np.array([n for n, _, _ in parts])
    n, means = max(int(counts.sum()), 1), np.array([mean for _, mean, _ in parts])
    mean = counts @ means / n
    squares = np.sum([each for _, _, each in parts], axis=0) + counts @ (means - mean) ** 2
    return int(counts.sum()), mean, squares
