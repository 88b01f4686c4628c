"""Inverse by kernel regression of the data on the embedding, with derivatives."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry.objectives.regression_kernels import RegressionKernel, RegressionWeights, as_kernel
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


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


@dataclass(frozen=True, eq=False)
class KernelRegressionMap:
    """f(z) = Σᵢ bᵢ(z)·xᵢ with weights bᵢ ∝ κ(‖z − zᵢ‖²).

    This is the inverse of unsupervised kernel regression, whose kernel has width one. Values lie
    in the convex hull of the data: it does not extrapolate. Far from all training coordinates the
    value is that of the nearest one (for Student's kernel, the mean).

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        Training coordinates.
    X : array of shape (n_samples, n_features)
        The training data.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        The kernel κ of the embedding.
    farthest : float, default=1e3
        Largest distance from the center, in diameters of the embedding; coordinates beyond it are
        clipped.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(-8, 8, 40)[:, None]
    >>> curve = KernelRegressionMap(Z, np.hstack([Z, np.sin(Z / 2)]))
    >>> curve.predict(np.array([[1.0]])).round(2)
    array([[1.  , 0.45]])
    >>> curve.jacobian(np.array([[1.0]])).round(2)
    array([[[1.  ],
            [0.41]]])
    """

    Z: Array
    X: Array
    kernel: str | RegressionKernel = "gaussian"
    farthest: float = 1e3

    __getstate__ = state_of_fields

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        if len(self.Z) != len(self.X):
            raise ValueError(
                f"Z has {len(self.Z)} rows and X has {len(self.X)}; pass as many rows of each"
            )

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        Z = self._clip_distance(Z)
        out = np.empty((len(Z), self.X.shape[1]))
        for block in row_blocks(len(Z), self.numbers_per_row):
            D = cdist(Z[block], self.positions, "sqeuclidean")
            out[block] = as_kernel(self.kernel).weights(D).weights @ self.centered
        return out + self.mean

    def jacobian(self, Z: Array) -> Array:
        """Derivatives ∂f/∂z at the coordinates `Z`, (n_new, n_features, n_components)."""
        Z = self._clip_distance(Z)
        out = np.empty((len(Z), self.X.shape[1], self.Z.shape[1]))
        for block in row_blocks(len(Z), self.numbers_per_row):
            out[block] = _Derivatives.of(self, Z[block]).jacobian.transpose(0, 2, 1)
        return out

    def expand(self, Z: Array, targets: Array) -> Expansion:
        """Residuals and derivatives at `Z`; `targets` are relative to the mean of the data."""
        derivatives = _Derivatives.of(self, Z)
        R = targets - derivatives.base - derivatives.offset
        return Expansion(R, derivatives.jacobian, derivatives.curvature(R))

    def density(self, Z: Array) -> Density:
        """Density of the training coordinates at `Z`, with derivatives."""
        derivatives = _Derivatives.of(self, Z)
        return Density(
            derivatives.weights.log_kernel_sum,
            derivatives.log_density_gradient,
            derivatives.log_density_hessian,
        )

    @cached_property
    def positions(self) -> Array:
        """Training coordinates in double precision."""
        return np.ascontiguousarray(self.Z, dtype=np.float64)

    @cached_property
    def mean(self) -> Array:
        """Mean of the data, (n_features,)."""
        return np.asarray(self.X.mean(axis=0, dtype=np.float64))

    @cached_property
    def centered(self) -> Array:
        """Centered data in double precision."""
        return np.asarray(self.X - self.mean)

    @property
    def numbers_per_row(self) -> int:
        """Number of values that one position needs in memory."""
        return int((6 + self.Z.shape[1]) * len(self.Z) + (self.Z.shape[1] + 4) * self.X.shape[1])

    def _clip_distance(self, Z: Array) -> Array:
        """Move positions beyond `farthest` toward the center, where squares keep their digits."""
        Z, center = np.asarray(Z, dtype=np.float64), self.positions.mean(axis=0)
        farthest = self.farthest * max(float(np.ptp(self.positions, axis=0).max()), 1.0)
        offset = Z - center
        distance = np.abs(offset).max(axis=1, keepdims=True)
        shorter = offset * (farthest / np.maximum(distance, farthest))
        return np.where(distance > farthest, center + shorter, Z)


@dataclass(frozen=True, eq=False)
class _Derivatives:
    """Derivatives of f and log ρ at positions z.

    Differences xᵢ − f are computed relative to the data x₀ of the nearest training point. Between
    distant points f is almost constant and equals x₀ to many digits; this way the derivatives stay
    accurate, and a search takes the same steps in every batch.
    """

    surface: KernelRegressionMap
    Z: Array
    D: Array  # squared distances, (n_new, n_samples)
    weights: RegressionWeights
    nearest: IntArray

    @classmethod
    def of(cls, surface: KernelRegressionMap, Z: Array) -> "_Derivatives":
        D = cdist(Z, surface.positions, "sqeuclidean")
        return cls(surface, Z, D, as_kernel(surface.kernel).weights(D), D.argmin(axis=1))

    @cached_property
    def base(self) -> Array:
        """x₀, (n_new, n_features)."""
        return self.surface.centered[self.nearest]

    @cached_property
    def offset(self) -> Array:
        """Difference f − x₀, (n_new, n_features)."""
        return self._sum(self.weights.weights.copy())

    @cached_property
    def jacobian(self) -> Array:
        """2 Σᵢ κ′ᵢ/s·(z − zᵢ)(xᵢ − f)ᵀ with s = Σκ, (n_new, n_components, n_features)."""
        J = np.empty((*self.Z.shape, self.base.shape[1]))
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
        C = R @ self.surface.centered.T
        C -= ((R * self.base).sum(axis=1) + offset)[:, None]
        C[np.arange(len(C)), self.nearest] = -offset
        q, w = np.einsum("nlk,nk->nl", self.jacobian, R), self.log_density_gradient
        H = self._second_moments(C * self.weights.negative_derivative, C * self._second_derivative)
        return np.asarray(H - q[:, :, None] * w[:, None, :] - w[:, :, None] * q[:, None, :])

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
        return np.asarray(H - w[:, :, None] * w[:, None, :])

    @cached_property
    def _second_derivative(self) -> Array:
        return as_kernel(self.surface.kernel).normalized_second_derivative(
            self.D, self.weights.log_kernel_sum
        )

    def _second_moments(self, derivative: Array, second_derivative: Array) -> Array:
        """Σᵢ(−2·derivativeᵢI + 4·second_derivativeᵢδδᵀ), where `derivative` is −κ′/s."""
        d = self.Z.shape[1]
        H = -2 * derivative.sum(axis=1)[:, None, None] * np.eye(d)
        for j, k in np.ndindex(d, d):
            H[:, j, k] += 4 * np.einsum(
                "ni,ni,ni->n", second_derivative, self._offsets[j], self._offsets[k]
            )
        return np.asarray(H)

    @cached_property
    def _offsets(self) -> list[Array]:
        """Differences z − zᵢ for every coordinate, each (n_new, n_samples)."""
        Z, positions = self.Z, self.surface.positions
        return [Z[:, axis, None] - positions[:, axis] for axis in range(Z.shape[1])]

    def _sum(self, W: Array) -> Array:
        """Σᵢ Wᵢ(xᵢ − x₀); `W` is modified."""
        W[np.arange(len(W)), self.nearest] = (
            0  # xᵢ = x₀; its large weight would cause rounding errors
        )
        return np.asarray(W @ self.surface.centered - W.sum(axis=1)[:, None] * self.base)
