"""Undo the whitening of eigenvector maps: give them the lengths of the data's own edges."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.optimize.interior_point import smat, svec_outer
from manifoldry.optimize.semidefinite import SemidefiniteQuadratic
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class MetricFit:
    """Linear maps that give the edges of a neighbor graph their length in the data."""

    graph: NeighborGraph
    nearest: int = 5  # longer chords cut across the curvature and shrink the map
    n_reweightings: int = 10  # of reweighting
    outlier_ratio: float = (
        6.0  # a step this many times as long as others belongs to misplaced points
    )
    length_tolerance: float = 0.25  # error up to which a squared length counts as right
    min_fraction: float = 0.8  # fraction of squared lengths that are right on a sheet
    max_stretch: float = 1.5  # a map this many times as wide as the paths on it is none
    max_correction: float = (
        3.0  # factor by which a fit without that evidence may differ from a robust one
    )

    def fit(self, Y: Array, rows: IntArray) -> Array:
        """The map A (n_components, n_components) for `rows` of the coordinates `Y`.

        Minimizes Σ |‖A(yᵢ − yⱼ)‖²/d²ᵢⱼ − 1| over nearest edges by reweighted least squares in
        P = AᵀA. Where that does not fit most of them, noise or torn edges decide it, and it may
        drop a direction: then A is a scatter estimate that no minority of edges can sway. The
        result is rotated to its principal axes, the longest first.
        """
        edges, unit = self._edge_vectors(Y, rows)
        if len(edges) == 0:
            return np.zeros((Y.shape[1], Y.shape[1]))  # all points of this component are one point
        A = _square_root(self._fit_metric(edges, self._inlier_weights(edges)))
        A = A if self._fits_most_edges(edges @ A) else self._robust_root(edges)
        A = A @ _principal_axes(Y[rows] @ A) * unit
        return A / self._excess_stretch(Y @ A, rows)

    def _edge_vectors(self, Y: Array, rows: IntArray) -> tuple[Array, float]:
        """Steps on the map along edges, each over its length in the data, and a unit of length.

        The nearest edges, unless they leave out a direction, as on a grid of uneven spacing.
        """
        graph = self.graph
        rank = np.arange(len(graph.indices)) - np.repeat(graph.indptr[:-1], np.diff(graph.indptr))
        inside = np.zeros(graph.n_query, dtype=bool)
        inside[rows] = True
        usable = (graph.distances > 0) & inside[graph.rows]
        unit = power_of_two_scale(graph.distances[usable])
        edges = Y[graph.rows[usable]] - Y[graph.indices[usable]]
        edges = edges / (graph.distances[usable] / unit)[:, None]
        nearest = edges[rank[usable] < self.nearest]
        size = np.abs(edges).max(axis=0, initial=0.0)
        spans = np.linalg.matrix_rank(nearest / np.where(size > 0, size, 1.0)) == Y.shape[1]
        return (nearest if spans else edges), unit

    def count_misplaced(self, Z: Array, rows: IntArray) -> int:
        """How many of `rows` lie far beyond any path from the middle of the map `Z`.

        A few points that two others tie to the rest may turn about those two as about a hinge.
        """
        stretch = self._stretch(Z, rows)
        return int((np.median(stretch, axis=0) > self.outlier_ratio).sum())

    def _excess_stretch(self, Z: Array, rows: IntArray) -> float:
        """How many times too wide the map is, at least 1.

        Where edges keep their length no two points can be farther apart than the path along the
        edges between them, but for the curvature that long edges cut short. Data that are no
        sheet break this by orders of magnitude.
        """
        stretch = self._stretch(Z, rows)
        excess = float(np.quantile(stretch[stretch > 0], 0.9)) if stretch.any() else 1.0
        return excess if excess > self.max_stretch else 1.0

    def _stretch(self, Z: Array, rows: IntArray) -> Array:
        """Distances on the map from a few points in its middle over paths, where there are any."""
        lengths, unit = self._paths
        Z = Z[rows] / unit
        sources = _central_points(Z)
        paths = dijkstra(lengths, indices=rows[sources])[:, rows]
        direct = np.linalg.norm(Z - Z[sources][:, None], axis=2)
        known = np.isfinite(paths) & (paths > 0)
        return np.where(known, direct, 0.0) / np.where(known, paths, 1.0)

    def _fit_metric(self, edges: Array, weights: Array) -> Array:
        """P for which edges·P·edges are nearest to one, by reweighting towards absolute errors."""
        P = _least_squares_metric(edges, weights)
        for _ in range(self.n_reweightings):
            excess = np.abs(_squared_lengths(edges, P) - 1)
            P = _least_squares_metric(edges, weights / np.maximum(excess, 0.05))
        return P

    def _inlier_weights(self, edges: Array) -> Array:
        """One for edges of ordinary size, else zero: a torn edge weighs by its length squared."""
        typical = np.median(np.abs(edges), axis=0)
        size = np.abs(edges) / np.where(typical > 0, typical, np.inf)
        return (size.max(axis=1) < self.outlier_ratio).astype(float)

    def _fits_most_edges(self, fitted: Array) -> bool:
        """Whether most edges have the length they should, one, after a fit."""
        right = np.abs((fitted**2).sum(axis=1) - 1) < self.length_tolerance
        return bool(right.mean() > self.min_fraction)

    def _robust_root(self, edges: Array) -> Array:
        """The scatter estimate, refined by a fit among the edges it finds inliers."""
        A = self._scatter_root(edges)
        whitened = edges @ A
        size = np.linalg.norm(whitened, axis=1)
        inliers = (size > 1 / self.outlier_ratio) & (size < self.outlier_ratio)
        values, vectors = np.linalg.eigh(self._fit_metric(whitened, inliers.astype(float)))
        if values[0] < self.max_correction**-2 or values[-1] > self.max_correction**2:
            return A
        return np.asarray(A @ (vectors * np.sqrt(values)))

    def _scatter_root(self, edges: Array) -> Array:
        """A for which edges·A have unit length in the median and no direction is preferred.

        Tyler's estimate of scatter: it looks at directions only, so the length of a torn edge,
        however absurd, counts for nothing.
        """
        size = np.median(np.abs(edges), axis=0)
        if not size.all():
            size = np.abs(edges).mean(axis=0)  # most edges are zero: few are left to go by
        size[size == 0] = 1.0
        scaled = edges / size
        scaled = scaled[scaled.any(axis=1)]
        C = np.eye(edges.shape[1])
        for _ in range(5 * self.n_reweightings):
            squares = _squared_lengths(scaled, np.linalg.pinv(C))
            nonzero = squares > 0
            before, C = C, (scaled[nonzero] / squares[nonzero, None]).T @ scaled[nonzero]
            C *= len(C) / np.trace(C)
            if np.abs(C - before).max() < 1e-6:
                break
        values, vectors = np.linalg.eigh(C)
        A = vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1])) / size[:, None]
        return A / np.median(np.linalg.norm(edges[edges.any(axis=1)] @ A, axis=1))

    @cached_property
    def _paths(self) -> tuple[sparse.csr_array, float]:
        return edge_lengths(self.graph)


def _central_points(Z: Array) -> IntArray:
    """Points nearest to the quartiles of the first axis, in the middle of the others."""
    targets = np.tile(np.median(Z, axis=0), (3, 1))
    targets[:, 0] = np.quantile(Z[:, 0], [0.25, 0.5, 0.75])
    return np.unique(((Z - targets[:, None]) ** 2).sum(axis=2).argmin(axis=1))


def _square_root(P: Array) -> Array:
    values, vectors = np.linalg.eigh(P)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _squared_lengths(edges: Array, P: Array) -> Array:
    return np.einsum("el,lm,em->e", edges, P, edges)


def _least_squares_metric(edges: Array, weights: Array) -> Array:
    """The positive semidefinite P that makes weighted edges·P·edges nearest to one."""
    size = np.abs(edges).mean(axis=0)
    size[size == 0] = 1.0
    design, root = svec_outer(edges / size), np.sqrt(weights)
    P = smat(np.linalg.lstsq(design * root[:, None], root, rcond=None)[0])
    if np.linalg.eigvalsh(P)[0] < 0:
        weighted = design * weights[:, None]
        P = SemidefiniteQuadratic(design.T @ weighted, weighted.sum(axis=0)).solve().P
    return P / np.outer(size, size)


def _principal_axes(Y: Array) -> Array:
    """Rotation to principal axes, signs as eigenvectors have them."""
    centered = Y - Y.mean(axis=0)
    V = np.linalg.svd(centered, full_matrices=False)[2].T
    rotated = centered @ V
    largest = rotated[np.abs(rotated).argmax(axis=0), np.arange(rotated.shape[1])]
    return V * np.where(largest < 0, -1.0, 1.0)
