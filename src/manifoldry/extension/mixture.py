"""New points on a map whose coordinates are mixtures of another map's, piece by piece."""

from dataclasses import dataclass

import numpy as np

from manifoldry.extension.base import Extension
from manifoldry.extension.pieces import Pieces
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class Mixture(Extension):
    """The affine map of a point's piece, applied to its coordinates on the other map.

    A new point belongs to the piece of the training point nearest to it.
    """

    basis: Extension
    index: NeighborIndex
    centers: Array  # (n_pieces, n_basis)
    axes: Array  # (n_pieces, n_basis, n_components)
    pieces: Pieces

    def transform(self, X: Matrix) -> Array:
        return self.place(*self.within(X))

    def place(self, Y: Array, piece: IntArray) -> Array:
        return self.pieces.place(Y, piece)

    def within(self, X: Matrix) -> tuple[Array, IntArray]:
        piece = self._piece(X)
        steps = self.basis.transform(X) - self.centers[piece]
        return np.einsum("nm,nml->nl", steps, self.axes[piece]), piece

    def _piece(self, X: Matrix) -> IntArray:
        if len(self.centers) == 1 and self.pieces.labels.min() == 0:
            return np.zeros(X.shape[0], dtype=np.intp)
        nearest = self.index.nearest(self.index.read(X), 1)[0][:, 0]
        return self.pieces.labels[nearest]
