"""Weights of new points for diffusion maps."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.extension.laplacian import WeightRows
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class RandomWalkWeights:
    """Weights of new points, including self-transitions, divided by the density at both ends.

    A new point has a self-transition only if it coincides with a training point.
    """

    source: WeightRows
    own: Array  # (n_train,): weights of self-transitions
    factor: sparse.dia_array  # (n_train, n_train): (density / max_density) ** -alpha
    alpha: float
    max_density: float

    @property
    def numbers_per_row(self) -> int:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        return self.source.numbers_per_row

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        W, log_scale, nearest = self._with_self_transitions(X)
        log_density = self._log_density(W, log_scale)
        return sparse.csr_array(W @ self.factor), log_scale - self.alpha * log_density, nearest

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        log_density = self._log_density(*self._with_self_transitions(X)[:2])
        return self.source.among(X, log_scale + 2 * self.alpha * log_density)

    def _with_self_transitions(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        W, log_scale, nearest = self.source.rows(X)
        known = self.identical(X)
        old = np.flatnonzero(known >= 0)
        W = sparse.diags_array(np.exp(np.where(known >= 0, log_scale, 0.0))) @ W
        W += sparse.coo_array((self.own[known[old]], (old, known[old])), shape=W.shape)
        return W, np.where(known >= 0, 0.0, log_scale), nearest

    def _log_density(self, W: sparse.csr_array, log_scale: Array) -> Array:
        """Logarithm of the density, relative to the largest at a training point."""
        total = np.asarray(W.sum(axis=1)).ravel()
        # The density at a training point is at least its own weight. Without a lower bound, that
        # of points far from the data would vanish.
        with np.errstate(divide="ignore"):
            least = np.log(self.own.min())
        log_density = np.maximum(np.log(np.where(total > 0, total, 1.0)) + log_scale, least)
        return np.asarray(log_density - np.log(self.max_density))

    def identical(self, X: Matrix) -> IntArray:
        """See :class:`~manifoldry.extension.laplacian.WeightRows`."""
        return self.source.identical(X)
