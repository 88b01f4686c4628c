"""A smooth penalty on embedded points of low density, for any objective."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.device import on_current_device
from manifoldry.objectives.base import Objective
from manifoldry.objectives.kernel_regression import UKRObjective
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
    over_pairs,
    sum_over_pairs,
)
from manifoldry.util.arrays import as_array, like
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class DensityFloor(Objective):
    """Objective plus weight/n · Σⱼ max(0, log(floor/ρⱼ))², ρⱼ = Σ_{i≠j} κ(‖yᵢ − yⱼ‖²).

    ρⱼ is a kernel density estimate at point j, up to a factor. The logarithm makes the penalty grow
    with the distance of an isolated point, so that its gradient does not vanish. Use it with
    unsupervised kernel regression, whose gradient vanishes at isolated points, or to keep an
    embedding together if points are not left out of their own fit.

    Parameters
    ----------
    objective : Objective
        The objective to which the penalty is added.
    floor : float, default=1.0
        Density ρ above which there is no penalty.
    weight : float, default=1.0
        Weight of the penalty, in the units of the objective.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel, default="gaussian"
        The kernel κ, a function of the squared distance.
    pairs : RegressionPairs, optional
        Which pairs of points are used.

    See Also
    --------
    UKRObjective : the objective of unsupervised kernel regression.
    Boxed : bounds the embedding instead.
    manifoldry.UKR : the estimator.

    Examples
    --------
    The last point is far from the others, where the gradient of kernel regression vanishes. The
    penalty pulls it back:

    >>> import numpy as np
    >>> from manifoldry.objectives import DensityFloor, UKRObjective
    >>> objective = UKRObjective(np.array([[0.0], [1.0], [2.0]]))
    >>> Y = np.array([[0.0], [0.5], [50.0]])
    >>> bool(abs(objective.value_and_gradient(Y)[1][2, 0]) < 1e-15)
    True
    >>> bool(DensityFloor(objective).value_and_gradient(Y)[1][2, 0] > 1)
    True
    """

    objective: Objective
    floor: float = 1.0
    weight: float = 1.0
    kernel: str | RegressionKernel = "gaussian"
    pairs: RegressionPairs = DEFAULT_PAIRS

    def __post_init__(self) -> None:
        check_positive("floor", self.floor)
        check_nonnegative("weight", self.weight)
        as_kernel(self.kernel)

    @property
    def any_namespace(self) -> bool:  # type: ignore[override]  # here it depends on the instance
        return self.objective.any_namespace

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction

    def value(self, Y: Array) -> float:
        Y = self._placed(Y)
        return self.objective.value(Y) + self._mean_penalty(Y)

    def sampled_value(self, Y: Array, rows: IntArray) -> float:
        """Estimate the value from the terms of some points.

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
        Y = self._placed(Y)
        return self.objective.sampled_value(Y, rows) + self._mean_penalty(Y, rows)

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        given, Y = as_array(Y), self._placed(Y)
        fraction, regression = self.weight / self.n, self._regression
        if regression is None:
            value, gradient = self.objective.value_and_gradient(Y)
            (penalty,) = self._sum(Y, self._penalty)
        else:
            own, penalty = self._sum(Y, regression.gradient_of_block, self._penalty)
            value, gradient = own.value / self.n, (own.terms / self.n).astype(Y.dtype, copy=False)
        G = gradient + (fraction * penalty.terms).astype(gradient.dtype)
        return value + fraction * penalty.value, like(G, given)

    def diagonal_curvature(self, Y: Array) -> Array:
        """Return the diagonal curvature of the objective plus the Gauss-Newton one of the penalty.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        array of shape (n, d)
            The curvature of every coordinate.
        """
        given, Y = as_array(Y), self._placed(Y)
        own, (penalty,) = self.objective.diagonal_curvature(Y), self._sum(Y, self._curvature)
        return like(own + (2 * self.weight / self.n * penalty.terms).astype(own.dtype), given)

    def _placed(self, Y: Array) -> Array:
        """The embedding on the current device, if the objective allows it."""
        return as_array(on_current_device(Y) if self.any_namespace else Y)

    @property
    def _regression(self) -> UKRObjective | None:
        """The objective if it is a regression with the weights of the penalty, else None."""
        own, objective = (as_kernel(self.kernel), True, self.pairs), self.objective
        if not isinstance(objective, UKRObjective):
            return None
        theirs = as_kernel(objective.kernel), objective.leave_one_out, objective.pairs
        return objective if own == theirs else None

    def _mean_penalty(self, Y: Array, rows: IntArray | None = None) -> float:
        Y = centered_embedding(Y, self.n)
        reach = self.pairs.reach(self.kernel, *Y.shape)
        deficits = over_pairs(self._deficit, Y, reach=reach, rows=rows)
        total = float(sum((deficit**2).sum() for deficit in deficits))
        return self.weight / (self.n if rows is None else len(rows)) * total

    def _sum(self, Y: Array, *work: BlockWork) -> list[PairSum]:
        Y = centered_embedding(Y, self.n)
        return sum_over_pairs(Y, as_kernel(self.kernel), work, pairs=self.pairs)

    def _deficit(self, block: PairBlock) -> Array:
        """max(0, log(floor/ρ)) of the points of a block."""
        log_kernel_sum = as_kernel(self.kernel).weights(block.D).log_kernel_sum
        return np.maximum(np.log(self.floor) - log_kernel_sum, 0.0)

    def _penalty(self, Y: Array, block: PairBlock, weights: RegressionWeights) -> PairTerms:
        deficit = np.maximum(np.log(self.floor) - weights.log_kernel_sum, 0.0)
        C = 2 * deficit[:, None] * weights.negative_derivative
        return gradient_terms(C, Y, block, value=(deficit**2).sum())

    def _curvature(self, Y: Array, block: PairBlock, weights: RegressionWeights) -> PairTerms:
        """Sum of squared derivatives of log ρⱼ over the points j of density below the floor."""
        at_rows, at_sources = Y[block.rows], Y[block.sources]
        low = weights.log_kernel_sum < np.log(self.floor)
        S, H = 2 * weights.negative_derivative * low[:, None], np.empty_like(at_sources)
        for axis in range(Y.shape[1]):
            steps = S * (at_rows[:, axis, None] - at_sources[:, axis])
            H[:, axis] = (steps**2).sum(axis=0)
            H[block.own, axis] += steps.sum(axis=1) ** 2
        return PairTerms(block.sources, H)
