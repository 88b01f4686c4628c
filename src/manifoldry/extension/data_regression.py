"""Extension by local regression of the coordinates on the data."""

from dataclasses import dataclass

import numpy as np

from manifoldry.extension.base import Extension
from manifoldry.extension.layout import Layout, component_rows
from manifoldry.extension.regression import LocalRegression
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class DataRegression(Extension):
    """Local regression of the coordinates on the data, in Euclidean distance.

    It is the extension of methods that define none. A new point belongs to the connected component
    of its nearest training point.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The training data.
    Y : array of shape (n_samples, n_components)
        Coordinates within the components.
    layout : Layout
        Component of each training point, and where components lie.
    """

    X: Matrix
    Y: Array
    layout: Layout

    @cached_property
    def _index(self) -> NeighborIndex:
        return choose_index(self.X)

    @cached_property
    def _regressions(self) -> list[LocalRegression | None]:
        """One for each component; None for a single point."""
        return [
            LocalRegression(self.X[rows], self.Y[rows]) if len(rows) > 1 else None
            for rows in component_rows(self.layout.labels)
        ]

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        nearest = self._index.nearest(self._index.as_queries(X), 1)[0][:, 0]
        component = self.layout.labels[nearest]
        Y = self.Y[nearest]
        for label, regression in enumerate(self._regressions):
            rows = np.flatnonzero(component == label)
            if len(rows) and regression is not None:
                Y[rows] = regression.predict(X[rows])
        return Y, component

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.layout.place(Y, component)

    def transform(self, X: Matrix) -> Array:
        return self.place(*self.component_coordinates(X))
