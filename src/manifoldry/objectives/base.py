"""Base class of the objectives that optimizers minimize."""

from abc import ABC, abstractmethod

import numpy as np
from scipy import sparse

from manifoldry.util.typing import Array, IntArray


class Objective(ABC):
    """A function E(Y) of the coordinates of n points, (n, d).

    A subclass defines `n` and `value_and_gradient`, which searches without a filter need. Filters
    need more: `attraction` (:class:`~manifoldry.optimize.SpectralDirection`,
    :class:`~manifoldry.optimize.Jacobi`, guidance without a matrix) or `diagonal_curvature`
    (:class:`~manifoldry.optimize.DiagonalHessian`).

    E is invariant to rotations of Y and, if `translation_invariant` is True, to translations;
    every column of the gradient then sums to zero. Gradients have the dtype of `Y`; values are
    computed in double precision.
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

    def sampled_value(self, Y: Array, rows: IntArray) -> float:
        """Estimate of E(Y) from the terms of some points; E(Y) itself unless overridden."""
        return self.value(Y)

    @property
    def attraction(self) -> sparse.csr_array:
        """Symmetric weights W ≥ 0; four times their Laplacian is the Hessian of the attraction.

        Exact if the attraction is Σ Wᵢⱼ‖yᵢ − yⱼ‖²; otherwise the Hessian at Y = 0. An objective
        without attraction returns the neighbor graph of the data.
        """
        raise NotImplementedError(self._missing("attraction"))

    def diagonal_curvature(self, Y: Array) -> Array:
        """Positive part of the Hessian's diagonal, (n, d)."""
        raise NotImplementedError(self._missing("diagonal_curvature"))

    def _missing(self, name: str) -> str:
        return (
            f"{type(self).__name__} does not define {name}, which the filter of this search needs; "
            "define it, or use a search without a filter, such as LBFGS()"
        )

    def retract(self, Y: Array, G: Array) -> tuple[Array, Array]:
        """Retract `Y` to the constraint set, and transform the gradient `G` accordingly.

        The value of the objective does not change. Unconstrained objectives return `Y` and `G`.
        """
        return Y, G

    def hessian_product(
        self, Y: Array, V: Array, step: float = float(np.finfo(float).eps ** (1 / 3))
    ) -> Array:
        """Hessian at `Y` times `V`, (n, d), by central differences of the gradient.

        The `step` is relative to the largest entry of `Y`.
        """
        Y, V = np.asarray(Y, float), np.asarray(V, float)
        length = float(np.abs(V).max())
        if length == 0:
            return np.zeros_like(V)
        h = step * max(float(np.abs(Y).max()), 1.0) / length
        forward, backward = (self.value_and_gradient(Y + s * V)[1] for s in (h, -h))
        return (forward - backward) / (2 * h)


def check_embedding(Y: Array, n: int) -> Array:
    """Return `Y` as an array of n rows, or raise a ValueError."""
    Y = np.asarray(Y)
    if Y.ndim != 2 or len(Y) != n:
        raise ValueError(f"the embedding has shape {Y.shape}; pass an array with {n} rows")
    return Y
