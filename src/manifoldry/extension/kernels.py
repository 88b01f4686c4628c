"""Kernels as functions of two sets of points, and their double centring."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from manifoldry._threads import map_threads, one_blas_thread
from manifoldry._typing import Array, Matrix
from manifoldry._validation import row_blocks
from manifoldry.eigen import Spectrum
from manifoldry.neighbors.distances import (
    Frame,
    corrected_squares,
    expansion_error,
    squared_norms,
)

# Directions whose eigenvalue is below this share of the largest carry only rounding.
RANK_TOLERANCE = 1e-12
UNKNOWN_AMONG = (
    "values of new points with each other are not known: the model was fitted on precomputed ones, "
    "between points and training points; fit it on the data"
)
# Below this many multiplications subtracting every pair outright costs next to nothing.
_DIRECT = 2e8


def squared_distances(X: Matrix, Y: Matrix, frame: Frame, accuracy: float) -> Array:
    """Squared Euclidean distances in units of the frame, each right to `accuracy`.

    One matrix product where rounding allows it, else (points close together but far from the
    origin) direct subtraction, which is slower and always right. Points that coincide are at
    distance exactly zero either way.
    """
    if sparse.issparse(X) or sparse.issparse(Y):
        X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    A, B = frame.apply(X), frame.apply(Y)
    squares = squared_norms(B)
    error = expansion_error(squared_norms(A), squares.max(initial=0.0), A.shape[1])
    work = float(X.shape[0]) * Y.shape[0] * X.shape[1]
    if error.max(initial=0.0) > accuracy or (work < _DIRECT and not sparse.issparse(X)):
        return _subtracted_squares(X / frame.unit, Y / frame.unit)
    D2 = np.empty((X.shape[0], Y.shape[0]))

    def fill(rows: slice) -> None:
        D2[rows] = corrected_squares(A[rows], B, squares, error[rows], X[rows], Y, frame.unit)

    with one_blas_thread():
        map_threads(fill, row_blocks(len(D2), D2.shape[1], budget=2**18))
    return D2


def _subtracted_squares(X: Matrix, Y: Matrix) -> Array:
    """Squared distances pair by pair, of sparse rows in blocks so that few are dense at a time."""
    from scipy.spatial.distance import cdist

    if not sparse.issparse(X):
        return np.asarray(cdist(X, Y, "sqeuclidean"))
    D2 = np.empty((X.shape[0], Y.shape[0]))
    for rows in row_blocks(*X.shape):
        dense = X[rows].toarray()
        for columns in row_blocks(*Y.shape):
            D2[rows, columns] = cdist(dense, Y[columns].toarray(), "sqeuclidean")
    return D2


class RawKernel(Protocol):
    """Anything that gives a kernel matrix between new points and the training points."""

    @property
    def n_train(self) -> int:
        """Number of training points."""
        ...

    def matrix(self, X: Matrix) -> Array:
        """Uncentred kernel, (n_new, n_train)."""
        ...

    def among(self, X: Matrix) -> Array:
        """Uncentred kernel of new points with each other, (n_new, n_new)."""
        ...


@dataclass(frozen=True, eq=False)
class RBF:
    """exp(−gamma·d²) to the training points, accurate at any offset and scale.

    `gamma` belongs to distances in units of the frame.
    """

    X: Matrix
    frame: Frame
    gamma: float

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return int(self.X.shape[0])

    def matrix(self, X: Matrix) -> Array:
        """exp(−gamma·d²), (n_new, n_train)."""
        K = self.exponents(X)

        def fill(rows: slice) -> None:
            np.negative(K[rows], out=K[rows])
            np.exp(K[rows], out=K[rows])

        map_threads(fill, row_blocks(len(K), K.shape[1], budget=2**18))
        return K

    def among(self, X: Matrix) -> Array:
        """exp(−gamma·d²) of new points with each other, (n_new, n_new)."""
        return replace(self, X=X).matrix(X)

    def exponents(self, X: Matrix) -> Array:
        """gamma·d², (n_new, n_train)."""
        D2 = squared_distances(X, self.X, self.frame, accuracy=1e-9 / self.gamma)
        D2 *= self.gamma
        return D2


@dataclass(frozen=True, eq=False)
class PairwiseKernel:
    """Any kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a callable."""

    X: Matrix
    kernel: str | Callable[..., float]
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return int(self.X.shape[0])

    def matrix(self, X: Matrix) -> Array:
        """Kernel values, (n_new, n_train)."""
        from sklearn.metrics.pairwise import pairwise_kernels

        K = pairwise_kernels(X, self.X, metric=self.kernel, filter_params=True, **self.params)
        return np.asarray(K, dtype=np.float64)

    def among(self, X: Matrix) -> Array:
        """Kernel values of new points with each other, (n_new, n_new)."""
        return replace(self, X=X).matrix(X)


@dataclass(frozen=True, eq=False)
class GivenKernel:
    """Kernel rows computed by the user, passed in place of data."""

    n_train: int

    def matrix(self, X: Matrix) -> Array:
        """The rows as they are, (n_new, n_train)."""
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)

    def among(self, X: Matrix) -> Array:
        """Nobody knows: only values with the training points were given."""
        raise ValueError(UNKNOWN_AMONG)


@dataclass(frozen=True, eq=False)
class Centered:
    """A kernel minus its means over the training set, as kernel PCA and MDS need it.

    Only training means enter, so that a new point does not depend on its companions.
    """

    raw: RawKernel
    column_means: Array  # (n_train,)
    grand_mean: float

    @classmethod
    def of(cls, raw: RawKernel, K: Array) -> tuple["Centered", Array]:
        """The centred kernel and the centred training matrix, made from `K` in place."""
        means = K.mean(axis=0)
        centered = cls(raw, means, float(means.mean()))
        K -= means[:, None]
        K -= means[None, :]
        K += centered.grand_mean
        return centered, K

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.raw.n_train

    def rows(self, X: Matrix) -> Array:
        """Centred kernel between new points and training points, (n_new, n_train)."""
        K = self.raw.matrix(X)
        return K - K.mean(axis=1, keepdims=True) - self.column_means + self.grand_mean

    def among(self, X: Matrix) -> Array:
        """Centred kernel of new points with each other, (n_new, n_new)."""
        means = self.raw.matrix(X).mean(axis=1)
        return self.raw.among(X) - means[:, None] - means[None, :] + self.grand_mean


def dual_vectors(spectrum: Spectrum) -> Array:
    """v/√ℓ for Nyström's formula where coordinates are √ℓ·v; zero where ℓ is not positive."""
    floor = RANK_TOLERANCE * np.abs(spectrum.values).max()
    inverse_root = np.where(spectrum.values > floor, spectrum.values, np.inf) ** -0.5
    return spectrum.vectors * inverse_root
