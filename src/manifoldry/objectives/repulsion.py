"""Weights of the repulsion between pairs of points."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.weights import entries, graph_laplacian, joint_weights, without_diagonal
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    canonical,
    check_nonnegative_entries,
    check_square,
    check_symmetric,
    plan_matrix,
    row_blocks,
)


class Repulsion(ABC):
    """Base class of the weights W⁻ ≥ 0 of repulsion, a symmetric matrix with zero diagonal.

    They sum to one unless scaled. A subclass that does not store the matrix works for many points.

    See Also
    --------
    UniformRepulsion : the same weight for all pairs.
    squared_distance_weights, projected_distance_weights : weights by distances in the data.
    Unnormalized : takes the weights.

    Examples
    --------
    Points that are far apart in the data repel each other more:

    >>> import numpy as np
    >>> from manifoldry.objectives import squared_distance_weights
    >>> repulsion = squared_distance_weights(np.array([[0.0], [1.0], [3.0]]))
    >>> repulsion.n, repulsion.at(np.array([0, 0]), np.array([1, 2])).round(3)
    (3, array([0.036, 0.321], dtype=float32))
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of points."""

    @abstractmethod
    def at(self, i: IntArray, j: IntArray) -> Array | float:
        """Return the weights of pairs (i, j) of different points.

        Parameters
        ----------
        i, j : array of int
            The points; the arrays are broadcast.

        Returns
        -------
        array or float
            The weights.
        """

    @property
    @abstractmethod
    def matrix(self) -> Matrix | None:
        """W⁻ divided by `scale`, dense or sparse; None if all pairs have the same weight."""

    @property
    def scale(self) -> float:
        """Factor of `matrix`."""
        return 1.0

    @property
    @abstractmethod
    def degrees(self) -> Array:
        """Sums of the rows of W⁻, (n,)."""

    @abstractmethod
    def laplacian_product(self, V: Array) -> Array:
        """Multiply the Laplacian of W⁻ by vectors.

        Parameters
        ----------
        V : array of shape (n,) or (n, k)
            The vectors.

        Returns
        -------
        array of the shape of `V`
            The products.
        """

    def rows(self, X: Matrix) -> Array:
        """Return the weights between new points and training points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        array of shape (n_new, n)
            The weights.
        """
        raise ValueError(
            "the repulsion of new points is unknown, because weights were passed for the training "
            "points only; pass repulsion='uniform' or 'squared_distance' to embed new points"
        )

    @property
    def factors(self) -> Array | None:
        """Factors of the training points, (n, n_factors), if the weights of new points have any."""
        return None

    def of_new_points(self, X: Matrix) -> Array | FactoredWeights:
        """Return the weights between new points and training points, factored if possible.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        array of shape (n_new, n) or FactoredWeights
            The weights.
        """
        return self.rows(X)

    def without_cache(self) -> Self:
        """Return a copy without arrays that can be recomputed from the data.

        Returns
        -------
        Repulsion
            The copy.
        """
        return self

    def scaled(self, factor: float) -> "Repulsion":
        """Return the weights times a factor.

        Parameters
        ----------
        factor : float
            The factor.

        Returns
        -------
        Repulsion
            The scaled weights.
        """
        return self if factor == 1 else ScaledRepulsion(self, factor)

    def operator(self) -> Matrix:
        """Return the Laplacian as a sparse matrix or linear operator.

        Returns
        -------
        sparse array or LinearOperator of shape (n, n)
            The Laplacian.
        """
        product = self.laplacian_product
        return LinearOperator((self.n, self.n), product, matmat=product, dtype=np.float64)

    def laplacian(self) -> Array:
        """Return the Laplacian as a dense matrix.

        Returns
        -------
        array of shape (n, n)
            The Laplacian.
        """
        what = f"the dense Laplacian of the repulsion of {self.n} points"
        plan_matrix((self.n, self.n), 40, what, "pass repulsion='uniform'")
        return self.laplacian_product(np.eye(self.n))


@dataclass(frozen=True)
class UniformRepulsion(Repulsion):
    """The same weight for all pairs, which needs no memory and gives the fastest sums.

    Parameters
    ----------
    n_points : int
        Number of points.
    total : float, default=1.0
        Sum of all weights.

    See Also
    --------
    squared_distance_weights : weights by distances in the data.
    Unnormalized : takes the weights.

    Examples
    --------
    >>> from manifoldry.objectives.repulsion import UniformRepulsion
    >>> UniformRepulsion(3).degrees.round(4)
    array([0.3333, 0.3333, 0.3333])
    """

    n_points: int
    total: float = 1.0

    def __post_init__(self) -> None:
        check_count("n_points", self.n_points, minimum=2)
        check_positive("total", self.total)

    @property
    def n(self) -> int:
        return self.n_points

    @property
    def pair_weight(self) -> float:
        """Weight of each pair."""
        return self.total / (self.n * (self.n - 1))

    def at(self, i: IntArray, j: IntArray) -> Array | float:
        return self.pair_weight

    @property
    def matrix(self) -> Matrix | None:
        return None

    @property
    def scale(self) -> float:
        return self.pair_weight

    @property
    def degrees(self) -> Array:
        return np.full(self.n, self.total / self.n)

    def laplacian_product(self, V: Array) -> Array:
        return self.pair_weight * self.n * (V - V.mean(axis=0))

    def rows(self, X: Matrix) -> Array:
        return np.broadcast_to(self.pair_weight, (X.shape[0], self.n))

    def scaled(self, factor: float) -> Repulsion:
        return replace(self, total=factor * self.total)


@dataclass(frozen=True, eq=False)
class SparseRepulsion(Repulsion):
    """Weights of a sparse graph: only pairs joined by an edge repel each other.

    Parameters
    ----------
    W : sparse array of shape (n, n)
        Symmetric weights that sum to one.
    """

    W: sparse.csr_array

    def __post_init__(self) -> None:
        object.__setattr__(self, "W", joint_weights(self.W, "repulsive weights"))

    @property
    def n(self) -> int:
        return int(self.W.shape[0])

    def at(self, i: IntArray, j: IntArray) -> Array | float:
        return entries(self.W, i, j)

    @property
    def matrix(self) -> Matrix | None:
        return self.W

    @property
    def degrees(self) -> Array:
        return np.asarray(self.W.sum(axis=1))

    def laplacian_product(self, V: Array) -> Array:
        return np.asarray(self.operator() @ V)

    def operator(self) -> Matrix:
        return graph_laplacian(self.W)


@dataclass(frozen=True, eq=False)
class DenseRepulsion(Repulsion):
    """Weights of all pairs as a dense matrix, in single or double precision.

    The matrix is not checked; use `as_repulsion` to check and scale a matrix.

    Parameters
    ----------
    W : array of shape (n, n)
        Symmetric weights that sum to one, with a zero diagonal.
    """

    W: Array

    @property
    def n(self) -> int:
        return len(self.W)

    def at(self, i: IntArray, j: IntArray) -> Array | float:
        return self.W[i, j]

    @property
    def matrix(self) -> Matrix | None:
        return self.W

    @property
    def degrees(self) -> Array:
        return self.W.sum(axis=1, dtype=np.float64)

    def laplacian_product(self, V: Array) -> Array:
        # In blocks, since a product of mixed precision copies its factors.
        product = [self.W[block] @ V for block in row_blocks(self.n, self.n)]
        return (self.degrees * V.T).T - np.concatenate(product)


@dataclass(frozen=True, eq=False)
class ScaledRepulsion(Repulsion):
    """Another repulsion times a factor."""

    weights: Repulsion
    factor: float

    @property
    def n(self) -> int:
        return self.weights.n

    @property
    def matrix(self) -> Matrix | None:
        return self.weights.matrix

    @property
    def scale(self) -> float:
        return self.factor * self.weights.scale

    def at(self, i: IntArray, j: IntArray) -> Array | float:
        return self.factor * self.weights.at(i, j)

    @property
    def degrees(self) -> Array:
        return self.factor * self.weights.degrees

    def laplacian_product(self, V: Array) -> Array:
        return self.factor * self.weights.laplacian_product(V)

    def rows(self, X: Matrix) -> Array:
        return self.factor * self.weights.rows(X)

    @property
    def factors(self) -> Array | None:
        return self.weights.factors

    def of_new_points(self, X: Matrix) -> Array | FactoredWeights:
        weights = self.weights.of_new_points(X)
        if isinstance(weights, FactoredWeights):
            return replace(weights, left=self.factor * weights.left)
        return self.factor * weights

    def without_cache(self) -> Self:
        return replace(self, weights=self.weights.without_cache())


def as_repulsion(repulsion: Repulsion | Matrix | str, n: int) -> Repulsion:
    """Return a Repulsion: uniform, from a matrix of weights (scaled to sum to one), or as given."""
    if isinstance(repulsion, str):
        if repulsion != "uniform":
            raise ValueError(
                f"repulsion={repulsion!r} must be 'uniform', a matrix of weights or a Repulsion"
            )
        repulsion = UniformRepulsion(n)
    if not isinstance(repulsion, Repulsion):
        repulsion = _given(repulsion)
    if repulsion.n != n:
        raise ValueError(
            f"the repulsion has {repulsion.n} points and the attraction {n}; pass weights for the "
            "same points"
        )
    return repulsion


def _given(W: Matrix) -> Repulsion:
    """Return a checked copy of a matrix of weights, without diagonal, scaled to sum to one."""
    what = "repulsive weights"
    if not sparse.issparse(W):
        given = np.asarray(W)
        plan_matrix(
            np.atleast_2d(given).shape[-2:],
            given.itemsize,
            f"a copy of the {what}",
            "pass them as a sparse matrix, or repulsion='uniform'",
        )
    W = canonical(sparse.csr_array(W, copy=True)) if sparse.issparse(W) else np.array(W, ndmin=2)
    if not np.issubdtype(W.dtype, np.floating):
        W = W.astype(np.float64)
    check_square(W, what)
    check_nonnegative_entries(W, what)
    check_symmetric(W, what)
    if sparse.issparse(W):
        W = without_diagonal(W)
    else:
        np.fill_diagonal(W, 0)
    total = float(W.sum(dtype=np.float64))
    if not 0 < total < np.inf:
        raise ValueError(
            f"the repulsive weights sum to {total} and cannot be scaled to sum to 1; pass finite "
            "weights with a positive sum, or repulsion='uniform'"
        )
    W /= total
    return SparseRepulsion(W) if sparse.issparse(W) else DenseRepulsion(W)
