"""Objective of unsupervised kernel regression (UKR)."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.device import device_of, on_current_device
from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.base import Objective
from manifoldry.objectives.leave_one_out import (
    RegressionFit,
    centered_data,
    check_dense,
    compress_features,
    fit_kernel_regression,
)
from manifoldry.objectives.regression_kernels import (
    RegressionKernel,
    RegressionWeights,
    as_kernel,
    centered_embedding,
)
from manifoldry.objectives.regression_pairs import (
    DEFAULT_PAIRS,
    BlockWork,
    PairBlock,
    PairSum,
    PairTerms,
    RegressionPairs,
    gradient_terms,
    sum_over_pairs,
)
from manifoldry.util.arrays import as_array, like
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class UKRObjective(Objective):
    """E(Y) = 1/n Σⱼ‖xⱼ − fⱼ‖², where fⱼ is the kernel regression of the data on Y, at yⱼ.

    fⱼ = Σᵢ Bᵢⱼ xᵢ with Bᵢⱼ = κ(‖yᵢ − yⱼ‖²)/Σₖ κ(‖yₖ − yⱼ‖²). The kernel has width one, so the
    scale of the embedding determines how smooth the fit is. Without regularization E tends to zero
    as the embedding spreads out and every point predicts itself. To prevent this, leave each point
    out of its own fit (the default), bound the embedding (:class:`Boxed`) or penalize low density
    (:class:`DensityFloor`).

    The fit at a point far from all others is the nearest point, and its gradient vanishes;
    :class:`DensityFloor` prevents that.

    A value costs a kernel value and min(n, n_features) products for every pair of points, a
    gradient twice that, in blocks of rows. Up to 2000 points all n² pairs are used; for more,
    `pairs` leaves out those with negligible weights.

    Parameters
    ----------
    X : array of shape (n, n_features)
        The data. More than n features are reduced to n by a rotation, without changing E.
    affinity : sparse array of shape (n, n), default=None
        Symmetric weights of the neighbor graph of the data, up to a factor. Some filters need
        them; they do not enter the objective.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel, default="gaussian"
        Weight of a point as a function of its squared distance in the embedding.
    leave_one_out : bool, default=True
        Whether to leave each point out of its own fit, so that E is a cross-validation error.
    least_curvature : float, default=1e-8
        Lower bound of the diagonal curvature, as a fraction of its mean. Isolated points have
        zero curvature, by which a search could not divide.
    pairs : RegressionPairs, optional
        Which pairs of points are used.

    See Also
    --------
    manifoldry.UKR : the estimator.
    Boxed, DensityFloor : regularizations.
    leave_one_out_errors : the errors of single points.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> UKRObjective(X).value(np.zeros((3, 1)))  # (n/(n − 1))² times the variance
    1.5
    """

    X: Array
    affinity: sparse.csr_array | None = None
    kernel: str | RegressionKernel = "gaussian"
    leave_one_out: bool = True
    least_curvature: float = 1e-8
    pairs: RegressionPairs = DEFAULT_PAIRS

    any_namespace = True

    def __post_init__(self) -> None:
        check_dense(self.X)
        as_kernel(self.kernel)

    @property
    def n(self) -> int:
        return len(self.X)

    @cached_property
    def attraction(self) -> sparse.csr_array:
        """The neighbor graph, scaled so that its weights sum to the variance of the data."""
        if self.affinity is None:
            raise ValueError("affinity=None, but this filter needs a neighbor graph; pass affinity")
        total = float(self.affinity.sum())
        unit = self.variance / total if total > 0 else 0.0
        return self.affinity * (unit or 1.0)

    @cached_property
    def data(self) -> Array:
        """Centered data, rotated to at most n dimensions."""
        return compress_features(centered_data(self.X))

    def _data_near(self, Y: Array) -> Array:
        """The data in the memory of the embedding."""
        device = device_of(Y)
        if device is None:
            return self.data
        if device.name not in self._copies:
            self._copies[device.name] = device.array(self.data)
        return self._copies[device.name]

    @cached_property
    def _copies(self) -> dict[str, Array]:
        return {}

    @property
    def variance(self) -> float:
        """Mean squared distance of the data from their mean: E of a constant fit."""
        return float((self.data**2).sum() / self.n)

    def fitted(self, Y: Array) -> RegressionFit:
        """Return the fitted values and the squared errors.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        RegressionFit
            Fitted values (n, n_features) and squared errors (n,).
        """
        mean = np.asarray(self.X, dtype=np.float64).mean(axis=0)
        values, errors = self._fit(Y, self.X - mean)
        return RegressionFit(values + like(mean, values), errors)

    def value(self, Y: Array) -> float:
        return self._mean_error(Y)

    def sampled_value(self, Y: Array, rows: IntArray) -> float:
        """Estimate E(Y) by the mean squared error of some points only.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        rows : array of int
            The points.

        Returns
        -------
        float
            The estimate.
        """
        return self._mean_error(Y, rows)

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        sums, given = self._sum(Y, self.gradient_of_block), as_array(Y)
        G = (sums.terms / self.n).astype(given.dtype, copy=False)
        return sums.value / self.n, like(G, given)

    def diagonal_curvature(self, Y: Array) -> Array:
        """Return the diagonal of the Gauss-Newton matrix, 2/n Σⱼ‖∂fⱼ/∂yₙₗ‖².

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        array of shape (n, d)
            The curvature of every coordinate.
        """
        H, given = 2 / self.n * self._sum(Y, self._squared_derivatives).terms, as_array(Y)
        mean = float(H.mean())
        least = self.least_curvature * mean if mean > 0 else 1.0
        return like(np.maximum(H, least).astype(given.dtype, copy=False), given)

    def _sum(self, Y: Array, work: BlockWork) -> PairSum:
        kernel, Y = as_kernel(self.kernel), centered_embedding(on_current_device(Y), self.n)
        return sum_over_pairs(Y, kernel, [work], self.leave_one_out, self.pairs)[0]

    def _mean_error(self, Y: Array, rows: IntArray | None = None) -> float:
        Y = on_current_device(Y)
        return float(self._fit(Y, self._data_near(Y), rows).errors.mean())

    def _fit(self, Y: Array, X: Array, rows: IntArray | None = None) -> RegressionFit:
        kernel = as_kernel(self.kernel)
        return fit_kernel_regression(Y, X, kernel, self.leave_one_out, self.pairs, rows)

    def gradient_of_block(
        self, Y: Array, block: PairBlock, weights: RegressionWeights
    ) -> PairTerms:
        """Return the squared residuals of the rows of a block, and the gradient of their sum.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        block : PairBlock
            The pairs of some rows with the points of their fit.
        weights : RegressionWeights
            The weights of these pairs.

        Returns
        -------
        PairTerms
            The residuals and the gradient.
        """
        data = self._data_near(Y)
        X = data[block.sources]
        F = weights.weights @ X
        R = data[block.rows] - F
        C = R @ X.T  # becomes ∂/∂d²ᵢⱼ = −2κ′(d²ᵢⱼ)/Σₖκ · rⱼ·(xᵢ − fⱼ), in row j
        C -= (R * F).sum(axis=1)[:, None]
        C *= weights.negative_derivative
        C *= 2
        return gradient_terms(C, Y, block, value=(R**2).sum())

    def _squared_derivatives(
        self, Y: Array, block: PairBlock, weights: RegressionWeights
    ) -> PairTerms:
        """Σⱼ‖∂fⱼ/∂yₙₗ‖² over the rows j of a block."""
        X, at_rows, at_sources = self._data_near(Y)[block.sources], Y[block.rows], Y[block.sources]
        F, H = weights.weights @ X, np.empty_like(at_sources)
        Q = (X**2).sum(axis=1) - 2 * F @ X.T + (F**2).sum(axis=1)[:, None]  # ‖xᵢ − fⱼ‖²
        for axis in range(Y.shape[1]):
            S = 2 * weights.negative_derivative * (at_rows[:, axis, None] - at_sources[:, axis])
            H[:, axis] = np.einsum("ji,ji,ji->i", S, S, Q)  # as a neighbor of the rows j
            own = S @ X - S.sum(axis=1)[:, None] * F
            H[block.own, axis] += (own**2).sum(axis=1)
        return PairTerms(block.sources, H)


def reinsert(objective: UKRObjective, Y: Array, reach: float = 3.0) -> Array:
    """Move isolated points to where their data are predicted best, if E decreases.

    The gradient of a point almost vanishes if its nearest neighbor in the embedding is farther
    away than `reach`, so that no search moves it. Call this function between two searches.

    Parameters
    ----------
    objective : UKRObjective
    Y : array of shape (n, d)
        The embedding.
    reach : float, default=3.0
        Distance to the nearest neighbor beyond which a point is isolated: a Gaussian of width one
        is below 1e-3 there.

    Returns
    -------
    array of shape (n, d)
        The embedding with isolated points moved, or `Y` itself if E does not decrease.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.append(np.arange(9.0), 100.0)[:, None]
    >>> X = np.append(np.arange(9.0), 3.0)[:, None]
    >>> reinsert(UKRObjective(X), Y)[-1]
    array([3.])
    """
    others = np.asarray(Y, dtype=np.float64)
    isolated = choose_index(others).nearest(others, 2)[1][:, -1] > reach
    if not isolated.any() or (~isolated).sum() < 2:
        return Y
    X, rest = objective.data, np.flatnonzero(~isolated)
    predicted = fit_kernel_regression(
        others[rest],
        X[rest],
        as_kernel(objective.kernel),
        leave_one_out=False,
        pairs=objective.pairs,
    ).values
    nearest = choose_index(predicted).nearest(X[isolated], 1)[0][:, 0]
    moved = Y.copy()
    moved[isolated] = Y[rest[nearest]]
    return moved if objective.value(moved) < objective.value(Y) else Y
