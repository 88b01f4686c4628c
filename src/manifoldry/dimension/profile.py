"""The dimension as a function of the length scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma

from manifoldry.dimension.distinct_points import DimensionInput, replace_zeros
from manifoldry.dimension.result import error_of_mean
from manifoldry.neighbors.base import without_self
from manifoldry.neighbors.choose import choose_index
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, RandomState


@dataclass(frozen=True, eq=False)
class ScaleProfile:
    """Dimension estimates at increasing length scales.

    Parameters
    ----------
    n_neighbors : array of shape (n_scales,)
        The k of each scale: 1, 2, 4, ...; its estimate uses the distances to neighbors k and 2k.
    radius : array of shape (n_scales,)
        Median distance to neighbor k.
    values : list of Estimate
        The dimension at each scale.
    tolerance : float
        Largest relative change over three successive scales that counts as a plateau.

    See Also
    --------
    scale_profile : computes it.

    Examples
    --------
    A curve with noise has the dimension of the noise at small scales, and 1 above them:

    >>> from manifoldry.datasets import make_helix
    >>> from manifoldry.dimension import scale_profile
    >>> profile = scale_profile(make_helix(1000, noise=0.05, random_state=0).X)
    >>> profile.n_neighbors
    array([ 1,  2,  4,  8, 16, 32])
    >>> [round(value, 1) for value in profile.values]
    [2.8, 2.7, 2.2, 1.6, 1.1, 1.0]
    """

    n_neighbors: IntArray
    radius: Array
    values: list[Estimate]
    tolerance: float = 0.1

    def __repr__(self) -> str:
        entries = ", ".join(
            f"{value:.3g} at k={k}"
            for value, k in zip(map(float, self.values), self.n_neighbors, strict=True)
        )
        return f"ScaleProfile({entries})"

    @property
    def plateau(self) -> int | None:
        """Index of the first of three successive scales that form the lowest plateau, or None.

        Noise increases the dimension at small scales only, so the lowest plateau is an estimate of
        the dimension of the manifold without noise.
        """
        values = np.array(self.values)
        triples = [values[i : i + 3] for i in range(len(values) - 2)]
        means = [
            triple.mean() if triple.max() <= (1 + self.tolerance) * triple.min() else np.inf
            for triple in triples
        ]
        return int(np.argmin(means)) if np.isfinite(means).any() else None


def scale_profile(
    X: Any, *, max_rows: int = 1000, random_state: RandomState = None
) -> ScaleProfile:
    """Estimate the dimension at increasing scales, from k and 2k neighbors for k = 1, 2, 4, ...

    At k = 1 this is :func:`two_nn` by likelihood. In general (r_k/r_2k)^d follows a beta
    distribution (Denti et al. 2022), whose logarithm has the mean ψ(k) − ψ(2k). If the dimension
    decreases with the scale and then levels off, the small scales show noise and the plateau the
    manifold. If it keeps decreasing, boundaries or a small sample bias it downward.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data. For a graph without points, the largest scale is limited by its neighbors.
        Duplicate rows count once.
    max_rows : int, default=1000
        Largest number of points at which distances are computed.
    random_state : int, RandomState, Generator or None, default=None
        Seed for sampling points if there are more; ``None`` is a fixed seed.

    Returns
    -------
    ScaleProfile
        With scales of up to a tenth of the points.

    See Also
    --------
    two_nn : the smallest scale alone.
    manifoldry.estimate_dimension : all methods at once, and what the profile means.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.dimension import scale_profile
    >>> rng = np.random.default_rng(0)
    >>> line = np.column_stack([rng.uniform(size=2000), 0.001 * rng.normal(size=2000)])
    >>> profile = scale_profile(line)  # the noise spans two or three neighbors
    >>> bool(profile.values[0] > 1.5), round(profile.values[-1])
    (True, 1)
    """
    data = DimensionInput.of(X)
    rng = as_generator(random_state, unset=0)
    rows = np.arange(data.n)
    if data.n > check_count("max_rows", max_rows, minimum=2):
        rows = np.sort(rng.choice(data.n, max_rows, replace=False))
    distances = _distances(data, rows)
    scales = [2**i for i in range(9) if 2 ** (i + 1) <= distances.shape[1]]
    found = [_at_scale(distances[:, [k - 1, 2 * k - 1]], k, data.n) for k in scales]
    known = [
        (k, estimate) for k, estimate in zip(scales, found, strict=True) if estimate is not None
    ]
    radius = np.array([np.median(distances[:, k - 1]) for k, _ in known])
    return ScaleProfile(
        np.array([k for k, _ in known]), radius, [estimate for _, estimate in known]
    )


def _distances(
    data: DimensionInput, rows: IntArray, largest: int = 256, fraction: float = 0.1
) -> Array:
    """Distances from `rows` to the neighbors that all scales need.

    The largest scale needs ``2 * largest`` neighbors, limited to a fraction of all points, beyond
    which neighborhoods are not local.
    """
    widest = min(2 * largest, max(2, int(fraction * data.n)), data.n - 1)
    if data.points is None:
        return data.nearest(data.resolve_neighbors(None, minimum=2))[1][rows]
    index = choose_index(data.points)
    return replace_zeros(without_self(*index.nearest(data.points[rows], widest + 1), rows)[1])


def _at_scale(distances: Array, k: int, n: int) -> Estimate | None:
    """Dimension from the distances to neighbors k and 2k; None if undefined or all equal."""
    finite = distances[np.isfinite(distances[:, 1])]
    logs = np.log(finite[:, 1]) - np.log(finite[:, 0])
    if len(logs) < 3 or not logs.any():
        return None
    mean = float(logs.mean())
    value = float(digamma(2 * k) - digamma(k)) / mean
    return Estimate.positive(value, value * error_of_mean(logs, n) / mean)
