"""Dimension from the ratio of the distances to the two nearest neighbours."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from manifoldry.dimension.result import MANY_TIED, Dimension
from manifoldry.dimension.source import Source
from manifoldry.util.checks import (
    as_generator,
    check_below,
    check_count,
    check_nonnegative,
    check_option,
)
from manifoldry.util.estimate import Estimate, half_width
from manifoldry.util.typing import Array, IntArray, RandomState


def two_nn(
    X: Any,
    *,
    fit: str = "line",
    discard: float | None = None,
    n_draws: int = 200,
    random_state: RandomState = None,
) -> Dimension:
    """Estimate the dimension from r₂/r₁, second over first neighbour distance (Facco et al. 2017).

    Where points are spread evenly over a ball that holds two neighbours, the logarithm of that
    ratio is exponentially distributed and the dimension is its rate. No other method looks so
    closely: it needs no even sampling and hardly sees curvature, but where there is noise it
    counts the noise. Above about five dimensions edges make it come out low.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; copies of a row count once.
    fit : {"line", "likelihood"}, default="line"
        Fit the line −log(1 − F) = d·log(r₂/r₁) through the origin, F being the share of points
        with a smaller ratio; or take the maximum of the likelihood, which is more precise where
        the assumptions hold and less robust where they do not.
    discard : float, default=None
        Share of the largest ratios to leave out: by default 0.1 for the line, 0 for the
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
    source = Source.of(X)
    check_option("fit", fit, tuple(_FITS))
    chosen = _FITS[fit]
    share = check_nonnegative("discard", chosen.discard if discard is None else discard)
    check_below("discard", share, 1.0, "a share")
    logs, tied = log_ratios(source.nearest(source.resolve_neighbors(2, least=2))[1])
    keep = int(len(logs) * (1 - share))
    if keep < 2 or keep > len(logs) - chosen.left_out:
        raise ValueError(
            f"discard={share:g} leaves {keep} of {len(logs)} ratios; the line needs all but at "
            "least one, and either fit at least two"
        )
    draws = check_count("n_draws", n_draws, minimum=2)
    value = _interval(logs, keep, chosen.slope, random_state, draws)
    note = f"{len(logs)} points"
    if tied > MANY_TIED:
        note += f"; {tied:.0%} have two nearest neighbours at the same distance, as on a lattice"
    return Dimension(value, "two_nn", note)


def log_ratios(
    distances: Array, *, rounding: float = 1e-9, most_tied: float = 0.5
) -> tuple[Array, float]:
    """log(r₂/r₁) of the points that have two neighbours, ascending, and the share of zeros.

    Ratios closer to one than `rounding` are those of equal distances, of which a share `most_tied`
    is too many.
    """
    near = distances[np.isfinite(distances[:, 1])]
    if len(near) < 3:
        raise ValueError(f"only {len(near)} points have two neighbours; build the graph with more")
    logs = np.sort(np.log(near[:, 1]) - np.log(near[:, 0]))
    logs[logs < rounding] = 0.0
    tied = float((logs == 0).mean())
    if tied > most_tied:
        raise ValueError(
            f"the two nearest neighbours of {tied:.0%} of the points are equally far, as on a "
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

    slope: Callable[[Array, int], float]
    discard: float  # share of them unless another is asked for
    left_out: int  # their number at least


# A tenth, as in the paper; the logarithm of the line needs one less than all.
_FITS = {"line": _Fit(_line, 0.1, 1), "likelihood": _Fit(_likelihood, 0.0, 0)}


def _interval(
    logs: Array,
    keep: int,
    slope: Callable[[Array, int], float],
    random_state: RandomState,
    n_draws: int,
    shared: float = 2.0,
) -> Estimate:
    """The slope and its interval by the bootstrap.

    A distance is `shared` by both its ends: half as many points are independent.
    """
    n = len(logs)

    def drawn(rows: IntArray) -> float:
        return slope(np.repeat(logs, np.bincount(rows, minlength=n)), keep)  # ascending again

    found = Estimate.of_bootstrap(drawn, n, as_generator(random_state, unset=0), n_draws)
    error = (found.high - found.low) / (2 * half_width(n - 1))
    return Estimate.positive(float(found), error * float(np.sqrt(shared)), n - 1)
