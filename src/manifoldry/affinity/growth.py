"""The bandwidth at which the sum of a Gaussian kernel grows fastest."""

import numpy as np

from manifoldry.neighbors.distances import check_range
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array
from manifoldry.util.validation import spread_rows


def kernel_growth(
    squared: Array, own: float, counts: Array | None = None, *, n_widths: int = 60
) -> tuple[Array, Array]:
    """Widths ε on a logarithmic grid, and the derivative of log Σ exp(−d²/ε) by log ε at each.

    The derivative is zero for very small and very large widths; its maximum is about half the
    intrinsic dimension of the data.

    Parameters
    ----------
    squared : array
        Squared distances d², all positive, scaled to be of order one.
    own : float
        Sum of the weights of the points with themselves, which is the number of points.
    counts : array, default=None
        Multiplicity of each squared distance; by default one.
    n_widths : int, default=60
        Number of widths on the grid.
    """
    often = np.ones(len(squared)) if counts is None else counts
    ends = np.log10([squared.min(), squared.max()])
    widths = np.logspace(ends[0] - 1, ends[1] + 1, n_widths)
    with np.errstate(over="ignore"):  # the weight of an infinite exponent is zero
        sums = np.array([own + np.exp(-squared / width) @ often for width in widths])
    return widths, np.gradient(np.log(sums), np.log(widths))


def fastest_growth(graph: NeighborGraph, edges: int = 200_000) -> float:
    """Return the gamma at which log Σ exp(−gamma·d²) changes fastest with log gamma.

    With it the weights connect neighbors but do not average over the shape of the manifold; twice
    the rate of change estimates the dimension.
    """
    degree = max(1, len(graph.distances) // graph.n_query)
    chosen = np.zeros(graph.n_query, dtype=bool)
    # All edges of a sample of rows, so that near and far neighbors are represented equally.
    chosen[spread_rows(graph.n_query, max(1, edges // degree))] = True
    lengths = graph.distances[chosen[graph.rows]]
    lengths = lengths[lengths > 0]
    unit = float(np.median(lengths))
    check_range(unit)  # gamma is one over a squared length
    with np.errstate(over="ignore"):  # longer edges have no weight, shorter ones the weight one
        squared = np.clip(lengths / unit, 1e-100, 1e100) ** 2
    widths, slope = kernel_growth(squared, own=float(chosen.sum()))
    return float(1 / widths[int(np.argmax(slope))] / unit / unit)
