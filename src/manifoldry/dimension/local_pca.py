"""Dimension from the principal variances of neighborhoods."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.dimension.distinct_points import DimensionInput
from manifoldry.dimension.result import Dimension, error_of_mean
from manifoldry.neighbors.neighborhoods import gathered
from manifoldry.util.checks import check_at_most, check_positive
from manifoldry.util.estimate import Estimate
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


def local_pca(
    X: Any, *, n_neighbors: int | None = None, fraction: float | None = None
) -> Dimension:
    """Estimate the dimension from the principal variances of neighborhoods.

    The default is the *effective* dimension (Σλ)²/Σλ² of the variances λ of a neighborhood along
    its principal axes (participation ratio): d equal variances give d, and small variances
    contribute little, so that no threshold is needed. Both sums are corrected for the size of the
    neighborhood, assuming a normal distribution. Boundaries and high dimensions, which bias methods
    based on distances, hardly affect it. Noise and curvature increase it if they are visible within
    a neighborhood.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data, or a graph with Euclidean distances; duplicate rows count once.
    n_neighbors : int, default=None
        Number of neighbors in a neighborhood, which also contains the point itself; by default 20,
        or fewer if there are fewer points.
    fraction : float, default=None
        If given, the dimension is instead the smallest number of principal axes with at least this
        fraction of the variance of a neighborhood. It is at most `n_neighbors`, and biased downward
        unless `n_neighbors` is many times the dimension.

    Returns
    -------
    Dimension
        With the local dimension at each point. Inverse dimensions are averaged over points, as in
        :func:`maximum_likelihood`; with `fraction`, the dimensions themselves.

    See Also
    --------
    maximum_likelihood : by distances to neighbors.
    pca_dimension : by the variances of all the data.
    manifoldry.estimate_dimension : all methods at once.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.dimension import local_pca
    >>> X = np.random.default_rng(0).uniform(size=(1000, 5))
    >>> local_pca(X)
    local_pca: 4.82 (95 % interval 4.75 to 4.9; effective dimension of 20 neighbors)
    """
    data = DimensionInput.of(X)
    points = data.require_points("local_pca")
    k = data.resolve_neighbors(n_neighbors, minimum=3)
    if fraction is not None:
        check_at_most(
            "fraction", check_positive("fraction", fraction), 1.0, "a fraction of the variance"
        )
    members = data.nearest(k)[0]
    full = np.flatnonzero(members[:, -1] >= 0)
    if len(full) < 2:
        raise ValueError(
            f"only {len(full)} points have {k} distinct neighbors; pass a smaller n_neighbors"
        )
    neighborhoods = np.column_stack([full, members[full]])
    found = _neighborhood_dimensions(points, neighborhoods, fraction)
    error = _relative_error(found, k, data.n)
    if fraction is None:
        value = _bounded(1 / float(found.mean()), error, points)
        found = 1 / found
        note = f"effective dimension of {k} neighbors"
    else:
        value = Estimate.positive(float(found.mean()), error * float(found.mean()))
        note = f"directions with {fraction:.0%} of the variance of {k} neighbors"
    per_point = np.full(data.n, np.nan)
    per_point[full] = found
    return Dimension(value, "local_pca", note, data.to_samples(per_point))


def _relative_error(found: Array, k: int, n: int, overlap: float = 0.25) -> float:
    """Relative standard error of the mean.

    About one in ``overlap * k`` neighborhoods is independent of the others (by simulation). If each
    neighborhood contains most of the data, their spread underestimates the error; the relative
    error of one neighborhood, about 2/k (by simulation), gives a lower bound.
    """
    dependence = max(1.0, overlap * k)
    observed = error_of_mean(found, n, dependence) / float(found.mean())
    return max(observed, 2 / k * float(np.sqrt(dependence / n)))


def _bounded(value: float, error: float, X: Matrix) -> Estimate:
    """The estimate with its interval, limited to the number of features that vary."""
    bound = float(min(X.shape[0] - 1, _n_varying_features(X)))
    unbounded = Estimate.positive(value, error * value)
    return Estimate(bound, bound, unbounded.high) if unbounded.low > bound else unbounded


def _n_varying_features(X: Matrix) -> int:
    highest, lowest = X.max(axis=0), X.min(axis=0)
    if sparse.issparse(X):
        highest, lowest = highest.toarray(), lowest.toarray()
    return int((highest > lowest).sum())


def _neighborhood_dimensions(X: Matrix, neighborhoods: IntArray, fraction: float | None) -> Array:
    """Inverse effective dimension, or number of directions, of each neighborhood."""
    n, size = neighborhoods.shape

    def of_block(block: slice) -> Array:
        centered = _centered(gathered(X, neighborhoods[block]))
        return (
            _inverse_dimension(centered) if fraction is None else _n_directions(centered, fraction)
        )

    blocks = row_blocks(n, size * max(X.shape[1], size), budget=2**20)
    return np.concatenate(map_threads(of_block, blocks))


def _centered(local: Array) -> Array:
    """Centered neighborhoods, each scaled to unit size."""
    local = local - local[:, :1]  # avoids cancellation far from the origin
    local /= np.abs(local).max(axis=(1, 2), keepdims=True)
    return np.asarray(local - local.mean(axis=1, keepdims=True))


def _small_gram(centered: Array) -> Array:
    """The smaller of XXᵀ and XᵀX, whose eigenvalues are the squared singular values."""
    transposed = centered.transpose(0, 2, 1)
    wide = centered.shape[2] > centered.shape[1]
    return np.asarray(centered @ transposed if wide else transposed @ centered)


def _inverse_dimension(centered: Array) -> Array:
    """Σλ²/(Σλ)² of the covariance of each neighborhood, with unbiased estimates of both sums.

    For f = size − 1 degrees of freedom and a sample covariance S of normal points with covariance
    C, E tr S² = (1 + 1/f) tr C² + (tr C)²/f and E (tr S)² = (tr C)² + (2/f) tr C².
    """
    f = centered.shape[1] - 1
    C = _small_gram(centered) / f
    trace, square = np.einsum("nii->n", C), np.einsum("nij,nij->n", C, C)
    true_square = f**2 / ((f - 1) * (f + 2)) * (square - trace**2 / f)
    true_square = np.maximum(true_square, (trace / f) ** 2)  # the dimension is at most f²
    return np.asarray(np.minimum(true_square / (trace**2 - 2 / f * true_square), 1.0))


def _n_directions(centered: Array, fraction: float) -> Array:
    values = np.maximum(np.linalg.eigvalsh(_small_gram(centered))[:, ::-1], 0.0)
    cumulative = np.cumsum(values, axis=1) / values.sum(axis=1, keepdims=True)
    return np.asarray((cumulative < fraction * (1 - 1e-12)).sum(axis=1) + 1.0)
