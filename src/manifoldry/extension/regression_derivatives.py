"""Derivatives of a kernel regression of the data on the embedding, and of its density."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifoldry.objectives.regression_kernels import RegressionKernel, RegressionWeights
from manifoldry.objectives.regression_pairs import embedding_squares
from manifoldry.util.arrays import namespace
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray


class Expansion(NamedTuple):
    """Second-order expansion of the map f from coordinates to data."""

    residuals: Array
    """r = targets − f, (n_new, n_features)."""
    jacobian: Array
    """∂f/∂z, (n_new, n_components, n_features)."""
    curvature: Array
    """Σ_k r_k·∂²f_k/∂z∂z, (n_new, n_components, n_components)."""


class Density(NamedTuple):
    """Second-order expansion of log ρ(z), where ρ(z) = Σᵢ κ(‖z − zᵢ‖²)."""

    log: Array
    """(n_new,)."""
    gradient: Array
    """(n_new, n_components)."""
    hessian: Array
    """(n_new, n_components, n_components)."""


class Sources(NamedTuple):
    """Training points from which values at other positions are computed."""

    positions: Array
    """Coordinates, (n_sources, n_components)."""
    centered: Array
    """Centered data, (n_sources, n_features)."""


def distances_within_reach(Z: Array, positions: Array, reach: float) -> Array:
    """Squared distances, infinite if they exceed the smallest of a row by more than `reach`.

    Which sources count for a position must not depend on the positions that are processed with it.
    """
    D = embedding_squares(Z, positions)
    if np.isfinite(reach):
        D[D.min(axis=1, keepdims=True) + reach < D] = np.inf
    return D


@dataclass(frozen=True, eq=False)
class RegressionDerivatives:
    """Derivatives of f and log ρ at positions z.

    Differences xᵢ − f are computed relative to the data x₀ of the nearest training point. Between
    distant points f is almost constant and equals x₀ to many digits; this way the derivatives stay
    accurate, and a search takes the same steps in every batch.
    """

    kernel: RegressionKernel
    sources: Sources
    Z: Array
    D: Array  # squared distances, (n_new, n_sources)

    @classmethod
    def of(
        cls, kernel: RegressionKernel, sources: Sources, Z: Array, reach: float
    ) -> "RegressionDerivatives":
        """Derivatives at positions `Z`, without sources beyond the `reach` of the kernel."""
        return cls(kernel, sources, Z, distances_within_reach(Z, sources.positions, reach))

    def expand(self, targets: Array) -> Expansion:
        """Residuals and derivatives of f; `targets` are relative to the mean of the data."""
        R = targets - self.base - self.offset
        return Expansion(R, self.jacobian, self.curvature(R))

    @property
    def density(self) -> Density:
        """The density of the training coordinates."""
        return Density(
            self.weights.log_kernel_sum, self.log_density_gradient, self.log_density_hessian
        )

    @cached_property
    def weights(self) -> RegressionWeights:
        """Weights of the sources."""
        return self.kernel.weights(self.D)

    @cached_property
    def nearest(self) -> IntArray:
        """Index of the nearest source, (n_new,)."""
        return self.D.argmin(axis=1)

    @cached_property
    def base(self) -> Array:
        """x₀, (n_new, n_features)."""
        return self.sources.centered[self.nearest]

    @cached_property
    def offset(self) -> Array:
        """Difference f − x₀, (n_new, n_features)."""
        return self._sum(self.weights.weights.copy())

    @cached_property
    def jacobian(self) -> Array:
        """2 Σᵢ κ′ᵢ/s·(z − zᵢ)(xᵢ − f)ᵀ with s = Σκ, (n_new, n_components, n_features)."""
        J = namespace(self.Z).empty((*self.Z.shape, self.base.shape[1]))
        for axis, offset in enumerate(self._offsets):
            S = self.weights.negative_derivative * offset
            total = S.sum(axis=1)[:, None]
            J[:, axis] = -2 * (self._sum(S) - total * self.offset)
        return J

    def curvature(self, R: Array) -> Array:
        """Σ_k r_k·∂²f_k/∂z∂z, (n_new, n_components, n_components).

        With cᵢ = r·(xᵢ − f), s = Σκ and δᵢ = z − zᵢ that is
        Σᵢ cᵢ(2κ′I + 4κ″δδᵀ)/s − qwᵀ − wqᵀ, where q = Jᵀr and w = ∇s/s.
        """
        offset = (R * self.offset).sum(axis=1)
        C = R @ self.sources.centered.T
        C -= ((R * self.base).sum(axis=1) + offset)[:, None]
        C[namespace(C).arange(len(C)), self.nearest] = -offset
        q, w = np.einsum("nlk,nk->nl", self.jacobian, R), self.log_density_gradient
        H = self._second_moments(C * self.weights.negative_derivative, C * self._second_derivative)
        return H - q[:, :, None] * w[:, None, :] - w[:, :, None] * q[:, None, :]

    @cached_property
    def log_density_gradient(self) -> Array:
        """Gradient w = ∇s/s of log s, (n_new, n_components)."""
        derivative = self.weights.negative_derivative
        return -2 * np.column_stack([np.einsum("ni,ni->n", derivative, o) for o in self._offsets])

    @property
    def log_density_hessian(self) -> Array:
        """Hessian of log s: Σᵢ(2κ′I + 4κ″δδᵀ)/s − wwᵀ."""
        w = self.log_density_gradient
        H = self._second_moments(self.weights.negative_derivative, self._second_derivative)
        return H - w[:, :, None] * w[:, None, :]

    @cached_property
    def _second_derivative(self) -> Array:
        return self.kernel.normalized_second_derivative(self.D, self.weights.log_kernel_sum)

    def _second_moments(self, derivative: Array, second_derivative: Array) -> Array:
        """Σᵢ(−2·derivativeᵢI + 4·second_derivativeᵢδδᵀ), where `derivative` is −κ′/s."""
        d = self.Z.shape[1]
        H = -2 * derivative.sum(axis=1)[:, None, None] * namespace(derivative).eye(d)
        for j, k in np.ndindex(d, d):
            H[:, j, k] += 4 * np.einsum(
                "ni,ni,ni->n", second_derivative, self._offsets[j], self._offsets[k]
            )
        return H

    @cached_property
    def _offsets(self) -> list[Array]:
        """Differences z − zᵢ for every coordinate, each (n_new, n_sources)."""
        Z, positions = self.Z, self.sources.positions
        return [Z[:, axis, None] - positions[:, axis] for axis in range(Z.shape[1])]

    def _sum(self, W: Array) -> Array:
        """Σᵢ Wᵢ(xᵢ − x₀); `W` is modified."""
        # Where xᵢ = x₀, the large weight would cause rounding errors.
        W[namespace(W).arange(len(W)), self.nearest] = 0
        return W @ self.sources.centered - W.sum(axis=1)[:, None] * self.base
