"""Columns whose units differ: one of them has nearly all the variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.dimension.consensus import Consensus, column_fractions
from manifoldry.io.table import Table
from manifoldry.methods.preprocessing import Preprocessing


def decide_scale(steps: Preprocessing, table: Table, note: Callable[[str], None]) -> Preprocessing:
    """The steps; if they leave it open, columns whose units differ are standardized, with a note.

    Logarithms are not standardized: they have no units.
    """
    if steps.scale is not None:
        return steps
    found = None if steps.log1p else dominant_column(table)
    if found is not None:
        note(
            f"column {found[0]!r} has {found[1]:.1%} of the variance, as if units differed, so "
            "columns are standardized; --no-scale keeps their units"
        )
    return replace(steps, scale=found is not None)


def dominant_column(table: Table, most: int = 10_000) -> tuple[str, float] | None:
    """The named column with nearly all the variance, and its part of it; None if there is none."""
    X: Any = table.X
    X = X[:: max(1, table.n // most)]
    if table.names is None or sparse.issparse(X) or X.shape[1] < 3:
        return None
    X = X[np.isfinite(X).all(axis=1)]
    fractions = column_fractions(X) if len(X) > 1 else np.zeros(X.shape[1])
    top = int(fractions.argmax())
    if not fractions[top] > Consensus.max_column_fraction:
        return None
    return table.names[top], float(fractions[top])
