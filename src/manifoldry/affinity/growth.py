"""How the sum of Gaussian weights grows with their width."""

import numpy as np

from manifoldry.util.typing import Array


def kernel_growth(
    squared: Array, own: float, counts: Array | None = None, *, n_widths: int = 60
) -> tuple[Array, Array]:
    """Widths ε on a logarithmic grid, and the slope of log Σ exp(−d²/ε) against log ε at each.

    Between widths that join nobody and widths that join all, the slope rises to about half the
    dimension of the data and falls again.

    Parameters
    ----------
    squared : array
        Squared distances d², all positive and in a unit near their size.
    own : float
        Sum of the weights of points to themselves: how many points there are.
    counts : array, default=None
        How often each squared distance occurs; by default once.
    n_widths : int, default=60
        Widths on the grid.
    """
    often = np.ones(len(squared)) if counts is None else counts
    ends = np.log10([squared.min(), squared.max()])
    widths = np.logspace(ends[0] - 1, ends[1] + 1, n_widths)
    sums = np.array([own + np.exp(-squared / width) @ often for width in widths])
    return widths, np.gradient(np.log(sums), np.log(widths))
