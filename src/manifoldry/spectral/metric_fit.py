"""Undo the whitening of eigenvector maps: give them the lengths of the data's own edges."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry._typing import Array, IntArray
from manifoldry._validation import power_of_two_scale, spread_rows
from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph

_NEAREST = 5  # longer chords cut across the curvature and shrink the map
_ROUNDS = 10  # of reweighting
_TORN = 6.0  # a step this many times too long or too short belongs to misplaced points
_TRUSTED = 3.0  # factor by which the fit may differ from its start along any direction
_SOURCES = 3  # points from which paths along the graph are compared with the map


@dataclass(frozen=True, eq=False)
class MetricFit:
    """Linear maps that give the edges of a neighbour graph their length in the data."""

    graph: NeighborGraph

    def fit(self, Y: Array, rows: IntArray) -> Array:
        """The map A (n_components, n_components) for `rows` of the coordinates `Y`.

        Minimises Σ |‖A(yᵢ − yⱼ)‖²/d²ᵢⱼ − 1| over nearest edges by reweighted least squares in
        P = AᵀA. It starts from a scatter estimate that no minority of misplaced points can sway,
        and stays there if the fit strays far from it: noise can make P indefinite. The result is
        turned to its principal axes, the longest first.
        """
        i, j, lengths = self._short_edges(rows)
        if len(lengths) == 0:
            return np.zeros((Y.shape[1], Y.shape[1]))  # all points of this piece are one point
        unit = power_of_two_scale(lengths)
        steps = (Y[i] - Y[j]) / (lengths / unit)[:, None]
        A = _scatter_root(steps)
        A = A @ _correction(steps @ A)
        A = A @ _principal_axes(Y[rows] @ A) * unit
        return A / self._overreach(Y @ A, rows)

    def _short_edges(self, rows: IntArray) -> tuple[IntArray, IntArray, Array]:
        graph = self.graph
        rank = np.arange(len(graph.indices)) - np.repeat(graph.indptr[:-1], np.diff(graph.indptr))
        inside = np.zeros(graph.n_query, dtype=bool)
        inside[rows] = True
        keep = (rank < _NEAREST) & (graph.distances > 0) & inside[graph.rows]
        return graph.rows[keep], graph.indices[keep], graph.distances[keep]

    def _overreach(self, Z: Array, rows: IntArray) -> float:
        """How many times too wide the map is, at least 1.

        Where edges keep their length no two points can be farther apart than the path along the
        edges between them. Data that are no sheet break this by orders of magnitude.
        """
        lengths, unit = self._paths
        sources = rows[spread_rows(len(rows), _SOURCES)]
        paths = dijkstra(lengths, indices=sources)[:, rows]
        direct = np.linalg.norm(Z[rows] - Z[sources][:, None], axis=2) / unit
        known = np.isfinite(paths) & (paths > 0)
        ratios = direct[known] / paths[known]
        return max(1.0, float(np.quantile(ratios, 0.9))) if len(ratios) else 1.0

    @cached_property
    def _paths(self) -> tuple[sparse.csr_array, float]:
        return edge_lengths(self.graph)


def _scatter_root(steps: Array) -> Array:
    """A for which steps·A have unit length in the median and no direction is preferred.

    Tyler's estimate of scatter: it looks at directions only, so the length of a torn edge, however
    absurd, counts for nothing.
    """
    size = np.median(np.abs(steps), axis=0)
    if not size.all():
        size = np.abs(steps).mean(axis=0)  # most steps are zero: few are left to go by
    size[size == 0] = 1.0
    scaled = steps / size
    scaled = scaled[scaled.any(axis=1)]
    C = np.eye(steps.shape[1])
    for _ in range(5 * _ROUNDS):
        squares = np.einsum("el,lm,em->e", scaled, np.linalg.pinv(C), scaled)
        seen = squares > 0
        new = (scaled[seen] / squares[seen, None]).T @ scaled[seen]
        new *= len(C) / np.trace(new)
        settled = np.abs(new - C).max() < 1e-6
        C = new
        if settled:
            break
    values, vectors = np.linalg.eigh(C)
    values = np.maximum(values, 1e-12 * values[-1])
    A = vectors / np.sqrt(values) / size[:, None]
    return A / np.median(np.linalg.norm(steps[steps.any(axis=1)] @ A, axis=1))


def _correction(even: Array) -> Array:
    """The map that brings steps of about unit length nearer to it; the identity if it cannot."""
    squares = (even**2).sum(axis=1)
    even = even[(squares > _TORN**-2) & (squares < _TORN**2)]
    P = np.eye(even.shape[1])
    for _ in range(_ROUNDS):
        excess = np.abs(np.einsum("el,lm,em->e", even, P, even) - 1)
        P = _form(even, 1 / np.maximum(excess, 0.05))
    values, vectors = np.linalg.eigh(P)
    if values[0] < _TRUSTED**-2 or values[-1] > _TRUSTED**2:
        return np.eye(len(P))
    return np.asarray(vectors * np.sqrt(values))


def _form(steps: Array, weights: Array) -> Array:
    """The symmetric P that makes weighted steps·P·steps nearest to one."""
    L = steps.shape[1]
    a, b = np.triu_indices(L)
    design = steps[:, a] * steps[:, b] * np.where(a == b, 1.0, 2.0)
    root = np.sqrt(weights)
    entries = np.linalg.lstsq(design * root[:, None], root, rcond=None)[0]
    P = np.zeros((L, L))
    P[a, b] = P[b, a] = entries
    return P


def _principal_axes(Y: Array) -> Array:
    """Rotation to principal axes, signs as eigenvectors have them."""
    centered = Y - Y.mean(axis=0)
    V = np.linalg.svd(centered, full_matrices=False)[2].T
    turned = centered @ V
    largest = turned[np.abs(turned).argmax(axis=0), np.arange(turned.shape[1])]
    return V * np.where(largest < 0, -1.0, 1.0)
