"""Weights of pairs as products of a few factors per point, whose sums need no matrix."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import plan_matrix


@dataclass(frozen=True, eq=False)
class FactoredWeights:
    """Weights wᵢⱼ = Σ_c lᵢ_c·rⱼ_c of pairs i ≠ j, or of new points i and training points j.

    A sum over all pairs is then one sum for every factor, with the weights r_c of the points.

    Weights are not negative. Terms may cancel, though, as in (xᵢ − xⱼ)² = xᵢ² + xⱼ² − 2·xᵢ·xⱼ for
    nearly equal x: such weights have the rounding error of the terms, and negative ones are set to
    zero.

    Parameters
    ----------
    left : array of shape (n, n_factors) or (n_new, n_factors)
        The factors l.
    right : array of shape (n, n_factors)
        The factors r. The product has to be symmetric, except for new points; this is not checked.

    Examples
    --------
    The weights (xᵢ − xⱼ)² = xᵢ² + xⱼ² − 2·xᵢ·xⱼ:

    >>> import numpy as np
    >>> from manifoldry.objectives.factored_weights import FactoredWeights
    >>> x, one = np.array([0.0, 1.0, 3.0]), np.ones(3)
    >>> left = np.stack([x * x, one, -2 * x], axis=1)
    >>> FactoredWeights(left, np.stack([one, x * x, x], axis=1)).dense()
    array([[0., 1., 9.],
           [1., 0., 4.],
           [9., 4., 0.]])
    """

    left: Array
    right: Array

    def check(self, n: int | None = None) -> None:
        """Raise ValueError for different numbers of factors, or unless they are of `n` points.

        Compiled loops rely on it.
        """
        left, right = self.left.shape, self.right.shape
        if len(left) != 2 or left[1:] != right[1:]:
            raise ValueError(f"the factors of the weights have the shapes {left} and {right}")
        if n is not None and self.shape != (n, n):
            raise ValueError(f"weights of {self.shape} points cannot be those of {n} points")

    @property
    def n_factors(self) -> int:
        """Number of factors of each point."""
        return int(self.left.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix of weights."""
        return len(self.left), len(self.right)

    def groups(self, size: int) -> Iterator["FactoredWeights"]:
        """Groups of at most `size` factors; sums with these weights are those of all groups."""
        for start in range(0, self.n_factors, size):
            some = slice(start, start + size)
            yield FactoredWeights(
                *map(np.ascontiguousarray, (self.left[:, some], self.right[:, some]))
            )

    def dense(self) -> Array:
        """The weights of all pairs, with a zero diagonal."""
        n = len(self.left)
        remedy = "compute rows(...) of some points at a time"
        plan_matrix((n, n), 8, f"a matrix of the weights of all pairs of {n} points", remedy)
        W = self.rows(slice(None))
        np.fill_diagonal(W, 0.0)
        return W

    def rows(self, rows: IntArray | slice) -> Array:
        """Weights of some points, (n_rows, n), also those of training points with themselves."""
        W = np.asarray(self.left[rows] @ self.right.T)
        return np.maximum(W, 0.0, out=W)

    def to(self, points: NDArray[np.bool_]) -> "FactoredWeights":
        """Return the weights to some of the training points."""
        return FactoredWeights(self.left, self.right[points])

    @cached_property
    def row_sums(self) -> Array:
        """Sums of the weights of every new point."""
        return np.asarray(self.left @ self.right.sum(axis=0))
