"""The energy of a data point in the elastic embedding, and its minimization for many points."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from manifoldry.device import Device
from manifoldry.extension.on_device import copied_to
from manifoldry.neighbors.distances import expanded_squares, squared_norms
from manifoldry.util.arrays import namespace
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class PairEnergy:
    """‖y − mean‖² + Σₙ aₙ·w⁺(y, yₙ): the energy divided by the strength of its attraction."""

    X: Array
    squares: Array
    precision: Array
    log_scale: Array
    repulsion: Array  # (n_new, n): the aₙ
    mean: Array  # (n_new, n_features)

    def on(self, device: Device | None) -> "PairEnergy":
        """The same for data on a device."""
        parts = (getattr(self, part.name) for part in fields(self))
        return PairEnergy(*copied_to(device, *parts))

    def at(self, Y: Array, rows: IntArray) -> tuple[Array, Array]:
        """Values and gradients of the energies `rows` at data `Y`."""
        W = self._weights(Y, rows)
        value = W.sum(axis=1)
        W *= self.precision
        away = Y - self.mean[rows]
        repulsion = W.sum(axis=1)[:, None] * Y - W @ self.X
        return value + squared_norms(away), 2 * (away - repulsion)

    def hessian(self, Y: Array, rows: IntArray) -> Callable[[Array, IntArray], Array]:
        """The function that multiplies vectors V by the Hessians of some of the `rows` at `Y`.

        The Hessian is 2(1 − Σₙ bₙ)I + 4 Σₙ bₙβₙ(y − yₙ)(y − yₙ)ᵀ with bₙ = βₙaₙw⁺(y, yₙ).
        """
        B = self._weights(Y, rows)
        B *= self.precision
        scale = 2 - 2 * B.sum(axis=1)
        B *= 4 * self.precision

        def times(V: Array, which: IntArray) -> Array:
            along = _dot(Y[which], V)[:, None] - V @ self.X.T  # (y − yₙ)·v
            along *= B[which]
            outer = along.sum(axis=1)[:, None] * Y[which] - along @ self.X
            product: Array = scale[which, None] * V + outer
            return product

        return times

    def _weights(self, Y: Array, rows: IntArray) -> Array:
        """aₙ·w⁺(y, yₙ), (n_rows, n)."""
        W = np.exp(self.log_scale - self.precision * expanded_squares(Y, self.X, self.squares))
        W *= self.repulsion[rows]
        return W


def minimize_energies(
    energy: PairEnergy,
    starts: Array,
    rows: IntArray,
    tolerance: float = 1e-10,
    max_iter: int = 2000,
    gradient_tolerance: float = 1e-5,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Minimize the energies `rows` from `starts`; return minimizers, energies, and convergence.

    Newton's method, with conjugate gradients in place of n_features² numbers per point. Between
    the steep repulsion of several points the Hessian is too ill-conditioned for gradient descent.
    A search ends with steps of at most `tolerance` and has converged if Newton's step, before it
    is shortened, was no longer. Along a flat valley, such as a sphere around a point that both
    attracts and repels, steps stay longer; a search has converged, too, where no component of the
    gradient exceeds `gradient_tolerance` (the attraction's is twice the distance from the mean).
    """
    Y = starts.copy()
    value, gradient = energy.at(Y, rows)
    xp = namespace(Y)
    active, converged = xp.arange(len(Y)), xp.zeros(len(Y), dtype=bool)
    for _ in range(max_iter):
        newton = newton_steps(energy, Y[active], rows[active], gradient[active])
        step, value[active], gradient[active] = shortened(
            energy, Y[active], rows[active], value[active], gradient[active], newton
        )
        Y[active] += step
        converged[active] = np.abs(newton).max(axis=1) <= tolerance
        active = active[np.abs(step).max(axis=1) > tolerance]
        if len(active) == 0:
            break
    return Y, value, converged | (np.abs(gradient).max(axis=1) <= gradient_tolerance)


def newton_steps(
    energy: PairEnergy,
    Y: Array,
    rows: IntArray,
    gradient: Array,
    max_products: int = 100,
    longest: float = 1.0,  # the data have size one
) -> Array:
    """Newton steps by conjugate gradients, which end with a long step where curvature is negative.

    Conjugate directions are descent directions, so that their sum is, too.
    """
    hessian = energy.hessian(Y, rows)
    step, residual = np.zeros_like(Y), -gradient
    search, square = residual.copy(), squared_norms(residual)
    enough = np.minimum(1e-4, square) * square  # quadratic convergence
    active = np.flatnonzero(square > 0)
    for _ in range(min(max_products, 3 * Y.shape[1] + 10)):
        product = hessian(search[active], active)
        curvature = _dot(search[active], product)
        convex = curvature > 0
        step[active[~convex]] += _unit(search[active[~convex]]) * longest
        active, product, curvature = active[convex], product[convex], curvature[convex]
        length = (square[active] / curvature)[:, None]
        step[active] += length * search[active]
        residual[active] -= length * product
        last, square[active] = square[active], squared_norms(residual[active])
        search[active] = residual[active] + (square[active] / last)[:, None] * search[active]
        active = active[square[active] > enough[active]]
        if len(active) == 0:
            break
    size = np.sqrt(squared_norms(step))
    return step * (longest / np.maximum(size, longest))[:, None]


def _unit(V: Array) -> Array:
    return V / np.sqrt(squared_norms(V))[:, None]


def shortened(
    energy: PairEnergy,
    Y: Array,
    rows: IntArray,
    value: Array,
    gradient: Array,
    step: Array,
    armijo: float = 1e-4,  # required fraction of the decrease predicted by the gradient
    rounding: float = 1e-15,  # rounding error of the energies
    max_halvings: int = 40,
) -> tuple[Array, Array, Array]:
    """Halve steps until the energy decreases; return them with the energies and gradients there.

    A step that never decreases it becomes zero.
    """
    step, value, gradient = step.copy(), value.copy(), gradient.copy()
    slope, pending = armijo * _dot(step, gradient), namespace(Y).arange(len(Y))
    for _ in range(max_halvings):
        there, gradient_there = energy.at(Y[pending] + step[pending], rows[pending])
        lower = there <= value[pending] + slope[pending] + rounding
        done = pending[lower]
        value[done], gradient[done] = there[lower], gradient_there[lower]
        pending = pending[~lower]
        if len(pending) == 0:
            break
        step[pending] /= 2
        slope[pending] /= 2
    step[pending] = 0.0
    return step, value, gradient


def _dot(A: Array, B: Array) -> Array:
    return np.einsum("ij,ij->i", A, B)
