"""Linear map that gives the edges of an embedding their lengths in the data.

Eigenvectors have unit variance; this restores the scale and the aspect ratio of the data.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.neighbors.geodesics import edge_lengths
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.shortest_paths import path_lengths_from
from manifoldry.optimize.interior_point import smat, svec_outer
from manifoldry.optimize.semidefinite_quadratic import SemidefiniteQuadratic
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class MetricFit:
    """Fits linear maps that give the edges of a neighbor graph their lengths in the data.

    Parameters
    ----------
    graph : NeighborGraph
        Neighbor graph of the data.
    nearest : int
        Number of nearest neighbors whose edges are fitted. Longer edges are chords across the
        curvature of the manifold, shorter than paths on it, and would shrink the embedding.
    n_reweightings : int
        Number of iterations of reweighted least squares.
    outlier_ratio : float
        An edge is an outlier if it is this many times longer than the median (or shorter, in the
        robust fit); a point is misplaced if its distance on the embedding is this many times longer
        than the path to it.
    length_tolerance : float
        Largest relative error at which a squared length counts as correct.
    min_fraction : float
        Fraction of squared lengths that must be correct for the least squares fit to be used.
    max_stretch : float
        If distances on the embedding exceed paths along its edges by more than this factor, the
        embedding is shrunk.
    min_length : float
        Edges and paths that are at most this long, relative to the longest edge, count as zero,
        since squares of their reciprocals would overflow.
    max_correction : float
        Largest factor by which a fit to inliers may change the robust estimate.
    """

    graph: NeighborGraph
    nearest: int = 5
    n_reweightings: int = 10
    outlier_ratio: float = 6.0
    length_tolerance: float = 0.25
    min_fraction: float = 0.8
    max_stretch: float = 1.5
    min_length: float = 1e-100
    max_correction: float = 3.0

    def fit(self, Y: Array, rows: IntArray) -> Array:
        """Return the linear map A (n_components, n_components) for `rows` of the coordinates `Y`.

        Minimizes Σ |‖A(yᵢ − yⱼ)‖²/d²ᵢⱼ − 1| over the edges to nearest neighbors, by reweighted
        least squares in P = AᵀA. If the result does not fit most edges, it depends on noise or
        outliers and may be singular; then A is a robust estimate of scatter, which a minority of
        edges cannot change much. The result is rotated to its principal axes, the longest first.
        """
        edges, unit = self._edge_vectors(Y, rows)
        if len(edges) == 0:
            return np.zeros((Y.shape[1], Y.shape[1]))  # all points of this component coincide
        A = _square_root(self._fit_metric(edges, self._inlier_weights(edges)))
        A = A if self._fits_most_edges(edges @ A) else self._robust_root(edges)
        A = A @ _principal_axes(Y[rows] @ A) * unit
        return A / self._excess_stretch(Y @ A, rows)

    def _edge_vectors(self, Y: Array, rows: IntArray) -> tuple[Array, float]:
        """Return yᵢ − yⱼ divided by the length of the edge in the data, and a unit of length.

        These are the edges to nearest neighbors, or all edges if those do not span the space, as on
        a grid of uneven spacing.
        """
        graph = self.graph
        rank = np.arange(len(graph.indices)) - np.repeat(graph.indptr[:-1], np.diff(graph.indptr))
        inside = np.zeros(graph.n_query, dtype=bool)
        inside[rows] = True
        unit = power_of_two_scale(graph.distances[inside[graph.rows]])
        usable = (graph.distances / unit > self.min_length) & inside[graph.rows]
        edges = Y[graph.rows[usable]] - Y[graph.indices[usable]]
        edges = edges / (graph.distances[usable] / unit)[:, None]
        nearest = edges[rank[usable] < self.nearest]
        size = np.abs(edges).max(axis=0, initial=0.0)
        spans = np.linalg.matrix_rank(nearest / np.where(size > 0, size, 1.0)) == Y.shape[1]
        return (nearest if spans else edges), unit

    def count_misplaced(self, Z: Array, rows: IntArray) -> int:
        """Return how many of `rows` are much farther from the center of `Z` than the path to them.

        A few points that are connected to the rest by two points only can rotate about the line
        through these two.
        """
        stretch = self._stretch(Z, rows)
        return int((np.median(stretch, axis=0) > self.outlier_ratio).sum())

    def _excess_stretch(self, Z: Array, rows: IntArray) -> float:
        """Return the factor by which the embedding `Z` is too large, at least 1.

        If edges have their lengths, two points are at most as far apart as the path between them
        is long, except for curvature. Data that do not lie near a surface violate this by orders
        of magnitude.
        """
        stretch = self._stretch(Z, rows)
        excess = float(np.quantile(stretch[stretch > 0], 0.9)) if stretch.any() else 1.0
        return excess if excess > self.max_stretch else 1.0

    def _stretch(self, Z: Array, rows: IntArray) -> Array:
        """Return distances from a few central points divided by path lengths; 0 without a path."""
        lengths, unit = self._paths
        Z = Z[rows] / unit
        sources = _central_points(Z)
        paths = path_lengths_from(lengths, rows[sources])[:, rows]
        direct = np.linalg.norm(Z - Z[sources][:, None], axis=2)
        known = np.isfinite(paths) & (paths > self.min_length)  # not between identical rows
        return np.where(known, direct, 0.0) / np.where(known, paths, 1.0)

    def _fit_metric(self, edges: Array, weights: Array) -> Array:
        """Return the P of least Σ weights·|edges·P·edges − 1|, by reweighted least squares."""
        P = _least_squares_metric(edges, weights)
        for _ in range(self.n_reweightings):
            excess = np.abs(_squared_lengths(edges, P) - 1)
            P = _least_squares_metric(edges, weights / np.maximum(excess, 0.05))
        return P

    def _inlier_weights(self, edges: Array) -> Array:
        """Return 1 for edges of typical size and 0 for outliers, whose squares would dominate."""
        typical = np.median(np.abs(edges), axis=0)
        size = np.abs(edges) / np.where(typical > 0, typical, np.inf)
        return (size.max(axis=1) < self.outlier_ratio).astype(float)

    def _fits_most_edges(self, fitted: Array) -> bool:
        """Return whether most edges have unit length after a fit, up to the tolerance."""
        right = np.abs((fitted**2).sum(axis=1) - 1) < self.length_tolerance
        return bool(right.mean() > self.min_fraction)

    def _robust_root(self, edges: Array) -> Array:
        """Return A from the robust scatter estimate, refined by a fit to its inliers.

        The refinement is discarded if it changes a length by more than a factor `max_correction`.
        """
        A = self._scatter_root(edges)
        whitened = edges @ A
        size = np.linalg.norm(whitened, axis=1)
        inliers = (size > 1 / self.outlier_ratio) & (size < self.outlier_ratio)
        values, vectors = np.linalg.eigh(self._fit_metric(whitened, inliers.astype(float)))
        if values[0] < self.max_correction**-2 or values[-1] > self.max_correction**2:
            return A
        return np.asarray(A @ (vectors * np.sqrt(values)))

    def _scatter_root(self, edges: Array) -> Array:
        """Return the A for which edges·A are isotropic and have median length 1.

        This is Tyler's M-estimator of scatter, which depends on the directions of edges only, not
        on the lengths of outliers.
        """
        size = np.median(np.abs(edges), axis=0)
        if not size.all():
            size = np.abs(edges).mean(axis=0)  # more than half of the edges are zero
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
    """Return the points nearest to the quartiles of the first axis, the medians of the others."""
    targets = np.tile(np.median(Z, axis=0), (3, 1))
    targets[:, 0] = np.quantile(Z[:, 0], [0.25, 0.5, 0.75])
    return np.unique(((Z - targets[:, None]) ** 2).sum(axis=2).argmin(axis=1))


def _square_root(P: Array) -> Array:
    values, vectors = np.linalg.eigh(P)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _squared_lengths(edges: Array, P: Array) -> Array:
    return np.einsum("el,lm,em->e", edges, P, edges)


def _least_squares_metric(edges: Array, weights: Array) -> Array:
    """Return the positive semidefinite P that minimizes Σ weights·(edges·P·edges − 1)²."""
    size = np.abs(edges).mean(axis=0)
    size[size == 0] = 1.0
    design, root = svec_outer(edges / size), np.sqrt(weights)
    P = smat(np.linalg.lstsq(design * root[:, None], root, rcond=None)[0])
    if np.linalg.eigvalsh(P)[0] < 0:
        weighted = design * weights[:, None]
        P = SemidefiniteQuadratic(design.T @ weighted, weighted.sum(axis=0)).solve().P
    return P / np.outer(size, size)


def _principal_axes(Y: Array) -> Array:
    """Return the rotation to principal axes; the largest entry of each coordinate is positive."""
    centered = Y - Y.mean(axis=0)
    # With fewer points than coordinates, the axes of the points do not span all coordinates.
    V = np.linalg.svd(centered, full_matrices=len(Y) < Y.shape[1])[2].T
    rotated = centered @ V
    largest = rotated[np.abs(rotated).argmax(axis=0), np.arange(rotated.shape[1])]
    return V * np.where(largest < 0, -1.0, 1.0)
