"""The smallest curvature of an objective at a map, and the way off a saddle."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, lobpcg

from manifoldry.objectives.base import Objective
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.util.typing import Array

_DENSE = 64  # unknowns up to which the Hessian is a matrix
_BLOCK = 2  # directions looked for at once: the second helps where two curvatures are close
_RESIDUAL = 1e-4  # of an eigenvector, in units of the mean curvature of attraction
_MOST = 200  # iterations
_NEGATIVE = 1e-5  # share of that unit below zero from which a curvature is that of a saddle
_HALVINGS = 40


class Curvature(NamedTuple):
    """The smallest eigenvalue of a Hessian, leaving out moving and turning the map."""

    value: float
    direction: Array
    """Its eigenvector, (n, d), of unit length."""
    unit: float
    """Mean curvature of attraction, with which to compare the value."""

    @property
    def is_negative(self) -> bool:
        """Whether the map is a saddle, beyond rounding."""
        return self.value < -_NEGATIVE * self.unit


def smallest_curvature(objective: Objective, Y: Array) -> Curvature:
    """The direction in which the objective rises least, or falls, and how it does.

    By block conjugate gradients (LOBPCG), for which the attraction's Laplacian is a very good
    preconditioner: tens of Hessian products where Lanczos needs hundreds.

    Examples
    --------
    Two points that coincide: the springs' curvature of 4 is outweighed by repulsion, λ = 2.

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=2.0)
    >>> round(smallest_curvature(objective, np.zeros((2, 1))).value, 6)
    -4.0
    """
    Y = np.asarray(Y, dtype=np.float64)
    R = _rigid_motions(Y - Y.mean(axis=0)) if objective.moves_freely else np.zeros((Y.size, 0))
    unit = 4 * float(objective.attraction.sum()) / objective.n or 1.0
    solve = _dense if Y.size <= _DENSE else _iterated
    value, v = solve(objective, Y, R, _RESIDUAL * unit)
    return Curvature(value, v.reshape(Y.shape), unit)


def off_saddle(objective: Objective, Y: Array, direction: Array) -> Array:
    """A lower map along a direction of negative curvature, to either side."""
    value = objective.value(Y)
    V = np.sqrt(len(Y)) * direction  # moves points by one, the width of the map's kernel
    for k in range(_HALVINGS):
        sides = [np.asarray(Y + s * 0.5**k * V, dtype=Y.dtype) for s in (1, -1)]
        values = [objective.value(side) for side in sides]
        if min(values) < value:
            return sides[int(np.argmin(values))]
    return Y


def _dense(objective: Objective, Y: Array, R: Array, tol: float) -> tuple[float, Array]:
    columns = [_product(objective, Y, e) for e in np.eye(Y.size)]
    H = np.array(columns)
    Q = np.linalg.svd(R)[0][:, R.shape[1] :]  # all directions but the rigid motions
    values, V = eigh(Q.T @ (H + H.T) @ Q / 2)
    return float(values[0]), Q @ V[:, 0]


def _iterated(objective: Objective, Y: Array, R: Array, tol: float) -> tuple[float, Array]:
    filter = SpectralDirection().bind(objective)
    shape = (Y.size, Y.size)

    def product(v: Array) -> Array:
        Hv = _product(objective, Y, v)
        return Hv - R @ (R.T @ Hv)  # away from minima, turning is no eigenvector

    H = LinearOperator(shape, product, dtype=np.float64)
    M = LinearOperator(
        shape, lambda v: filter.apply(v.reshape(Y.shape), Y).ravel(), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal((Y.size, _BLOCK))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the last digits are not needed
        values, V = lobpcg(
            H, start, M=M, Y=R if R.size else None, tol=tol, maxiter=_MOST, largest=False
        )
    least = int(np.argmin(values))
    return float(values[least]), V[:, least]


def _product(objective: Objective, Y: Array, v: Array) -> Array:
    return np.asarray(objective.hessian_product(Y, v.reshape(Y.shape))).ravel()


def _rigid_motions(Y: Array) -> Array:
    """Orthonormal directions of all translations and rotations of a centred map, (n·d, m)."""
    n, d = Y.shape
    motions: list[Array] = [np.outer(np.ones(n), axis).ravel() for axis in np.eye(d)]
    for i in range(d):
        for j in range(i):
            turn = np.zeros_like(Y)
            turn[:, i], turn[:, j] = Y[:, j], -Y[:, i]
            motions.append(turn.ravel())
    U, s, _ = np.linalg.svd(np.array(motions).T, full_matrices=False)
    return U[:, s > 1e-12 * s[0]]
