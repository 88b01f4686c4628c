"""Dense kernel matrices between new points and training points, and their centering."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from manifoldry.device import say_on_cpu
from manifoldry.neighbors.base import UNKNOWN_AMONG
from manifoldry.neighbors.distances import (
    Frame,
    squared_distances,
)
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import row_blocks, spread_rows


class RawKernel(Protocol):
    """Interface of kernels between new points and training points."""

    @property
    def n_train(self) -> int:
        """Number of training points."""
        ...

    def matrix(self, X: Matrix) -> Array:
        """Uncentered kernel, (n_new, n_train)."""
        ...

    def among(self, X: Matrix) -> Array:
        """Uncentered kernel of new points with each other, (n_new, n_new)."""
        ...


@dataclass(frozen=True, eq=False)
class RBF:
    """Gaussian kernel exp(−gamma·d²), accurate for data of any offset and scale.

    `gamma` refers to distances in units of the frame.
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

        def exponential(block: Array) -> None:
            block *= -self.gamma
            np.exp(block, out=block)

        return self._function_of_squares(X, exponential)

    def among(self, X: Matrix) -> Array:
        """exp(−gamma·d²) of new points with each other, (n_new, n_new)."""
        return replace(self, X=X).matrix(X)

    def exponents(self, X: Matrix) -> Array:
        """gamma·d², (n_new, n_train)."""

        def scale(block: Array) -> None:
            block *= self.gamma

        return self._function_of_squares(X, scale)

    def _function_of_squares(self, X: Matrix, function: Callable[[Array], None]) -> Array:
        """Squared distances, (n_new, n_train), which a function modifies block by block."""
        given = sparse.issparse(X) or sparse.issparse(self.X)
        why = "the data are sparse" if given else "only that of training points is computed there"
        numbers = float(X.shape[0]) * self.n_train
        say_on_cpu("the Gaussian kernel of all pairs of points", why, numbers)
        return squared_distances(X, self.X, self.frame, accuracy=1e-9 / self.gamma, then=function)


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

        why = f"only kernel='rbf' is computed there, not {self.kernel!r}"
        say_on_cpu("the kernel of all pairs of points", why, float(X.shape[0]) * self.n_train)
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
        """The given rows, (n_new, n_train), as a dense array."""
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)

    def among(self, X: Matrix) -> Array:
        """Raise ValueError: only values with the training points are known."""
        raise ValueError(UNKNOWN_AMONG)


@dataclass(frozen=True, eq=False)
class Centered:
    """A kernel centered with its means over the training set, for kernel PCA and MDS.

    Means over new points are not used, so the rows of new points are independent.
    """

    raw: RawKernel
    column_means: Array  # (n_train,)
    grand_mean: float

    @classmethod
    def of(cls, raw: RawKernel, K: Array) -> tuple["Centered", Array]:
        """Return the centered kernel and the centered training matrix; overwrites `K`."""
        means = K.mean(axis=0)
        centered = cls(raw, means, float(means.mean()))
        # Subtracting sums of two terms, one for the row and one for the column, keeps symmetry.
        terms = means - centered.grand_mean / 2
        for rows in row_blocks(len(K), K.shape[1], budget=2**17):  # blocks stay in the cache
            K[rows] -= terms[rows, None] + terms
        return centered, K

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.raw.n_train

    def rows(self, X: Matrix) -> Array:
        """Centered kernel between new points and training points, (n_new, n_train)."""
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.raw.matrix(X)
            means = K.mean(axis=1, keepdims=True)
        if not np.isfinite(means).all() and not np.isfinite(K).all():
            infinite = K.shape[0] - int(np.isfinite(K).all(axis=1).sum())
            raise ValueError(
                f"kernel values of {infinite} rows with the training data overflow; check the "
                "units of X"
            )
        if np.may_share_memory(K, X):  # the caller's kernel values
            K = K.copy()
        terms = self.column_means - self.grand_mean
        for rows in row_blocks(len(K), K.shape[1], budget=2**17):  # blocks stay in the cache
            K[rows] -= means[rows]
            K[rows] -= terms
        return K

    def among(self, X: Matrix) -> Array:
        """Centered kernel of new points with each other, (n_new, n_new)."""
        return self.centered(self.raw.among(X), self.raw.matrix(X))

    def centered(self, among: Array, rows: Array) -> Array:
        """Center kernel values `among` new points, given those with the training points."""
        means = rows.mean(axis=1)
        return np.asarray(among - means[:, None] - means[None, :] + self.grand_mean)


def median_rbf(X: Matrix, gamma: float | None = None, sample: int = 1000) -> RBF:
    """Gaussian kernel on `X`; gamma is by default one over the median squared distance."""
    frame = Frame.of(X)
    if gamma is not None:
        scaled = gamma * frame.unit * frame.unit
        if not np.finfo(np.float64).tiny <= scaled < np.inf:
            raise ValueError(
                f"gamma={gamma:g} is out of proportion to data that extend over about "
                f"{frame.unit:.0e}: gamma·d² leaves the range of double precision; use the default "
                "gamma or rescale X"
            )
        return RBF(X, frame, scaled)
    rows = spread_rows(X.shape[0], sample)
    D2 = squared_distances(X[rows], X[rows], frame, accuracy=1e-12)
    off_diagonal = D2[~np.eye(len(rows), dtype=bool)]
    median = float(np.median(off_diagonal))
    if median == 0:
        positive = off_diagonal[off_diagonal > 0]
        median = float(np.median(positive)) if len(positive) else 1.0
    return RBF(X, frame, 1 / median)
