"""Inverse of the elastic embedding: the data that minimize its energy at given coordinates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifoldry.extension.new_points import first_minimum
from manifoldry.neighbors.distances import Frame, expanded_squares, squared_norms
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class ElasticInverse:
    """Minimize the energy of the elastic embedding over the data point y, given its position x.

    The energy is Σₙ w⁺(y, yₙ)·aₙ + (λ/Σw⁻)·Σₙ e^{−aₙ}·‖y − yₙ‖² with aₙ = ‖x − xₙ‖²: an
    attraction to the mean of the data at nearby positions, and a repulsion from similar data at
    distant positions. The repulsive weights of the embedding must be squared distances. With
    uniform weights only the repulsion remains, which has no minimizer.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    Z : array of shape (n_samples, n_components)
        Their coordinates.
    precision, log_scale : arrays of shape (n_samples,)
        The affinities are w⁺(y, yₙ) = exp(log_scaleₙ − precisionₙ·‖y − yₙ‖²). The affinities of
        the training data sum to one, so positive values of log_scale are replaced by zero.
    strength : float
        λ, for repulsive weights that sum to one.
    n_nearest : int, default=3
        Number of nearest training points in the embedding from which searches start, in addition
        to their weighted mean.
    max_squared_distance : float, default=30.0
        The kernel weights exp(−d²) are scaled up where necessary so that the largest is at least
        exp(−max_squared_distance): far from all training coordinates they would underflow.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.linspace(0, 10, 50)[:, None]
    >>> X = np.hstack([np.cos(Z / 10), np.sin(Z / 10)])
    >>> inverse = ElasticInverse(X, Z, np.full(50, 100.0), np.full(50, -6.0), strength=100.0)
    >>> inverse.predict(np.array([[5.0]])).round(2)
    array([[0.88, 0.48]])
    """

    X: Array
    Z: Array
    precision: Array
    log_scale: Array
    strength: float
    n_nearest: int = 3
    max_squared_distance: float = 30.0

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        Z = np.asarray(Z, dtype=np.float64)
        out = np.empty((len(Z), self.X.shape[1]))
        for block in row_blocks(len(Z), 4 * (self.n_nearest + 1) * sum(self.X.shape)):
            out[block] = self._predict(Z[block])
        return self.frame.origin + self.frame.unit * out

    @cached_property
    def frame(self) -> Frame:
        """Origin and unit of the data in which squares are computed."""
        return Frame.of(self.X)

    @cached_property
    def points(self) -> Array:
        """The data relative to the frame."""
        return np.asarray(self.frame.apply(self.X), dtype=np.float64)

    @cached_property
    def _squares(self) -> Array:
        return squared_norms(self.points)

    def _predict(self, Z: Array) -> Array:
        energy, starts = self._pose(Z)
        n_starts, n, D = starts.shape
        Y, values = minimize_energies(
            energy, starts.reshape(-1, D), np.tile(np.arange(n), n_starts)
        )
        return Y.reshape(starts.shape)[first_minimum(values.reshape(n_starts, n)), np.arange(n)]

    def _pose(self, Z: Array) -> tuple["PairEnergy", Array]:
        """Energies at the coordinates `Z`, and initial data, (n_starts, n_new, n_features)."""
        positions = np.asarray(self.Z, dtype=np.float64)
        A = expanded_squares(Z, positions, squared_norms(positions))
        nearest = np.argsort(A, axis=1, kind="stable")[:, : self.n_nearest]
        K = np.exp(np.maximum(A.min(axis=1, keepdims=True) - self.max_squared_distance, 0.0) - A)
        total = K.sum(axis=1)
        mean = (K @ self.points) / total[:, None]
        spread = 2 * len(self.X) * float(squared_norms(self.points - self.points.mean(0)).sum())
        attraction = self.strength * total / (spread if spread > 0 else 1.0)
        precision = self.precision * self.frame.unit * self.frame.unit
        energy = PairEnergy(
            self.points,
            self._squares,
            precision,
            np.minimum(self.log_scale, 0.0),
            A / attraction[:, None],
            mean,
        )
        return energy, np.concatenate([mean[None], self.points[nearest].transpose(1, 0, 2)])


@dataclass(frozen=True, eq=False)
class PairEnergy:
    """‖y − mean‖² + Σₙ aₙ·w⁺(y, yₙ): the energy divided by the strength of its attraction."""

    X: Array
    squares: Array
    precision: Array
    log_scale: Array
    repulsion: Array  # (n_new, n): the aₙ
    mean: Array  # (n_new, n_features)

    def at(self, Y: Array, rows: IntArray) -> tuple[Array, Array]:
        """Values and gradients of the energies `rows` at data `Y`."""
        D = expanded_squares(Y, self.X, self.squares)
        W = np.exp(self.log_scale - self.precision * D)
        W *= self.repulsion[rows]
        value = W.sum(axis=1)
        W *= self.precision
        away = Y - self.mean[rows]
        repulsion = W.sum(axis=1)[:, None] * Y - W @ self.X
        return value + squared_norms(away), 2 * (away - repulsion)


def minimize_energies(
    energy: PairEnergy,
    starts: Array,
    rows: IntArray,
    tolerance: float = 1e-10,
    max_iter: int = 1000,
    armijo: float = 1e-4,  # required fraction of the decrease predicted by the gradient
    rounding: float = 1e-15,  # rounding error of the energies
) -> tuple[Array, Array]:
    """Minimize the energies `rows` from `starts`; return the minimizers and their energies.

    Gradient descent with Barzilai-Borwein step lengths, shortened until the energy decreases. The
    energy is close to quadratic, so few steps are needed; Newton steps would cost n_features².
    """
    Y = starts.copy()
    value, gradient = energy.at(Y, rows)
    length = np.full(len(Y), 0.5)  # exact if there is only attraction
    active = np.arange(len(Y))
    for _ in range(max_iter):
        step = -length[active, None] * gradient[active]
        there, gradient_there = energy.at(Y[active] + step, rows[active])
        change = gradient_there - gradient[active]
        better = there <= value[active] + armijo * _dot(step, gradient[active]) + rounding
        length[active] = np.where(better, _next_length(step, change), length[active] / 4)
        moved = active[better]
        Y[moved] += step[better]
        value[moved], gradient[moved] = there[better], gradient_there[better]
        active = active[np.abs(step).max(axis=1) > tolerance]
        if len(active) == 0:
            break
    return Y, value


def _next_length(
    step: Array, change: Array, shortest: float = 1e-8, longest: float = 10.0
) -> Array:
    """Reciprocal of the curvature along the last step; `longest` if it is not positive.

    For the attraction alone it is one half.
    """
    curvature, square = _dot(step, change), _dot(step, step)
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(curvature > 0, square / curvature, longest)
    return np.asarray(np.clip(length, shortest, longest))


def _dot(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", A, B))
