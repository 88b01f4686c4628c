"""Repulsion with weights proportional to the squared distances of the data."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from manifoldry.neighbors.distances import Frame, squared_distances, squared_norms
from manifoldry.objectives.repulsion import DenseRepulsion, Repulsion
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_matrix, row_blocks


@dataclass(frozen=True, eq=False)
class SquaredDistanceRepulsion(Repulsion):
    """Weights ‖xᵢ − xⱼ‖² of the data, scaled to sum to one; see `squared_distance_weights`.

    The n² weights are computed on first use and cached. Products with their Laplacian and weights
    of new points are computed from the data.
    """

    X: Matrix
    frame: Frame
    total: float
    """Sum of the squared distances, in the units of the frame."""
    dtype: Any
    accuracy: float = 1e-9
    """Error bound of squared distances, relative to the squared unit of the frame."""

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def weights(self) -> Array:
        """Weights of all pairs."""
        return self._pairs.W

    @cached_property
    def _pairs(self) -> DenseRepulsion:
        W = np.empty((self.n, self.n), dtype=self.dtype)
        for block in row_blocks(self.n, self.n):
            W[block] = self.rows(self.X[block])
        return DenseRepulsion(W)

    def at(self, i: IntArray, j: IntArray) -> Array | float:
        return self._pairs.at(i, j)

    @property
    def matrix(self) -> Matrix | None:
        return self.weights

    @property
    def degrees(self) -> Array:
        """Sums of the rows of W⁻, in O(n·n_features)."""
        return self._degrees(self.frame.apply(self.X)) / self.total

    def laplacian_product(self, V: Array) -> Array:
        """The Laplacian of W⁻ times vectors, in O(n·n_features)."""
        A, V = self.frame.apply(self.X), V - V.mean(axis=0)
        product = (self._degrees(A) * V.T).T - squared_norms(A) @ V + 2 * (A @ (A.T @ V))
        # In exact arithmetic the product has mean zero.
        return (product - product.mean(axis=0)) / self.total

    def _degrees(self, A: Matrix) -> Array:
        """Σⱼ‖aᵢ − aⱼ‖²; the data `A` need not be centered."""
        s = squared_norms(A)
        return np.asarray(self.n * s + s.sum() - 2 * (A @ (A.T @ np.ones(self.n))))

    def rows(self, X: Matrix) -> Array:
        return squared_distances(X, self.X, self.frame, self.accuracy) / self.total

    def without_cache(self) -> Self:
        return replace(self)


def squared_distance_weights(
    X: Matrix, dtype: Any = np.float32, accuracy: float = 1e-9
) -> SquaredDistanceRepulsion:
    """Compute weights of repulsion that are the squared distances of the rows of `X`.

    The n² weights are scaled to sum to one.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The data; they are not copied.
    dtype : data type, default=float32
        Type of the n² weights.
    accuracy : float, default=1e-9
        Error bound of squared distances, relative to the squared extent of the data.

    Returns
    -------
    SquaredDistanceRepulsion
        The weights, a :class:`Repulsion`.

    See Also
    --------
    projected_distance_weights : approximate weights for many points.
    UniformRepulsion : the same weight for all pairs.
    manifoldry.ElasticEmbedding : takes them as ``repulsion``.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.squared_distance import squared_distance_weights
    >>> squared_distance_weights(np.array([[0.0], [1.0], [3.0]])).weights.round(3)
    array([[0.   , 0.036, 0.321],
           [0.036, 0.   , 0.143],
           [0.321, 0.143, 0.   ]], dtype=float32)
    """
    n = X.shape[0]
    plan_matrix(
        (n, n),
        np.dtype(dtype).itemsize,
        f"repulsion by the squared distances of {n} points",
        "pass repulsion='uniform'",
    )
    frame, total = Frame.of(X), 0.0
    for block in row_blocks(n, n):
        total += float(squared_distances(X[block], X, frame, accuracy).sum())
    if not 0 < total < np.inf:
        raise ValueError(
            f"the squared distances of the {n} rows of X sum to {total} and cannot be scaled to "
            "sum to 1; pass finite rows that do not all coincide, or repulsion='uniform'"
        )
    return SquaredDistanceRepulsion(X, frame, total, dtype, accuracy)
