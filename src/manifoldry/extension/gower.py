"""Classical scaling's kernel, −½·d², as a function of new points."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry.affinity.dense import UNKNOWN_AMONG
from manifoldry.neighbors.distances import Frame, squared_distances
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class DistancesTo:
    """Distances from new points to training points, computed or given by the user."""

    n_train: int
    X: Matrix | None
    metric: Any
    metric_params: dict[str, Any] = field(default_factory=dict)

    def matrix(self, X: Matrix) -> Array:
        """Distances, (n_new, n_train)."""
        if self.X is None:
            return np.array(X, dtype=np.float64)
        from sklearn.metrics import pairwise_distances

        if isinstance(self.metric, str) and self.metric == "euclidean":
            D2 = squared_distances(X, self.X, self._frame, accuracy=1e-12)
            return np.sqrt(D2, out=D2) * self._frame.unit
        D = pairwise_distances(X, self.X, metric=self.metric, **self.metric_params)
        return np.asarray(D, dtype=np.float64)

    @cached_property
    def _frame(self) -> Frame:
        return Frame.of(self.X)

    def identical(self, X: Matrix) -> IntArray:
        """Training point at distance zero from each row of given distances, or -1."""
        zero = X == 0
        return np.where(zero.any(axis=1), zero.argmax(axis=1), -1)


@dataclass(frozen=True, eq=False)
class Gower:
    """−½·d² in units of `unit`, with classical scaling's additive constant if there is one."""

    distances: DistancesTo
    unit: float
    constant: float = 0.0

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return self.distances.n_train

    def matrix(self, X: Matrix) -> Array:
        """Uncentred kernel, (n_new, n_train)."""
        D = self.distances.matrix(X)
        if not np.isfinite(D).all():
            row = int(np.argmin(np.isfinite(D).all(axis=1)))
            raise ValueError(
                f"distances from row {row} to the training points are NaN or infinite; the metric "
                "is not defined there, or the row's magnitude overflows"
            )
        if self.constant:
            itself = self.distances.identical(D)
            D += self.constant
            known = np.flatnonzero(itself >= 0)
            D[known, itself[known]] = 0.0  # the constant separates different points only
        return -0.5 * (D / self.unit) ** 2

    def among(self, X: Matrix) -> Array:
        """Uncentred kernel of new points with each other, (n_new, n_new)."""
        if self.distances.X is None:
            raise ValueError(UNKNOWN_AMONG)
        among = replace(self.distances, X=X, n_train=X.shape[0])
        return replace(self, distances=among).matrix(X)
