"""Distances from some points to all others, a block at a time: never all at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifoldry.neighbors.distances import (
    Frame,
    corrected_squares,
    expansion_error,
    squared_norms,
)
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Pairs:
    """Some points, each paired with all the others.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        All points.
    rows : array of shape (n_rows,)
        The points whose pairs are looked at.
    """

    X: Matrix
    rows: IntArray

    @classmethod
    def drawn(cls, X: Matrix, rng: np.random.Generator, max_rows: int) -> "Pairs":
        """Up to so many points, drawn where there are more."""
        n, max_rows = X.shape[0], check_count("max_rows", max_rows, minimum=2)
        rows = np.arange(n) if n <= max_rows else np.sort(rng.choice(n, max_rows, replace=False))
        return cls(X, rows)

    @property
    def n(self) -> int:
        """Number of all points."""
        return int(self.X.shape[0])

    @cached_property
    def frame(self) -> Frame:
        """Where the origin is, and the unit in which distances are given."""
        return Frame.of(self.X)

    @cached_property
    def spread(self) -> float:
        """Root mean squared distance of the points from their mean, in units of the frame."""
        total, squares = np.zeros(self.X.shape[1]), 0.0
        for block in row_blocks(self.n, self.X.shape[1]):
            F = self.frame.apply(self.X[block])
            total += np.asarray(F.sum(axis=0)).ravel()
            squares += float(squared_norms(F).sum())
        mean = total / self.n
        return float(np.sqrt(squares / self.n - mean @ mean))

    def blocks(self) -> Iterator[Array]:
        """Distances (n_rows, n_block) in units of the frame; infinite from a point to itself."""
        queries = self.frame.apply(self.X[self.rows])
        for block in row_blocks(self.n, len(self.rows), budget=2**22):
            yield self._block(queries, block)

    def _block(self, queries: Matrix, block: slice) -> Array:
        references = self.frame.apply(self.X[block])
        squares = squared_norms(references)
        error = expansion_error(squared_norms(queries), squares.max(), self.X.shape[1])
        D2 = corrected_squares(queries, references, squares, error, queries, references, 1.0)
        D = np.sqrt(D2, out=D2)
        itself = np.flatnonzero((self.rows >= block.start) & (self.rows < block.stop))
        D[itself, self.rows[itself] - block.start] = np.inf
        return D
