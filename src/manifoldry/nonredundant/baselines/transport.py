"""Advection: move the data along the gradient of a coordinate, and embed the result."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.affinity.gaussian import local_weights
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.extension.regression import gaussian_weights
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph, resolve_neighbors
from manifoldry.neighbors.neighborhoods import gathered
from manifoldry.nonredundant.baselines.selection import degrees, standardized
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
from manifoldry.spectral.posed import coupled_components
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array
from manifoldry.util.validation import read_array, row_blocks

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Advection:
    """Coordinates found by `advection`, and the final positions of the points.

    Attributes
    ----------
    embedding : array of shape (n_samples, n_found)
        The coordinates found before the graph became disconnected.
    points : array of shape (n_samples, n_features)
        Positions of the points when the last graph was built.
    n_connected_components : int
        Connected components of that graph; 1 if all requested coordinates were found.
    """

    embedding: Array
    points: Array
    n_connected_components: int

    @property
    def disconnected(self) -> bool:
        """Whether the graph became disconnected, so that coordinates may be missing."""
        return self.n_connected_components > 1


def advection(
    X: Any,
    n_components: int = 2,
    *,
    n_neighbors: int | None = None,
    dimension: int = 2,
    max_steps: int = 2000,
) -> Advection:
    """Collapse the data along each coordinate before computing the next (Gerber et al. 2007).

    A coordinate f is the one-dimensional Laplacian eigenmap. Points then move along the manifold
    in the direction of f's gradient until f has its mean value everywhere: in steps of at most
    half the distance between neighbors, each followed by a projection to the tangent plane at the
    nearest original points, where f and its gradient are found by local linear regression. A new
    graph on the moved points gives the next coordinate. If the points collapse to several separate
    sets, such as two for a ring, the graph is disconnected and the method stops (see
    ``disconnected`` of the result). It needs dense data: a single outlier, or a gap in the line to
    which a sheet collapses, stops it too.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data.
    n_components : int, default=2
        Number of coordinates, at most `dimension`, since each removes one dimension.
    n_neighbors : int, default=None
        Neighbors per point, more than `dimension`; by default 10, or half the points if those
        are fewer.
    dimension : int, default=2
        Dimension of the manifold.
    max_steps : int, default=2000
        Maximum number of steps of a point per coordinate; a warning reports points that need more.

    Returns
    -------
    Advection

    References
    ----------
    S. Gerber, T. Tasdizen and R. Whitaker, "Robust non-linear dimensionality reduction using
    successive 1-dimensional Laplacian eigenmaps", ICML 2007.

    Examples
    --------
    >>> from manifoldry.datasets import make_ring, make_strip
    >>> from manifoldry.nonredundant.baselines import advection
    >>> advection(make_strip(300, random_state=0).X, 2).embedding.shape
    (300, 2)
    >>> advection(make_ring(600, tube=0.2, random_state=0).X, 2).disconnected
    True
    """
    X = read_array(X, dtype=np.float64, copy=True, ensure_min_samples=3)
    k = resolve_neighbors(n_neighbors, len(X))
    dimension = _check_dimension(dimension, k, X.shape[1])
    count, most = check_count("n_components", n_components), check_count("max_steps", max_steps)
    if count > dimension:
        raise ValueError(
            f"n_components={count} must be at most dimension={dimension}, as every coordinate "
            f"removes one dimension; pass n_components={dimension} or fewer"
        )
    F = np.empty((len(X), 0))
    while True:
        W, n_connected = _graph_weights(X, k)
        if n_connected > 1:
            return Advection(F, X, n_connected)
        f = LaplacianEigenmaps(1, affinity="precomputed").fit_transform(W)[:, 0]
        F = np.column_stack([F, f])
        if F.shape[1] == count:
            return Advection(F, X, n_connected)
        X = _collapse(X, standardized(f[:, None])[:, 0], k, dimension - F.shape[1] + 1, most)


def _check_dimension(dimension: Any, k: int, n_features: int) -> int:
    dimension = check_count("dimension", dimension)
    for bound, what in ((k - 1, "n_neighbors - 1"), (n_features, "n_features")):
        if dimension > bound:
            raise ValueError(
                f"dimension={dimension} must be at most {what}={bound}, the most that a "
                f"neighborhood can span; pass dimension={bound} or less"
            )
    return dimension


def _graph_weights(X: Array, k: int) -> tuple[sparse.csr_array, int]:
    """Weights of the neighbor graph, and the number of its connected components."""
    W = local_weights(NeighborGraph.build(X, k))
    return W, int(coupled_components(sparse.diags_array(degrees(W)) - W).max()) + 1


def _collapse(X: Array, f: Array, k: int, dimension: int, max_steps: int) -> Array:
    """Move all points along the manifold to the zero set of f."""
    function = _Function(X, f, choose_index(X), min(2 * k, len(X)), dimension)
    max_length = float(np.median(function.index.nearest(X, 2)[1][:, 1])) / 2
    Y, moving = X.copy(), np.arange(len(X))
    for _ in range(max_steps):
        blocks = row_blocks(len(moving), 3 * function.k * X.shape[1])
        parts = [function.step(Y[moving[block]], max_length) for block in blocks]
        Y[moving] = np.concatenate([moved for moved, _ in parts])
        moving = moving[~np.concatenate([converged for _, converged in parts])]
        if len(moving) == 0:
            return Y
    warn(
        f"{len(moving)} of {len(X)} points have not converged after max_steps={max_steps} "
        "steps, so that the next coordinate may repeat this one; raise max_steps, or n_neighbors "
        "for a smoother gradient",
        ConvergenceWarning,
    )
    return Y


class _TangentPlanes(NamedTuple):
    """Tangent planes at given points, and a linear function on each."""

    center: Array  # (n, n_features)
    axes: Array  # (n, dimension, n_features), orthonormal
    value: Array  # (n,), of the function at `center`
    gradient: Array  # (n, dimension), along the axes
    spread: Array  # (n,), largest standard deviation of the points around `center`


@dataclass(frozen=True, eq=False)
class _Function:
    """A function on the original points, interpolated by local linear regression."""

    X: Array
    f: Array
    index: NeighborIndex
    k: int
    dimension: int
    converged_below: float = 0.02  # |f| in standard deviations below which a point has converged
    singular_tol: float = 1e-6  # singular values below this fraction of the largest are ignored
    # Distance from the center of a tangent plane to which points may move, in standard deviations
    # of the points around it. Without a limit, points at an edge leave the manifold.
    max_distance: float = 2.0

    def step(self, Y: Array, max_length: float) -> tuple[Array, NDArray[np.bool_]]:
        """Points after a step of at most `max_length` toward f = 0, and which have converged."""
        planes = self.planes(Y)
        # Projected onto the tangent plane.
        position = np.einsum("ndj,nj->nd", planes.axes, Y - planes.center)
        value = planes.value + (position * planes.gradient).sum(axis=1)
        norm = np.linalg.norm(planes.gradient, axis=1)
        divisor = np.where(norm > 0, norm, np.inf)
        length = np.clip(-value / divisor, -max_length, max_length)
        position += planes.gradient * (length / divisor)[:, None]
        distance = np.linalg.norm(position, axis=1)
        limit = self.max_distance * planes.spread
        position *= np.where(distance > limit, limit / np.maximum(distance, _TINY), 1.0)[:, None]
        converged = (np.abs(value) <= self.converged_below) | (norm == 0)
        return planes.center + np.einsum("ndj,nd->nj", planes.axes, position), converged

    def planes(self, Y: Array) -> _TangentPlanes:
        """Tangent planes and linear fits around Y, by weighted PCA and weighted least squares.

        Weights decay with the distance: with equal weights the gradient is discontinuous, paths
        merge, and the graph of the collapsed points is disconnected.
        """
        members, distances = self.index.nearest(Y, self.k)
        w = gaussian_weights(distances, distances[:, -1] / 2)
        X, f = gathered(self.X, members), self.f[members]
        middle, value = np.einsum("nk,nkj->nj", w, X), (w * f).sum(axis=1)
        root = np.sqrt(w)
        U, S, axes = np.linalg.svd(root[:, :, None] * (X - middle[:, None]), full_matrices=False)
        extent = np.where(self.singular_tol * S[:, :1] < S, S, np.inf)
        gradient = np.einsum("nkd,nk->nd", U, root * (f - value[:, None])) / extent
        return _TangentPlanes(
            middle, axes[:, : self.dimension], value, gradient[:, : self.dimension], S[:, 0]
        )
