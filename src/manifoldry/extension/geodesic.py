"""New points on a map of geodesic distances."""

from dataclasses import dataclass

import numpy as np

from manifoldry.extension.base import KernelExtension, Nystrom
from manifoldry.extension.pieces import Pieces
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class GeodesicExtension(KernelExtension):
    """Gower's formula on the distances that a new point has through its neighbours.

    With landmarks it is the triangulation of landmark scaling: the two differ only by terms that
    the eigenvectors, which sum to zero, do not see.
    """

    geodesics: Geodesics
    columns: list[IntArray]  # targets of each piece, by position among all targets
    maps: list[Nystrom]  # from −½·d² to those targets to coordinates on the piece
    unit: float
    pieces: Pieces

    def rows(self, X: Matrix) -> Array:
        out = np.zeros((X.shape[0], len(self.geodesics.targets)))
        for number, rows, kernel in self._by_piece(X):
            out[np.ix_(rows, self.columns[number])] = self.maps[number].rows(kernel)
        return out

    @property
    def numbers_per_row(self) -> int:
        return 4 * len(self.geodesics.targets)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.matrix(X) * self.unit**2

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.pieces.offset.shape[1]))
        for block in row_blocks(X.shape[0], self.numbers_per_row):
            out[block] = self.place(*self.within(X[block]))
        return out

    def place(self, Y: Array, piece: IntArray) -> Array:
        return self.pieces.place(Y, piece)

    def within(self, X: Matrix) -> tuple[Array, IntArray]:
        inside = np.zeros((X.shape[0], self.pieces.offset.shape[1]))
        piece = np.full(X.shape[0], -1)
        for number, rows, kernel in self._by_piece(X):
            inside[rows] = self.maps[number].transform(kernel)
            piece[rows] = number
        return inside, piece

    def _by_piece(self, X: Matrix) -> list[tuple[int, IntArray, Array]]:
        """For each piece that some rows belong to: which rows, and their uncentred kernel."""
        index = self.geodesics.graph.index
        near = index.nearest(index.read(X), 1)[0][:, 0]
        D = self.geodesics.from_new(X)
        if not np.isfinite(D).any(axis=1).all():
            raise ValueError(
                "some rows have no training point within reach, so they cannot be placed; use "
                "n_neighbors or a larger radius"
            )
        piece = self.pieces.labels[near]
        found: list[tuple[int, IntArray, Array]] = []
        for number in np.unique(piece[piece >= 0]):
            rows = np.flatnonzero(piece == number)
            found.append(
                (int(number), rows, squares(D[np.ix_(rows, self.columns[number])], self.unit))
            )
        return found


def squares(D: Array, unit: float) -> Array:
    """Classical scaling's uncentred kernel −½·d², in units of `unit`."""
    return np.asarray(-0.5 * (D / unit) ** 2)
