"""Dimension from the distances to the nearest neighbors."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from manifoldry.dimension.distinct_points import DimensionInput
from manifoldry.dimension.result import MANY_TIES, Dimension, error_of_mean
from manifoldry.util.checks import (
    as_generator,
    check_below,
    check_count,
    check_nonnegative,
    check_option,
)
from manifoldry.util.estimate import Estimate, half_width
from manifoldry.util.typing import Array, IntArray, RandomState


def maximum_likelihood(X: Any, *, n_neighbors: tuple[int, int] | None = None) -> Dimension:
    """Estimate the dimension from the distances to 10 to 20 neighbors (Levina & Bickel 2004).

    The inverse estimate at a point is the mean of log(T_k/T_j), T_j being the distance to its
    j-th neighbor. Inverses are averaged over points (MacKay & Ghahramani 2005), and the resulting
    dimensions over a range of k. It is the most precise method that uses neighbor distances only.
    Noise smaller than the distance to the 10th neighbor hardly affects it; boundaries bias it
    downward, increasingly so in high dimensions.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; duplicate rows count once.
    n_neighbors : (int, int), default=None
        Smallest and largest number of neighbors to average over, at least 3; by default 10 and
        20, or fewer if there are fewer points.

    Returns
    -------
    Dimension
        With the local dimension at each point, (k − 2)/Σ log(T_k/T_j), which is unbiased for a
        single point, averaged over k.

    See Also
    --------
    two_nn : by the two nearest neighbors.
    local_pca : by variances of neighborhoods.
    manifoldry.estimate_dimension : all methods at once.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.dimension import maximum_likelihood
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> sphere = X / np.linalg.norm(X, axis=1)[:, None]
    >>> maximum_likelihood(sphere)
    maximum_likelihood: 1.98 (95 % interval 1.93 to 2.02; 1000 points, 10 to 20 neighbors)
    """
    data = DimensionInput.of(X)
    low, high = _neighbor_range(data, n_neighbors)
    distances = data.nearest(high)[1]
    full = np.isfinite(distances[:, -1])
    if not full.any():
        raise ValueError(
            f"no point has {high} distinct neighbors; build the graph with more neighbors"
        )
    inverse = inverse_dimensions(distances[full], low)
    mean = inverse.mean(axis=0)
    if not mean.all():
        k = low + int(np.flatnonzero(mean == 0)[-1])
        raise ValueError(
            f"all {k} nearest neighbors of each point are equally distant, as in a simplex, "
            "which no finite dimension explains; pass a larger n_neighbors"
        )
    dimensions = 1 / mean  # for each k
    # First-order contribution of each point to the mean of these dimensions.
    influence = -(inverse * dimensions**2).mean(axis=1)
    value = Estimate.positive(float(dimensions.mean()), error_of_mean(influence, int(full.sum())))
    note = f"{full.sum()} points, {low} to {high} neighbors"
    per_point = np.full(data.n, np.nan)
    per_point[full] = _per_point(inverse, low)
    return Dimension(value, "maximum_likelihood", note, data.to_samples(per_point))


def _neighbor_range(
    data: DimensionInput, n_neighbors: tuple[int, int] | None, default_low: int = 10
) -> tuple[int, int]:
    """The requested range of neighbors, by default from `default_low` to the default number."""
    if n_neighbors is None:
        high = data.resolve_neighbors(None, minimum=3)
        return min(default_low, max(3, high // 2)), high
    low, high = n_neighbors
    check_count("n_neighbors[0]", low, minimum=3)
    if high < low:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be ascending; pass the smaller number first"
        )
    return low, data.resolve_neighbors(high, minimum=3)


def inverse_dimensions(distances: Array, low: int) -> Array:
    """Mean of log(T_k/T_j) over j < k at each point, for k from `low` to the last neighbor.

    `distances` is (n, high), ascending; the result is (n, high − low + 1).
    """
    logs = np.log(distances)
    k = np.arange(low, logs.shape[1] + 1)
    before = np.cumsum(logs, axis=1)[:, k - 2]  # Σ_{j<k} log T_j
    return np.asarray(np.maximum(logs[:, k - 1] - before / (k - 1), 0.0))


def _per_point(inverse: Array, low: int) -> Array:
    k = low + np.arange(inverse.shape[1])
    with np.errstate(divide="ignore"):
        each = (k - 2) / (k - 1) / inverse
    each[np.isinf(each)] = np.nan  # all neighbors are equally distant
    known = np.isfinite(each)
    total = np.where(known, each, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)


def two_nn(
    X: Any,
    *,
    fit: str = "line",
    discard: float | None = None,
    n_draws: int = 200,
    random_state: RandomState = None,
) -> Dimension:
    """Estimate the dimension from r₂/r₁, second over first neighbor distance (Facco et al. 2017).

    If the density is constant in a ball that contains two neighbors, log(r₂/r₁) is exponentially
    distributed and the dimension is its rate. This is the most local method: uneven sampling and
    curvature hardly affect it, but it includes the dimensions of noise. Above about five
    dimensions, boundaries bias it downward.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; duplicate rows count once.
    fit : {"line", "likelihood"}, default="line"
        Fit the line −log(1 − F) = d·log(r₂/r₁) through the origin, F being the fraction of points
        with a smaller ratio; or maximize the likelihood, which is more precise if the assumptions
        hold and less robust otherwise.
    discard : float, default=None
        Fraction of the largest ratios to discard, by default 0.1 for the line and 0 for the
        likelihood. The likelihood treats discarded ratios as censored.
    n_draws : int, default=200
        Number of bootstrap samples for the interval.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the bootstrap; ``None`` is a fixed seed.

    Returns
    -------
    Dimension
        The estimate with its bootstrap interval.

    See Also
    --------
    maximum_likelihood : by 10 to 20 neighbors, less affected by noise.
    scale_profile : the same at increasing scales.
    manifoldry.estimate_dimension : all methods at once.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import two_nn
    >>> two_nn(make_swiss_roll(2000, random_state=0).X)
    two_nn: 2.04 (95 % interval 1.89 to 2.19; 2000 points)
    """
    data = DimensionInput.of(X)
    check_option("fit", fit, tuple(_FITS))
    method = _FITS[fit]
    fraction = check_nonnegative("discard", method.discard if discard is None else discard)
    check_below("discard", fraction, 1.0, "a fraction")
    logs, tied = log_ratios(data.nearest(data.resolve_neighbors(2, minimum=2))[1])
    keep = int(len(logs) * (1 - fraction))
    if keep < 2 or keep > len(logs) - method.min_discarded:
        raise ValueError(
            f"discard={fraction:g} keeps {keep} of {len(logs)} ratios, but fit={fit!r} needs "
            f"between 2 and {len(logs) - method.min_discarded}; pass another discard"
        )
    if logs[keep - 1] == 0:
        raise ValueError(
            f"discard={fraction:g} keeps {keep} of {len(logs)} ratios, all of two equally distant "
            "neighbors, so two_nn is undefined; pass a smaller discard, or use local_pca"
        )
    draws = check_count("n_draws", n_draws, minimum=2)
    value = _bootstrap_interval(logs, keep, method.estimate, random_state, draws)
    note = f"{len(logs)} points"
    if tied > MANY_TIES:
        note += f"; {tied:.0%} have two equally distant nearest neighbors, as on a lattice"
    return Dimension(value, "two_nn", note)


def log_ratios(
    distances: Array, *, rounding: float = 1e-9, max_tied: float = 0.5
) -> tuple[Array, float]:
    """log(r₂/r₁) of the points that have two neighbors, ascending, and the fraction of zeros.

    Logarithms below `rounding` count as zero (equal distances); more than a fraction `max_tied` of
    zeros is an error.
    """
    finite = distances[np.isfinite(distances[:, 1])]
    if len(finite) < 3:
        raise ValueError(
            f"only {len(finite)} points have two neighbors; build the graph with more neighbors"
        )
    logs = np.sort(np.log(finite[:, 1]) - np.log(finite[:, 0]))
    logs[logs < rounding] = 0.0
    tied = float((logs == 0).mean())
    if tied > max_tied:
        raise ValueError(
            f"the two nearest neighbors of {tied:.0%} of the points are equally distant, as on a "
            "lattice, so two_nn is undefined; use local_pca"
        )
    return logs, tied


def _line(logs: Array, keep: int) -> float:
    """Slope through the origin of −log(1 − i/n) against the i-th of the ascending log-ratios."""
    x = logs[:keep]
    y = -np.log1p(-np.arange(1, keep + 1) / len(logs))
    return float(x @ y / (x @ x))


def _likelihood(logs: Array, keep: int) -> float:
    """Unbiased rate of an exponential distribution, with the largest ratios censored."""
    x = logs[:keep]
    return float((keep - 1) / (x.sum() + (len(logs) - keep) * x[-1]))


class _Fit(NamedTuple):
    """How the dimension is fitted, and how many of the largest ratios are discarded."""

    estimate: Callable[[Array, int], float]
    discard: float  # default fraction
    min_discarded: int  # smallest number


# A tenth as in the paper; the line needs one discarded ratio since log(1 − F) is infinite at F = 1.
_FITS = {"line": _Fit(_line, 0.1, 1), "likelihood": _Fit(_likelihood, 0.0, 0)}


def _bootstrap_interval(
    logs: Array,
    keep: int,
    estimate: Callable[[Array, int], float],
    random_state: RandomState,
    n_draws: int,
    dependence: float = 2.0,
) -> Estimate:
    """The estimate and its bootstrap interval.

    Two points share each distance, so that only one in `dependence` points is independent.
    """
    n = len(logs)

    def resampled(rows: IntArray) -> float:
        drawn = np.repeat(logs, np.bincount(rows, minlength=n))  # stays ascending
        return estimate(drawn, keep) if drawn[keep - 1] > 0 else np.inf

    found = Estimate.of_bootstrap(resampled, n, as_generator(random_state, unset=0), n_draws)
    error = (found.high - found.low) / (2 * half_width(n - 1))
    return Estimate.positive(float(found), error * float(np.sqrt(dependence)), n - 1)
