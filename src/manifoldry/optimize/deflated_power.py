"""Guidance by powers of a matrix, with a direction of its own for every coordinate."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.optimize.power import Power
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class DeflatedPower(Power):
    """M^ν for the first coordinate; for the next ones, M without the directions already taken.

    High powers turn every column of the gradient towards the same eigenvector. Here the second
    coordinate's M is (I − uuᵀ)M(I − uuᵀ), u the direction of the first one's result, and so on,
    which is positive semidefinite whatever u is, so that every coordinate descends. (The published
    M − λuuᵀ is not, unless u is an eigenvector.)

    The operator depends on the gradient: use it with plain descent. Its last level is no place to
    stay, since later coordinates never move along earlier ones' directions.

    Parameters
    ----------
    start : int, default=10
        The first ν; see :class:`Power`.
    matrix, schedule, then
        See :class:`Guidance`.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.optimize.deflated_power import DeflatedPower
    >>> G = np.ones((3, 2))
    >>> DeflatedPower().smoothed(np.diag([1.0, 0.5, 0.1]), 60, G).round(3) + 0.0
    array([[1., 0.],
           [0., 0.],
           [0., 0.]])
    """

    def smoothed(self, prepared: Any, level: float, G: Array) -> Array:
        out = np.empty_like(G)
        taken = np.empty((len(G), 0))
        for j, g in enumerate(G.T):
            z = _without(taken, g)
            for _ in range(int(level)):
                z = _without(taken, prepared @ z)
            out[:, j] = z
            taken = np.column_stack([taken, _direction(taken, z)])
        return out


def _without(U: Array, z: Array) -> Array:
    return z - U @ (U.T @ z)


def _direction(U: Array, z: Array) -> Array:
    """`z` as a unit vector orthogonal to `U`, which rounding has spoilt for short ones; or none."""
    length = np.abs(z).max(initial=0.0)
    if length == 0:
        return np.empty((len(z), 0))
    z = _without(U, z / length)
    return (z / np.linalg.norm(z))[:, None]
