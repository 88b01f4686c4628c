"""Kernel PCA's ways back to the data: kernel ridge regression and a fixed point."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh

from manifoldry.affinity.dense import RBF, median_rbf
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.typing import Array
from manifoldry.util.validation import plan_memory, power_of_two_scale, row_blocks, spread_rows


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """Regress the data on map positions with a Gaussian kernel.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        Map positions.
    X : array of shape (n_samples, n_features)
        The data at those positions.
    ridge : float or None
        Penalty; by default the one of smallest leave-one-out error.
    ridges : tuple of float
        Penalties among which that one is chosen, relative to the kernel's diagonal.
    sample_size : int, default=1000
        Rows on which it is chosen, at most.
    """

    Z: Array
    X: Array
    ridge: float | None = None
    ridges: tuple[float, ...] = tuple((10.0 ** np.arange(-10, 1)).tolist())
    sample_size: int = 1000

    @cached_property
    def kernel(self) -> RBF:
        """exp(−d²/median d²) between map positions."""
        return median_rbf(np.asarray(self.Z, dtype=np.float64))

    @cached_property
    def ridge_(self) -> float:
        """The penalty in use."""
        if self.ridge is not None:
            return self.ridge
        rows = spread_rows(len(self.Z), self.sample_size)
        sample = RBF(self.kernel.X[rows], self.kernel.frame, self.kernel.gamma)
        Y = self._centered[rows]
        K = sample.matrix(sample.X)
        # Units do not matter for the choice, and in the data's own squares might overflow.
        errors = ridge_leave_one_out_errors(K, Y / power_of_two_scale(Y), self.ridges)
        return float(self.ridges[np.argmin(errors)])

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        out = np.empty((len(Z), self.X.shape[1]))
        for block in row_blocks(len(Z), len(self.Z)):
            out[block] = self.kernel.matrix(Z[block]) @ self._dual + self._mean
        return out

    @cached_property
    def _mean(self) -> Array:
        return self.X.mean(axis=0, dtype=np.float64)

    @property
    def _centered(self) -> Array:
        return self.X - self._mean

    @cached_property
    def _dual(self) -> Array:
        n = len(self.Z)
        plan_memory(16.0 * n * n, f"kernel ridge regression on {n} points", "use fewer points")
        K = self.kernel.matrix(self.kernel.X)
        # Coincident positions make K singular: without a floor Cholesky would break down.
        K[np.diag_indices_from(K)] += max(self.ridge_, 10 * n * np.finfo(np.float64).eps)
        return np.asarray(cho_solve(cho_factor(K, lower=True, overwrite_a=True), self._centered))


def ridge_leave_one_out_errors(K: Array, Y: Array, ridges: Sequence[float]) -> Array:
    """Mean squared leave-one-out error of kernel ridge regression for each of the ridges.

    With A = K + ridge·I, leaving row i out changes its residual to (A⁻¹Y)ᵢ / (A⁻¹)ᵢᵢ, so one
    eigendecomposition serves all rows and all ridges.
    """
    values, U = eigh(K)
    projected, squares = U.T @ Y, U**2
    errors = []
    for ridge in ridges:
        inverse = 1 / (np.maximum(values, 0) + ridge)
        residual = (U @ (inverse[:, None] * projected)) / (squares @ inverse)[:, None]
        errors.append((residual**2).sum(axis=1).mean())
    return np.array(errors)


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """The point whose image under a Gaussian kernel lies nearest to a map position.

    Iterates z ← Σ cᵢ k(z, xᵢ) xᵢ / Σ cᵢ k(z, xᵢ) from the training point nearest on the map,
    the cᵢ being the coefficients of the map position in feature space. Each result is a
    weighted mean of training points; where the iteration breaks down it is the nearest one.
    """

    kernel: RBF
    dual: Array  # v/√ℓ, (n_train, n_components)
    Z: Array  # training map positions
    n_iterations: int = 200
    tolerance: float = 1e-9

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        out = np.empty((len(Z), self.kernel.X.shape[1]))
        for block in row_blocks(len(Z), self.kernel.n_train):
            out[block] = self._iterate(np.asarray(Z[block], dtype=np.float64))
        return out

    @cached_property
    def _index(self) -> NeighborIndex:
        return choose_index(np.asarray(self.Z, dtype=np.float64))

    def _iterate(self, Z: Array) -> Array:
        X = self.kernel.X
        coefficients = Z @ self.dual.T
        coefficients += (1 - coefficients.sum(axis=1, keepdims=True)) / X.shape[0]
        start = X[self._index.nearest(Z, 1)[0][:, 0]]
        start = (start.toarray() if sparse.issparse(start) else start).astype(np.float64)
        current, moving = start.copy(), np.arange(len(Z))
        for _ in range(self.n_iterations):
            weights = coefficients[moving] * self.kernel.matrix(current[moving])
            total = weights.sum(axis=1)
            lost = np.abs(total) < 1e-12
            step = np.asarray(weights @ X) / np.where(lost, 1.0, total)[:, None]
            step[lost] = start[moving[lost]]
            change = np.abs(step - current[moving]).max(axis=1)
            current[moving] = step
            moving = moving[(change > self.tolerance * self.kernel.frame.unit) & ~lost]
            if len(moving) == 0:
                break
        return current
