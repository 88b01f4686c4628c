"""What every objective offers to an optimizer."""

from abc import ABC, abstractmethod

import numpy as np
from scipy import sparse

from manifoldry.util.typing import Array


class Objective(ABC):
    """A function E(Y) of the coordinates of n points, (n, d).

    Maps that are moved or turned have the same value, so every column of the gradient sums to
    zero; where that is not so, `translation_invariant` is False. Gradients have the type of `Y`; values are
    sums in double precision.
    """

    translation_invariant: bool = True

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of points."""

    @abstractmethod
    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        """E(Y) and its gradient, (n, d)."""

    def value(self, Y: Array) -> float:
        """E(Y)."""
        return self.value_and_gradient(Y)[0]

    @property
    @abstractmethod
    def attraction(self) -> sparse.csr_array:
        """Symmetric weights W ≥ 0 whose Laplacian, times four, is the curvature of attraction.

        Exact where attraction is Σ Wᵢⱼ‖yᵢ − yⱼ‖², else its value at the collapsed map; an
        objective without such a term gives the neighbor graph that it is meant to respect.
        """

    @abstractmethod
    def diagonal_curvature(self, Y: Array) -> Array:
        """Positive part of the Hessian's diagonal, (n, d)."""

    def retract(self, Y: Array, G: Array) -> tuple[Array, Array]:
        """The map of the same value from which a search goes on, with the gradient there.

        That is `Y` itself, unless the objective sees maps only up to some change, along which
        they could drift away.
        """
        return Y, G

    def hessian_product(
        self, Y: Array, V: Array, step: float = float(np.finfo(float).eps ** (1 / 3))
    ) -> Array:
        """The Hessian at `Y` times `V`, (n, d), by central differences of the gradient.

        The `step`, relative to the map, balances truncation against rounding.
        """
        Y, V = np.asarray(Y, float), np.asarray(V, float)
        length = float(np.abs(V).max())
        if length == 0:
            return np.zeros_like(V)
        h = step * max(float(np.abs(Y).max()), 1.0) / length
        forward, backward = (self.value_and_gradient(Y + s * V)[1] for s in (h, -h))
        return (forward - backward) / (2 * h)


def check_embedding(Y: Array, n: int) -> Array:
    """`Y` as an array, refused if it is no map of n points."""
    Y = np.asarray(Y)
    if Y.ndim != 2 or len(Y) != n:
        raise ValueError(f"the map has shape {Y.shape}; pass one of {n} rows")
    return Y
