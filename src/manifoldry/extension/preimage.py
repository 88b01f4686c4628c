"""Inverses of kernel PCA: kernel ridge regression and a fixed-point iteration."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, eigh

from manifoldry.affinity.dense import RBF, median_rbf
from manifoldry.device import say_on_cpu
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array
from manifoldry.util.validation import plan_matrix, power_of_two_scale, row_blocks, spread_rows


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """Kernel ridge regression of the data on the coordinates, with a Gaussian kernel.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        Training coordinates.
    X : array of shape (n_samples, n_features)
        The training data.
    ridge : float or None
        Penalty; by default the one with the smallest leave-one-out error.
    ridges : tuple of float
        Candidate penalties, relative to the diagonal of the kernel.
    sample_size : int, default=1000
        Largest number of rows on which the penalty is chosen.
    """

    Z: Array
    X: Array
    ridge: float | None = None
    ridges: tuple[float, ...] = tuple((10.0 ** np.arange(-10, 1)).tolist())
    sample_size: int = 1000

    __getstate__ = state_of_fields

    @cached_property
    def kernel(self) -> RBF:
        """exp(−d²/median d²) between coordinates."""
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
        # The choice does not depend on the units of the data; scaled squares do not overflow.
        errors = ridge_leave_one_out_errors(K, Y / power_of_two_scale(Y), self.ridges)
        return float(self.ridges[np.argmin(errors)])

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
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
        remedy = "fit KernelPCA with inverse='regression'"
        plan_matrix((n, n), 16, f"kernel ridge regression on {n} points", remedy)
        say_on_cpu("kernel ridge regression", "it factorizes a matrix of all pairs", float(n) ** 2)
        K = self.kernel.matrix(self.kernel.X)
        # Duplicate coordinates make K singular; a minimum ridge keeps it positive definite.
        K[np.diag_indices_from(K)] += max(self.ridge_, 10 * n * np.finfo(np.float64).eps)
        return np.asarray(cho_solve(cho_factor(K, lower=True, overwrite_a=True), self._centered))


def ridge_leave_one_out_errors(K: Array, Y: Array, ridges: Sequence[float]) -> Array:
    """Mean squared leave-one-out error of kernel ridge regression for each ridge.

    With A = K + ridge·I, the leave-one-out residual of row i is (A⁻¹Y)ᵢ / (A⁻¹)ᵢᵢ, so one
    eigendecomposition suffices for all rows and ridges.
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
    """Pre-image under a Gaussian kernel: the point whose image is nearest to given coordinates.

    Iterates z ← Σ cᵢ k(z, xᵢ) xᵢ / Σ cᵢ k(z, xᵢ) from the training point with the nearest
    coordinates, where cᵢ are the coefficients of the coordinates in feature space. The result is a
    weighted mean of training points, or the nearest one if the denominator vanishes.
    """

    kernel: RBF
    dual: Array  # v/√ℓ, (n_train, n_components)
    Z: Array  # training coordinates
    n_iterations: int = 200
    tolerance: float = 1e-9

    __getstate__ = state_of_fields

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
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
