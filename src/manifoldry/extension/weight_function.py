"""Weights of new points from a function that computes those of all pairs of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.extension.laplacian import GivenWeights
from manifoldry.util.cached import cached_property
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_matrix


@dataclass(frozen=True, eq=False)
class FunctionWeights:
    """Weights computed by a function from training points and new points together.

    See :class:`~manifoldry.extension.laplacian.WeightRows`.

    Parameters
    ----------
    function : callable
        Maps rows (m, n_features) to weights (m, m).
    X : array or sparse array of shape (n_train, n_features)
        The training points.
    affinity : array or sparse array of shape (n_train, n_train)
        Their weights, with a zero diagonal.
    """

    function: Callable[[Matrix], Any]
    X: Matrix
    affinity: Matrix

    @property
    def numbers_per_row(self) -> int:
        """See :class:`WeightRows`."""
        return int(self.X.shape[0])

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.X)

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """See :class:`WeightRows`."""
        n = self.X.shape[0]
        W = self._with_training(X)[n:, :n]
        known = self.identical(X)
        W[np.flatnonzero(known >= 0), known[known >= 0]] = 0.0  # no self-loops
        return GivenWeights().rows(W)

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """See :class:`WeightRows`."""
        n = self.X.shape[0]
        W = self._with_training(X)[n:, n:]
        return sparse.csr_array(W * np.exp(-(log_scale[:, None] + log_scale) / 2))

    def identical(self, X: Matrix) -> IntArray:
        """See :class:`WeightRows`."""
        return self._lookup.identical(X)

    def _with_training(self, X: Matrix, tolerance: float = 1e-5) -> Array:
        """Weights of training and new points, (n_train + n_new, n_train + n_new), diagonal zero.

        Raises a ValueError if those of the training points have changed by more than `tolerance`
        times the largest, since others would then depend on the rows of X that come with them.
        """
        stack: Any = sparse.vstack if sparse.issparse(self.X) else np.vstack
        n = self.X.shape[0]
        total = n + X.shape[0]
        what = f"the weights of all pairs of {total} training and new points"
        plan_matrix((total, total), 24, what, "fit fewer points")
        W = _dense(self.function(stack([self.X, X])))
        np.fill_diagonal(W, 0.0)
        change = np.abs(W[:n, :n] - self.affinity).max()
        if not change <= tolerance * self.affinity.max():
            raise ValueError(
                "the function passed as affinity gives other weights to the training points if new "
                "points are present, so it defines no weights of new points; pass a function of "
                "pairs of points, such as sklearn.metrics.pairwise.rbf_kernel"
            )
        return W


def _dense(W: Any) -> Array:
    """A copy as a dense array in double precision."""
    return np.array(W.toarray() if sparse.issparse(W) else W, dtype=np.float64)
