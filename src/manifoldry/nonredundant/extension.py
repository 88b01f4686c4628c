"""Out-of-sample extension of non-redundant coordinates.

A coordinate with constraints is not an eigenvector, so the formula of the wrapped method does not
return it at the training points. The differences are known there, and new points get the formula
plus the differences of the nearest training points, interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manifoldry.extension.base import Extension
from manifoldry.neighbors.base import Edges, NeighborIndex
from manifoldry.neighbors.precomputed import SparseDistances
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class InterpolationPoints:
    """Training points between which functions are interpolated by inverse distances.

    The weight of a point at distance d is (1/d − 1/r)², where r is the distance of the nearest
    point that is not used. So weights are continuous; at a training point its own is one and the
    others are zero. Points of other connected components than the nearest point have weight zero.
    """

    index: NeighborIndex
    rows: IntArray  # the training points: each embedded one, and the first one of duplicates
    labels: IntArray  # connected component of each of them
    n_neighbors: int = 12

    @classmethod
    def of(cls, index: NeighborIndex, first: IntArray, labels: IntArray) -> InterpolationPoints:
        """From an index of all training points, the first duplicate of each, and its component."""
        rows = np.flatnonzero((first == np.arange(len(first))) & (labels >= 0))
        if len(rows) < len(first):
            index = index.restrict(rows)
        return cls(index, rows, labels[rows])

    def neighbors(self, X: Matrix) -> tuple[IntArray, Array, Array]:
        """Positions in `rows` of the neighbors of new points, their weights, and the closeness.

        The closeness is (1 − d₁/d₂)² for the distances of the two nearest points: one at a training
        point, and zero at equal distances from two.
        """
        indices, d = self._nearest(X)
        indices, d, reach = indices[:, :-1], d[:, :-1], d[:, -1:]
        nearest, second = d[:, :1], d[:, 1:2]
        # Relative to the weight of the nearest point, so that distances near zero do not overflow.
        with np.errstate(invalid="ignore", divide="ignore"):
            fading = np.where(np.isinf(reach), 1.0, (reach - d) / (reach - nearest))
            weights = (np.where(d > nearest, nearest / d, 1.0) * fading) ** 2
            closeness = np.where(second > nearest, 1 - nearest / second, 0.0) ** 2
        weights[(reach == nearest)[:, 0]] = 1.0  # all are equally near
        weights[np.isinf(d) | (self.labels[indices] != self.labels[indices[:, :1]])] = 0.0
        weights[:, 0] = 1.0
        return indices, weights / weights.sum(axis=1, keepdims=True), closeness

    def _nearest(self, X: Matrix) -> tuple[IntArray, Array]:
        """Nearest points, one more than `n_neighbors`, and distances; inf if there are fewer."""
        if self.index.points is None and X.shape[1] > len(self.rows):
            X = X[:, self.rows]  # distances to all training points
        X, count = self.index.as_queries(X), min(self.n_neighbors + 1, len(self.rows))
        if isinstance(self.index, SparseDistances):  # rows may store fewer distances
            edges = self.index.within(X, np.inf)
        else:
            edges = Edges.of(*self.index.nearest(X, count))
        rows, shape = edges.rows, (X.shape[0], self.n_neighbors + 1)
        rank = np.arange(len(rows)) - edges.indptr[rows]
        kept = rank < shape[1]
        indices, distances = np.zeros(shape, dtype=np.intp), np.full(shape, np.inf)
        indices[rows[kept], rank[kept]] = edges.indices[kept]
        distances[rows[kept], rank[kept]] = edges.distances[kept]
        return indices, distances


@dataclass(frozen=True, eq=False)
class CorrectedExtension(Extension):
    """The extension of the wrapped method, corrected to return the embedding at training points.

    With the embedding f, the formula g of the wrapped method and the interpolation S of values at
    the training points, a new point x has the coordinates g(x) + S[f − g](x). If g is not
    continuous at training points, they are S[f](x) + (1 − c(x))·(g(x) − S[g](x)) with the
    closeness c: near training points S[f], and elsewhere nearly the same as before.
    """

    base: Extension
    points: InterpolationPoints
    embedding: Array  # f at the points, (n_points, n_components)
    formula: Array  # g at the points, (n_points, n_components)
    constrained: bool  # whether any coordinate differs from an eigenvector of the wrapped method

    @classmethod
    def of(
        cls,
        base: Extension,
        points: InterpolationPoints,
        embedding: Array,
        formula: Array,
        constrained: bool,
    ) -> CorrectedExtension:
        """From the embedding and the values of the formula at all training points."""
        f, g = (values[points.rows].astype(np.float64) for values in (embedding, formula))
        return cls(base, points, f, g, constrained)

    def transform(self, X: Matrix) -> Array:
        Y = self.base.transform(X)
        for block in row_blocks(X.shape[0], self.points.n_neighbors * (Y.shape[1] + 4)):
            indices, weights, closeness = self.points.neighbors(X[block])
            f, g = (
                np.einsum("qk,qkl->ql", weights, values[indices])
                for values in (self.embedding, self.formula)
            )
            kept = 1.0 if self.base.continuous_at_training else 1 - closeness
            Y[block] = f + kept * (Y[block] - g)
        return Y

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        return self.transform(X), self.base.component_coordinates(X)[1]

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        if self.constrained:
            raise ValueError(
                "the coordinates have different constraints, so no single kernel has all of them "
                "as eigenvectors; fit the estimator without NonRedundant"
            )
        raise ValueError(
            "NonRedundant has no equivalent kernel; these coordinates equal those of the "
            "estimator, so fit it without NonRedundant and call its equivalent_kernel"
        )
