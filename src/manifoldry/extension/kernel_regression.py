"""From a map to data by kernel regression, with derivatives."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry._typing import Array
from manifoldry._validation import row_blocks
from manifoldry.objectives.regression_kernels import RegressionKernel, as_kernel

_FARTHEST = 1e3  # diameters of the map from its centre beyond which all is as it is there


class Expansion(NamedTuple):
    """A map from positions to data around some positions, up to the second order."""

    values: Array
    """f, (n_new, n_features)."""
    jacobian: Array
    """∂f/∂z, (n_new, n_components, n_features)."""
    curvature: Array
    """Σ_k r_k·∂²f_k/∂z∂z for given vectors r, (n_new, n_components, n_components)."""


@dataclass(frozen=True, eq=False)
class KernelRegressionMap:
    """f(z) = Σᵢ bᵢ(z)·xᵢ with weights bᵢ ∝ κ(‖z − zᵢ‖²): the data at any place of a map.

    Values lie in the convex hull of the data. Far from all map positions they are those of the
    nearest one (for Student's kernel, the mean): it does not extrapolate. This is the way back
    from a map by unsupervised kernel regression, whose kernel has width one.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        Map positions.
    X : array of shape (n_samples, n_features)
        The data there.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        The κ that the map was made with.

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

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        if len(self.Z) != len(self.X):
            raise ValueError(
                f"{len(self.Z)} map positions for {len(self.X)} rows of data; pass one each"
            )

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        Z = self._within_sight(Z)
        out = np.empty((len(Z), self.X.shape[1]))
        for block in row_blocks(len(Z), self.numbers_per_row):
            D = cdist(Z[block], self.positions, "sqeuclidean")
            out[block] = as_kernel(self.kernel).shares(D).share @ self.centred
        return out + self.mean

    def jacobian(self, Z: Array) -> Array:
        """Derivatives ∂f/∂z at map positions `Z`, (n_new, n_features, n_components)."""
        Z = np.asarray(Z, dtype=np.float64)
        out = np.empty((len(Z), self.X.shape[1], self.Z.shape[1]))
        for block in row_blocks(len(Z), self.numbers_per_row):
            D = cdist(Z[block], self.positions, "sqeuclidean")
            share, slope, _ = as_kernel(self.kernel).shares(D)
            J = self._first_order(Z[block], slope, share @ self.centred)
            out[block] = J.transpose(0, 2, 1)
        return out

    def expand(self, Z: Array, targets: Array) -> Expansion:
        """Values and derivatives at few positions; r are the targets less the values.

        Data and targets are relative to the data's mean here. With c_i = r·(x_i − f), s = Σκ and
        δ_i = z − z_i, the curvature is Σ c_i(2κ′I + 4κ″δδᵀ)/s − qwᵀ − wqᵀ, q = Jᵀr, w = ∇s/s.
        """
        D = cdist(Z, self.positions, "sqeuclidean")
        share, slope, log_mass = as_kernel(self.kernel).shares(D)
        F = share @ self.centred
        R = targets - F
        C = R @ self.centred.T - (R * F).sum(axis=1)[:, None]
        J = self._first_order(Z, slope, F)
        q, w = np.einsum("nlk,nk->nl", J, R), -2 * (_moments(slope, Z, self.positions))
        H = 4 * _second_moments(C * as_kernel(self.kernel).bends(D, log_mass), Z, self.positions)
        H -= q[:, :, None] * w[:, None, :] + w[:, :, None] * q[:, None, :]
        H -= 2 * np.einsum("ni,ni->n", C, slope)[:, None, None] * np.eye(Z.shape[1])
        return Expansion(F, J, H)

    @cached_property
    def positions(self) -> Array:
        """The map positions in double precision."""
        return np.ascontiguousarray(self.Z, dtype=np.float64)

    @cached_property
    def mean(self) -> Array:
        """Mean of the data, (n_features,)."""
        return np.asarray(self.X.mean(axis=0, dtype=np.float64))

    @cached_property
    def centred(self) -> Array:
        """The data around their mean, in double precision."""
        return np.asarray(self.X - self.mean)

    @property
    def numbers_per_row(self) -> int:
        """Numbers that one position keeps in memory at a time."""
        return int(6 * len(self.Z) + (self.Z.shape[1] + 4) * self.X.shape[1])

    def _first_order(self, Z: Array, slope: Array, F: Array) -> Array:
        """−2 Σᵢ slopeᵢ·(z − zᵢ)(xᵢ − f)ᵀ, (n_new, n_components, n_features)."""
        J = np.empty((len(Z), Z.shape[1], F.shape[1]))
        for axis in range(Z.shape[1]):
            S = slope * (Z[:, axis, None] - self.positions[:, axis])
            J[:, axis] = -2 * (S @ self.centred - S.sum(axis=1)[:, None] * F)
        return J

    def _within_sight(self, Z: Array) -> Array:
        """Positions so far off that squares would lose the map are moved in, straight to it."""
        Z, centre = np.asarray(Z, dtype=np.float64), self.positions.mean(axis=0)
        farthest = _FARTHEST * max(float(np.ptp(self.positions, axis=0).max()), 1.0)
        offset = Z - centre
        distance = np.abs(offset).max(axis=1, keepdims=True)
        shorter = offset * (farthest / np.maximum(distance, farthest))
        return np.where(distance > farthest, centre + shorter, Z)


def _moments(weights: Array, Z: Array, positions: Array) -> Array:
    """Σᵢ wᵢ(z − zᵢ), (n_new, n_components)."""
    return np.asarray(weights.sum(axis=1)[:, None] * Z - weights @ positions)


def _second_moments(weights: Array, Z: Array, positions: Array) -> Array:
    """Σᵢ wᵢ(z − zᵢ)(z − zᵢ)ᵀ, (n_new, n_components, n_components)."""
    d = Z.shape[1]
    out = np.empty((len(Z), d, d))
    offsets = [Z[:, axis, None] - positions[:, axis] for axis in range(d)]
    for j in range(d):
        for k in range(j, d):
            out[:, j, k] = out[:, k, j] = np.einsum("ni,ni,ni->n", weights, offsets[j], offsets[k])
    return out
