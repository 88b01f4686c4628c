"""Where the points of a map are drawn, and back from the drawing to the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from manifoldry.metrics import procrustes
from manifoldry.util.typing import Array

_MARGIN = 1.02  # the drawing is so much larger than the extent of the points


@dataclass(frozen=True, eq=False)
class Drawing:
    """An affine map from two coordinates to the square from -1 to 1 that is drawn.

    Parameters
    ----------
    matrix : array of shape (2, 2)
        A rotation or reflection times a scale.
    offset : array of shape (2,)
        Where the origin is drawn.
    """

    matrix: Array
    offset: Array

    @classmethod
    def around(cls, points: Array, reference: Array | None = None) -> Self:
        """The frame in which all points fit, turned to match a drawing of the same rows."""
        turn = np.eye(2) if reference is None else _turn(points, reference)
        turned = points @ turn
        low, high = np.nanmin(turned, axis=0), np.nanmax(turned, axis=0)
        half = float((high - low).max()) / 2 * _MARGIN or 1.0
        return cls(turn / half, -(low + high) / 2 / half)

    def drawn(self, points: Array) -> Array:
        """Where points are drawn."""
        return np.asarray(points @ self.matrix + self.offset)

    def coordinates(self, drawn: Array) -> Array:
        """The points that are drawn at these positions."""
        return np.asarray(np.linalg.solve(self.matrix.T, (drawn - self.offset).T).T)


def _turn(points: Array, reference: Array) -> Array:
    """The rotation or reflection after which points match a drawing best."""
    both = np.isfinite(points).all(axis=1) & np.isfinite(reference).all(axis=1)
    if both.sum() < 3 or not np.ptp(points[both], axis=0).any():
        return np.eye(2)
    found = procrustes(points[both], reference[both]).alignment.matrix
    size = np.sqrt(abs(np.linalg.det(found)))
    return np.asarray(found / size) if size > 0 else np.eye(2)


def plane(embedding: Array, shown: tuple[int, int]) -> Array:
    """Two coordinates of a map in double precision; the second of a line is 0.

    Rows of which a coordinate is missing have no position.
    """
    if embedding.shape[1] == 1:
        first = embedding[:, 0].astype(np.float64)
        return np.column_stack([first, np.where(np.isnan(first), np.nan, 0.0)])
    points = embedding[:, list(shown)].astype(np.float64)
    points[~np.isfinite(points).all(axis=1)] = np.nan
    return points
