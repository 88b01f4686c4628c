"""Approximate search for all points at once, by following neighbors of neighbors.

Dong, Moses & Li, "Efficient k-nearest neighbor graph construction for generic similarity
measures" (WWW 2011), started from the leaves of random trees, with two changes. Every point looks
at the neighbors of its neighbors for itself, instead of introducing them to each other: that
doubles the distances but needs no locks, so the result does not depend on threads. And where a
projection to principal axes keeps most of the variance, the search runs there, at a fraction of
the cost, and only the candidates it finds are ranked by their true distances.
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
    """The search for the nearest other points of all points, and how thorough it is.

    Parameters
    ----------
    n_trees, leaf_size : int
        Random trees whose leaves are searched first, and the points in a leaf at most.
    max_followed : int
        Nearest neighbors of a point that are followed, and points that have it as theirs.
    max_passes : int
        Passes over the neighbors of neighbors, at most.
    tol : float
        Fraction of neighbors changing in a pass that ends them.
    min_recall : float
        Fraction of a sample's true neighbors that must be among the candidates in a projection.
    min_variance : float
        Fraction of the variance that a projection must keep.
    projection_rows, max_projection : int
        Rows from which the projection is taken, and its width at most.
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
        """Indices (n_samples, k) of most of the k nearest other points of every row, nearest first.

        -1 stands where fewer were found, as in clusters of no more than k points. `X` is in single
        precision and centered; `truth` are the k nearest of the rows in `sample`, which tell
        whether neighbors survive a projection.
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
        """The same number of neighbors after another pass over the neighbors of neighbors."""
        k = indices.shape[1]
        found = _Neighbors.given(X, indices, k).improve(1, self.max_followed, self.tol)
        return found.indices.astype(np.intp)

    def _preserves_neighbors(self, Z: Array, sample: IntArray, truth: IntArray, K: int) -> bool:
        """Whether nearly all true neighbors are among the K nearest in the projection."""
        squares = np.einsum("ij,ij->i", Z, Z)
        D = squares[None, :] - 2 * Z[sample] @ Z.T  # up to the rows' own squares
        D[np.arange(len(sample)), sample] = np.inf
        kth = np.partition(D, min(K, len(Z) - 1) - 1, axis=1)[:, min(K, len(Z) - 1) - 1]
        return bool(
            (np.take_along_axis(D, truth, axis=1) <= kth[:, None]).mean() >= self.min_recall
        )

    def _projected(self, X: Array) -> Array:
        """Principal coordinates that keep most of the variance, if they are few; else X itself."""
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
    """Candidates to look for where a projection stands in for the data."""
    return max(2 * k, k + 10)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Random trees over points; the leaves of the first one tell who lies near whom in memory."""

    orders: IntArray  # (n_trees, n): points leaf by leaf, numbered in the order of the first tree
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
    is_new: Any  # (n, K), whether a neighbor came in the last pass

    @classmethod
    def in_leaves(cls, X: Array, K: int, forest: _Forest) -> "_Neighbors":
        """The nearest among those that share a leaf of some tree."""
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
        """Follow the neighbors of neighbors, in place, until they stop changing."""
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
    """An array of every thread in which it notes whom it has looked at."""

    def __init__(self, n: int) -> None:
        self.seen = np.full(n, -1, dtype=np.int64)


def _leading_directions(X: Array, max_projection: int) -> Array:
    """Orthonormal directions (n_features, at most `max_projection`) along which `X` extends most."""
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
    """Return the rows that a thread works on at a time, from and to."""
    return [(start, min(start + rows, n)) for start in range(0, n, rows)]
