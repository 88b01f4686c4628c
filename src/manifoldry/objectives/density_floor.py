"""A smooth penalty on embedded points of low density, for any objective."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.objectives.regression_kernels import (
    RegressionKernel,
    as_kernel,
    centered_embedding,
    gradient_part,
    over_pairs,
)
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class DensityFloor(Objective):
    """An objective plus weight/n · Σⱼ max(0, log(floor/ρⱼ))², ρⱼ = Σ_{i≠j} κ(‖yᵢ − yⱼ‖²).

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
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        κ, a function of the squared distance.
    """

    objective: Objective
    floor: float = 1.0
    weight: float = 1.0
    kernel: str | RegressionKernel = "gaussian"

    def __post_init__(self) -> None:
        check_positive("floor", self.floor)
        check_nonnegative("weight", self.weight)
        as_kernel(self.kernel)

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction

    def value(self, Y: Array) -> float:
        deficits = over_pairs(self._deficit, centered_embedding(Y, self.n))
        penalty = sum(float((deficit**2).sum()) for deficit in deficits)
        return self.objective.value(Y) + self.weight / self.n * penalty

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        value, gradient = self.objective.value_and_gradient(Y)
        Y = centered_embedding(Y, self.n)
        penalties, parts = zip(*over_pairs(partial(self._penalty, Y), Y), strict=True)
        fraction = self.weight / self.n
        G = fraction * np.sum(parts, axis=0)
        return value + fraction * sum(penalties), gradient + G.astype(gradient.dtype)

    def diagonal_curvature(self, Y: Array) -> Array:
        """Diagonal curvature of the objective plus the Gauss-Newton one of the penalty."""
        own = self.objective.diagonal_curvature(Y)
        Y = centered_embedding(Y, self.n)
        H = np.sum(over_pairs(partial(self._curvature, Y), Y), axis=0)
        return np.asarray(own + (2 * self.weight / self.n * H).astype(own.dtype))

    def _deficit(self, block: slice, D: Array) -> Array:
        """max(0, log(floor/ρ)) of the points of a block."""
        log_kernel_sum = as_kernel(self.kernel).weights(D).log_kernel_sum
        return np.maximum(np.log(self.floor) - log_kernel_sum, 0.0)

    def _penalty(self, Y: Array, block: slice, D: Array) -> tuple[float, Array]:
        weights = as_kernel(self.kernel).weights(D)
        deficit = np.maximum(np.log(self.floor) - weights.log_kernel_sum, 0.0)
        return float((deficit**2).sum()), gradient_part(
            2 * deficit[:, None] * weights.negative_derivative, Y, block
        )

    def _curvature(self, Y: Array, block: slice, D: Array) -> Array:
        """Sum of squared derivatives of log ρⱼ over the points j of density below the floor."""
        weights, H = as_kernel(self.kernel).weights(D), np.empty_like(Y)
        S = 2 * weights.negative_derivative * (weights.log_kernel_sum < np.log(self.floor))[:, None]
        for axis in range(Y.shape[1]):
            steps = S * (Y[block, axis, None] - Y[:, axis])
            H[:, axis] = (steps**2).sum(axis=0)
            H[block, axis] += steps.sum(axis=1) ** 2
        return H
