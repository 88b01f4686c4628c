"""Approximate k-nearest-neighbor graph by NN-descent.

Dong, Moses & Li, "Efficient k-nearest neighbor graph construction for generic similarity
measures" (WWW 2011), initialized from the leaves of random projection trees, with two changes.
Each point is compared with the neighbors of its neighbors, instead of comparing the neighbors of a
point with each other. This doubles the number of distances but needs no locks, so the result does
not depend on the number of threads. If a projection to principal axes keeps most of the variance,
the search runs in the projection, which is cheaper, and the candidates are then ranked by their
distances in the full space.
"""

from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np

from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import spread_rows


@dataclass(frozen=True)
class NNDescent:
    """Parameters of NN-descent, and the search itself.

    Parameters
    ----------
    n_trees, leaf_size : int
        Number of random projection trees, and largest number of points in a leaf.
    max_followed : int
        Number of neighbors of a point, and of reverse neighbors, whose neighbors are examined.
    max_passes : int
        Largest number of passes over the neighbors of neighbors.
    tol : float
        The search stops when a pass changes less than this fraction of the neighbors.
    min_recall : float
        A projection is used only if its candidates contain at least this fraction of the true
        neighbors of a sample.
    min_variance : float
        Fraction of the variance that a projection must keep.
    projection_rows, max_projection : int
        Number of rows used to compute the projection, and its largest dimension.
    """

    n_trees: int = 6
    leaf_size: int = 30
    max_followed: int = 20
    max_passes: int = 12
    tol: float = 0.002
    min_recall: float = 0.98
    min_variance: float = 0.9
    projection_rows: int = 3000
    max_projection: int = 256

    def neighbors(self, X: Array, k: int, sample: IntArray, truth: IntArray) -> IntArray:
        """Indices (n_samples, k) of the approximate k nearest other points of each row.

        Missing neighbors are -1, for example in clusters of at most k points. `X` must be centered
        and in single precision. `truth` holds the exact k nearest neighbors of the rows in
        `sample`, which decide whether a projection is used.
        """
        Z = self._projected(X)
        if Z is not X and not self._preserves_neighbors(Z, sample, truth, _n_candidates(k)):
            Z = X
        K = min(_n_candidates(k) if Z is not X else max(k + 3, 15), len(X) - 1)
        forest = _Forest.grow(Z, self.n_trees, self.leaf_size)
        order = forest.order
        found = _Neighbors.in_leaves(Z[order], K, forest).improve(
            self.max_passes, self.max_followed, self.tol
        )
        near = found.indices if Z is X else _ranked(X[order], found.indices, k)
        out = np.empty((len(X), k), dtype=np.intp)
        out[order] = np.where(near[:, :k] >= 0, order[near[:, :k]], -1)
        return out

    def improved(self, X: Array, indices: IntArray) -> IntArray:
        """The neighbors after another pass over the neighbors of neighbors in the full space."""
        k = indices.shape[1]
        found = _Neighbors.given(X, indices, k).improve(1, self.max_followed, self.tol)
        return found.indices.astype(np.intp)

    def _preserves_neighbors(self, Z: Array, sample: IntArray, truth: IntArray, K: int) -> bool:
        """Whether nearly all true neighbors are among the K nearest in the projection."""
        squares = np.einsum("ij,ij->i", Z, Z)
        D = squares[None, :] - 2 * Z[sample] @ Z.T  # squared distances up to a constant per row
        D[np.arange(len(sample)), sample] = np.inf
        kth = np.partition(D, min(K, len(Z) - 1) - 1, axis=1)[:, min(K, len(Z) - 1) - 1]
        return bool(
            (np.take_along_axis(D, truth, axis=1) <= kth[:, None]).mean() >= self.min_recall
        )

    def _projected(self, X: Array) -> Array:
        """Principal components that keep most of the variance, or X if that takes too many."""
        sample = X[spread_rows(len(X), self.projection_rows)]
        axes = _leading_directions(sample, self.max_projection)
        values, axes_vectors = np.linalg.eigh((sample @ axes).T @ (sample @ axes))
        fraction = np.cumsum(values[::-1]) / max(
            float((sample**2).sum()), np.finfo(np.float32).tiny
        )
        n_axes = int(np.searchsorted(fraction, self.min_variance)) + 1
        if n_axes > min(X.shape[1] // 2, len(values)):
            return X
        return X @ np.ascontiguousarray(axes @ axes_vectors[:, ::-1][:, :n_axes])


def _n_candidates(k: int) -> int:
    """Number of candidates per point for a search in a projection."""
    return max(2 * k, k + 10)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Random projection trees; points are renumbered in the order of the first tree's leaves."""

    orders: IntArray  # (n_trees, n): points sorted by leaf, in the numbering of the first tree
    leaves: IntArray  # (n_trees, n): leaf of every point
    starts: IntArray  # (n_trees, n_leaves + 1)
    order: IntArray  # (n,): the points in the order of the first tree

    @classmethod
    def grow(cls, X: Array, n_trees: int, leaf_size: int) -> "_Forest":
        from manifoldry.neighbors.compiled import grow_tree

        n = len(X)
        orders, leaves = np.empty((2, n_trees, n), dtype=np.int32)
        grown = map_threads(
            lambda t: grow_tree(X, leaf_size, t, orders[t], leaves[t]), range(n_trees)
        )
        starts = np.full((n_trees, max(map(len, grown))), n, dtype=np.int32)
        for row, found in zip(starts, grown, strict=True):
            row[: len(found)] = found
        order = orders[0].copy()
        place = np.empty_like(order)
        place[order] = np.arange(n, dtype=np.int32)
        return cls(place[orders], np.ascontiguousarray(leaves[:, order]), starts, order)


@dataclass(frozen=True, eq=False)
class _Neighbors:
    """The neighbors found so far, in rows sorted by distance."""

    X: Array
    indices: IntArray  # (n, K), -1 where there is none yet
    distances: Array  # (n, K), squared
    is_new: Any  # (n, K), whether a neighbor was added in the last pass

    @classmethod
    def in_leaves(cls, X: Array, K: int, forest: _Forest) -> "_Neighbors":
        """The nearest among the points that share a leaf of some tree."""
        from manifoldry.neighbors.compiled import search_leaves

        indices, distances = _no_neighbors(len(X), K)
        scratch = _Scratch(len(X))
        map_threads(
            lambda rows: search_leaves(
                X, forest.orders, forest.starts, forest.leaves, *rows, indices, distances,
                scratch.seen,
            ),
            _chunks(len(X)),
        )  # fmt: skip
        return cls(X, indices, distances, np.ones(indices.shape, dtype=np.bool_))

    @classmethod
    def given(cls, X: Array, candidates: IntArray, K: int) -> "_Neighbors":
        """The nearest among given candidates."""
        indices, distances = _no_neighbors(len(X), K)
        _rank(X, candidates, indices, distances)
        return cls(X, indices, distances, np.ones(indices.shape, dtype=np.bool_))

    def improve(self, max_passes: int, max_followed: int, tol: float) -> "_Neighbors":
        """Examine the neighbors of neighbors, in place, until few neighbors change."""
        from manifoldry.neighbors.compiled import link

        n, K = self.indices.shape
        width = min(max_followed, K)
        links = np.empty((n, 2 * width), dtype=np.int32)
        n_new, n_links, n_back = np.empty((3, n), dtype=np.int32)
        scratch = _Scratch(n)
        for number in range(1, max_passes + 1):
            link(self.indices, self.is_new, width, links, n_new, n_links, n_back)
            changed = self._follow(links, n_new, n_links, number * n, scratch)
            if changed < tol * n * K:
                break
        return self

    def _follow(
        self, links: IntArray, n_new: IntArray, n_links: IntArray, mark: int, scratch: "_Scratch"
    ) -> int:
        from manifoldry.neighbors.compiled import search_links

        found = self.indices, self.distances, self.is_new
        changed = map_threads(
            lambda rows: search_links(
                self.X, links, n_new, n_links, mark, *found, scratch.seen, *rows
            ),
            _chunks(len(self.X)),
        )
        return int(sum(changed))


class _Scratch(local):
    """Thread-local array that marks the points already compared."""

    def __init__(self, n: int) -> None:
        self.seen = np.full(n, -1, dtype=np.int64)


def _leading_directions(X: Array, max_projection: int) -> Array:
    """Orthonormal directions (n_features, ≤ max_projection) of largest variance of `X`."""
    d = X.shape[1]
    if d <= max_projection:
        return np.eye(d, dtype=X.dtype)
    start = np.random.default_rng(0).standard_normal((d, max_projection), dtype=np.float32)
    for _ in range(2):
        start = np.linalg.qr(X.T @ (X @ start))[0]
    return start


def _ranked(X: Array, candidates: IntArray, k: int) -> IntArray:
    indices, distances = _no_neighbors(len(X), k)
    _rank(X, candidates, indices, distances)
    return indices


def _rank(X: Array, candidates: IntArray, indices: IntArray, distances: Array) -> None:
    from manifoldry.neighbors.compiled import rerank

    candidates = candidates.astype(np.int32, copy=False)
    map_threads(lambda rows: rerank(X, candidates, indices, distances, *rows), _chunks(len(X)))


def _no_neighbors(n: int, K: int) -> tuple[IntArray, Array]:
    return np.full((n, K), -1, dtype=np.int32), np.full((n, K), np.inf, dtype=np.float32)


def _chunks(n: int, rows: int = 2048) -> list[tuple[int, int]]:
    """Return (start, stop) of the blocks of rows that threads process."""
    return [(start, min(start + rows, n)) for start in range(0, n, rows)]
