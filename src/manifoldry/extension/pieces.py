"""Maps made of several pieces, one per connected component of the neighbour graph."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry._typing import Array, IntArray, Matrix
from manifoldry._validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Pieces:
    """Which piece every training point belongs to, and where each piece lies in the map.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        Piece of every training point, 0 being the largest; -1 where a point was left out.
    scale : array of shape (n_pieces,)
        Factor on the coordinates of each piece.
    offset : array of shape (n_pieces, n_components)
        Position of each piece.
    """

    labels: IntArray
    scale: Array
    offset: Array

    @classmethod
    def whole(cls, n_samples: int, n_components: int) -> "Pieces":
        """One piece, left as it is."""
        return cls(np.zeros(n_samples, dtype=np.intp), np.ones(1), np.zeros((1, n_components)))

    @classmethod
    def lay_out(cls, labels: IntArray, Y: Array, X: Matrix | None) -> "Pieces":
        """Place pieces where their centres lie in the data, at the size they have there.

        Every piece is scaled to the root mean square radius it has in the data, and the centres
        go where classical scaling of the distances between them puts them. Without data (a
        precomputed graph) the pieces keep a common size and stand side by side.
        """
        rows = [np.flatnonzero(labels == piece) for piece in range(labels.max() + 1)]
        radius = np.array([_radius(Y[row]) for row in rows])
        if X is None:
            target = np.ones(len(rows))
            offset: Array = np.zeros((len(rows), Y.shape[1]))
            offset[:, 0] = 4.0 * np.arange(len(rows))
        else:
            target = np.array([_radius(X[row]) for row in rows])
            offset = _principal_positions(np.vstack([_center(X[row]) for row in rows]), Y.shape[1])
        scale = np.where(radius > 0, target / np.where(radius > 0, radius, 1.0), 0.0)
        center = np.vstack([_center(Y[row]) for row in rows])
        return cls(labels, scale, offset - scale[:, None] * center)

    @property
    def count(self) -> int:
        """Number of pieces in the map."""
        return len(self.scale)

    def place(self, Y: Array, piece: IntArray) -> Array:
        """Put coordinates computed within pieces into the common map; piece -1 gives NaN."""
        placed = Y * self.scale[piece][:, None] + self.offset[piece]
        placed[piece < 0] = np.nan
        return placed


def _center(X: Matrix) -> Array:
    return np.asarray(X.mean(axis=0), dtype=np.float64).ravel()


def _radius(X: Matrix) -> float:
    """Root mean square distance from the centre."""
    if sparse.issparse(X):
        X = X.toarray()
    centered = X - _center(X)
    unit = power_of_two_scale(centered)
    return float(np.sqrt(((centered / unit) ** 2).sum(axis=1).mean()) * unit)


def _principal_positions(centers: Array, n_components: int) -> Array:
    """Centres projected on their own principal axes, padded with zeros."""
    centered = centers - centers.mean(axis=0)
    U, s, _ = np.linalg.svd(centered, full_matrices=False)
    kept = min(n_components, len(s))
    positions = np.zeros((len(centers), n_components))
    positions[:, :kept] = U[:, :kept] * s[:kept]
    return positions
