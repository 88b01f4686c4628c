"""New points placed by their distances from a few neighbours, whatever the metric."""

from dataclasses import dataclass

import numpy as np

from manifoldry.extension.base import Extension
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class Triangulation(Extension):
    """The place whose squared distances from neighbours on the map fit those in the data best.

    For maps that keep the lengths of short edges. It needs distances only; where coordinates are
    known, :class:`~manifoldry.extension.local.Barycentric` is exact at training points.
    """

    graph: NeighborGraph
    embedding: Array  # (n_train, n_components)
    labels: IntArray  # piece of every training point
    # Directions in which neighbours extend less than this share of the most are rounding or folds.
    flat: float = 0.05
    # What is added to squared distances in weights, as a share of that of the second nearest.
    softening: float = 0.05

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.embedding.shape[1]))
        index = self.graph.index
        for block in row_blocks(X.shape[0], max(self._k**2, index.n_reference)):
            indices, distances = index.nearest(index.read(X[block]), self._k)
            piece = self.labels[indices[:, :1]]
            same = self.labels[indices] == piece
            # Those elsewhere do not count; some may not even be on the map.
            Y = np.where(same[:, :, None], self.embedding[indices], self.embedding[indices[:, :1]])
            out[block] = self._triangulated(np.nan_to_num(Y), distances, same)
            out[block][piece[:, 0] < 0] = np.nan
        return out

    @property
    def _k(self) -> int:
        few = self.graph.n_neighbors or 2 * self.embedding.shape[1] + 1
        return min(few + 1, self.graph.n_reference)

    def _triangulated(self, Y: Array, distances: Array, counted: Array) -> Array:
        """Least-squares places (n, d) from places (n, k, d) and distances (n, k) of neighbours.

        With weights that favour the nearest: at y about their mean, |x|² − 2x·y + |y|² = d² is
        linear in x once the mean over neighbours is taken out.
        """
        Y = Y.astype(np.float64)
        unit = np.where(distances[:, -1:] > 0, distances[:, -1:], 1.0)
        d = distances / unit
        w = counted / (d**2 + d[:, 1:2] ** 2 * self.softening + 1e-12)
        w /= w.sum(axis=1, keepdims=True)
        mean = np.einsum("nk,nkd->nd", w, Y)
        offsets = (Y - mean[:, None]) / unit[:, :, None]
        target = np.einsum("nkd,nkd->nk", offsets, offsets) - d**2
        target -= np.einsum("nk,nk->n", w, target)[:, None]
        root = np.sqrt(w)[:, :, None]
        step = np.linalg.pinv(root * offsets, rcond=self.flat) @ (root * target[:, :, None])
        return np.asarray(mean + unit * step[:, :, 0] / 2)
