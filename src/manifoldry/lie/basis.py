"""The few directions in which pairs of rows live, in which generators are learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd
from sklearn.utils.extmath import randomized_svd

from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal directions, (r, n_features), about the origin: a linear map keeps that fixed."""

    directions: Array
    energy: float  # share of the sum of squares they hold

    @classmethod
    def of(
        cls, X: Array, Y: Array, most: int, rng: np.random.Generator, exact_up_to: int = 4096
    ) -> Basis:
        """The leading directions of both sides of the pairs, `most` at most.

        The decomposition is exact up to this smaller side of the data, beyond it randomised.
        """
        rows = np.vstack([X, Y])
        if min(rows.shape) <= exact_up_to:
            _, S, Vt = svd(rows, full_matrices=False)
        else:
            seed = int(rng.integers(2**31))
            _, S, Vt = randomized_svd(rows, most, random_state=seed)
        kept = min(most, int((S / S[0] > max(rows.shape) * np.finfo(float).eps).sum()))
        energy = float((S[:kept] ** 2).sum() / (rows**2).sum())
        return cls(Vt[:kept].copy(), min(1.0, energy))

    def shrink(self, X: Array) -> Array:
        """Coordinates of rows in the basis."""
        return X @ self.directions.T

    def change(self, X: Array, before: Array, after: Array) -> Array:
        """Rows `X` whose coordinates move; whatever of them lies outside the basis stays."""
        return X + (after - before) @ self.directions
