"""Dimension from how fast the number of neighbors grows with distance."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from manifoldry.dimension.distinct_points import DistinctPoints
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
    j-th neighbor. Inverses are averaged over points, as MacKay & Ghahramani have it, and the
    dimensions over all k in a range. It is the most precise of the methods that look at neighbors
    alone; noise smaller than the 10th neighbor's distance hardly shows, edges make it come out
    low, the more so the higher the dimension.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; copies of a row count once.
    n_neighbors : (int, int), default=None
        Smallest and largest number of neighbors to average over, at least 3; by default 10 and
        20, or what the data allow.

    Returns
    -------
    Dimension
        With the dimension around every point: (k − 2)/Σ log(T_k/T_j), which is free of bias for
        one point, averaged over k.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.dimension import maximum_likelihood
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> sphere = X / np.linalg.norm(X, axis=1)[:, None]
    >>> maximum_likelihood(sphere)
    maximum_likelihood: 1.98 [1.93 to 2.02 by chance alone] (1000 points, 10 to 20 neighbors)
    """
    data = DistinctPoints.of(X)
    low, high = _neighbor_range(data, n_neighbors)
    distances = data.nearest(high)[1]
    full = np.isfinite(distances[:, -1])
    if not full.any():
        raise ValueError(f"no point has {high} distinct neighbors; build the graph with more")
    inverse = inverse_dimensions(distances[full], low)
    if not inverse.any():
        raise ValueError(
            f"all {high} nearest neighbors of every point are equally far, as in a simplex: no "
            "finite dimension explains that"
        )
    dimensions = 1 / inverse.mean(axis=0)  # of every k
    # To first order, what each point contributes to the mean of these dimensions.
    influence = -(inverse * dimensions**2).mean(axis=1)
    value = Estimate.positive(float(dimensions.mean()), error_of_mean(influence, int(full.sum())))
    note = f"{full.sum()} points, {low} to {high} neighbors"
    per_point = np.full(data.n, np.nan)
    per_point[full] = _per_point(inverse, low)
    return Dimension(value, "maximum_likelihood", note, data.to_samples(per_point))


def _neighbor_range(
    data: DistinctPoints, n_neighbors: tuple[int, int] | None, default_low: int = 10
) -> tuple[int, int]:
    """The range of neighbors: what was asked for, or from `fewest` to the usual number."""
    if n_neighbors is None:
        high = data.resolve_neighbors(None, minimum=3)
        return min(default_low, max(3, high // 2)), high
    low, high = n_neighbors
    check_count("n_neighbors[0]", low, minimum=3)
    if high < low:
        raise ValueError(f"n_neighbors={n_neighbors} must ascend; pass the smaller number first")
    return low, data.resolve_neighbors(high, minimum=3)


def inverse_dimensions(distances: Array, low: int) -> Array:
    """Mean of log(T_k/T_j) over j < k at every point, for k from `low` to all neighbors.

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
    each[np.isinf(each)] = np.nan  # neighbors that are all equally far
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

    Where points are spread evenly over a ball that holds two neighbors, the logarithm of that
    ratio is exponentially distributed and the dimension is its rate. No other method looks so
    closely: it needs no even sampling and hardly sees curvature, but where there is noise it
    counts the noise. Above about five dimensions edges make it come out low.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; copies of a row count once.
    fit : {"line", "likelihood"}, default="line"
        Fit the line −log(1 − F) = d·log(r₂/r₁) through the origin, F being the fraction of points
        with a smaller ratio; or take the maximum of the likelihood, which is more precise where
        the assumptions hold and less robust where they do not.
    discard : float, default=None
        Fraction of the largest ratios to leave out: by default 0.1 for the line, 0 for the
        likelihood, which counts them as "at least so large".
    n_draws : int, default=200
        Draws of the bootstrap behind the interval.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the bootstrap; ``None`` is a fixed seed.

    Returns
    -------
    Dimension

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import two_nn
    >>> two_nn(make_swiss_roll(2000, random_state=0).X)
    two_nn: 2.04 [1.89 to 2.19 by chance alone] (2000 points)
    """
    data = DistinctPoints.of(X)
    check_option("fit", fit, tuple(_FITS))
    method = _FITS[fit]
    fraction = check_nonnegative("discard", method.discard if discard is None else discard)
    check_below("discard", fraction, 1.0, "a fraction")
    logs, tied = log_ratios(data.nearest(data.resolve_neighbors(2, minimum=2))[1])
    keep = int(len(logs) * (1 - fraction))
    if keep < 2 or keep > len(logs) - method.min_discarded:
        raise ValueError(
            f"discard={fraction:g} leaves {keep} of {len(logs)} ratios; the line needs all but at "
            "least one, and either fit at least two"
        )
    draws = check_count("n_draws", n_draws, minimum=2)
    value = _bootstrap_interval(logs, keep, method.estimate, random_state, draws)
    note = f"{len(logs)} points"
    if tied > MANY_TIES:
        note += f"; {tied:.0%} have two nearest neighbors at the same distance, as on a lattice"
    return Dimension(value, "two_nn", note)


def log_ratios(
    distances: Array, *, rounding: float = 1e-9, max_tied: float = 0.5
) -> tuple[Array, float]:
    """log(r₂/r₁) of the points that have two neighbors, ascending, and the fraction of zeros.

    Ratios closer to one than `rounding` are those of equal distances, of which a fraction
    `most_tied` is too many.
    """
    finite = distances[np.isfinite(distances[:, 1])]
    if len(finite) < 3:
        raise ValueError(f"only {len(finite)} points have two neighbors; build the graph with more")
    logs = np.sort(np.log(finite[:, 1]) - np.log(finite[:, 0]))
    logs[logs < rounding] = 0.0
    tied = float((logs == 0).mean())
    if tied > max_tied:
        raise ValueError(
            f"the two nearest neighbors of {tied:.0%} of the points are equally far, as on a "
            "lattice, so their ratio says nothing about dimension; use local_pca"
        )
    return logs, tied


def _line(logs: Array, keep: int) -> float:
    """Slope through the origin of −log(1 − i/n) against the i-th of the ascending log-ratios."""
    x = logs[:keep]
    y = -np.log1p(-np.arange(1, keep + 1) / len(logs))
    return float(x @ y / (x @ x))


def _likelihood(logs: Array, keep: int) -> float:
    """Rate of an exponential distribution, free of bias, the largest ratios being censored."""
    x = logs[:keep]
    return float((keep - 1) / (x.sum() + (len(logs) - keep) * x[-1]))


class _Fit(NamedTuple):
    """A way to the dimension, and the largest ratios that it leaves out."""

    estimate: Callable[[Array, int], float]
    discard: float  # fraction of them unless another is asked for
    min_discarded: int  # their number at least


# A tenth, as in the paper; the logarithm of the line needs one less than all.
_FITS = {"line": _Fit(_line, 0.1, 1), "likelihood": _Fit(_likelihood, 0.0, 0)}


def _bootstrap_interval(
    logs: Array,
    keep: int,
    estimate: Callable[[Array, int], float],
    random_state: RandomState,
    n_draws: int,
    dependence: float = 2.0,
) -> Estimate:
    """The slope and its interval by the bootstrap.

    A distance is `shared` by both its ends: half as many points are independent.
    """
    n = len(logs)

    def resampled(rows: IntArray) -> float:
        return estimate(np.repeat(logs, np.bincount(rows, minlength=n)), keep)  # ascending again

    found = Estimate.of_bootstrap(resampled, n, as_generator(random_state, unset=0), n_draws)
    error = (found.high - found.low) / (2 * half_width(n - 1))
    return Estimate.positive(float(found), error * float(np.sqrt(dependence)), n - 1)
