"""The scale at which an embedding of given shape has the smallest objective."""

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from manifoldry.objectives.pairwise import Pairwise
from manifoldry.util.typing import Array


def best_scale(
    objective: Pairwise,
    Y: Array,
    smallest: float = 1e-3,
    doublings: int = 40,
    accuracy: float = 1e-4,
) -> float:
    """Compute the factor s > 0 for which E(s·Y) is smallest.

    Use it to start a search from another embedding. With the Gaussian kernel for attraction and
    repulsion, E is a convex function of s² with a single minimizer; if the repulsion is so weak
    that E decreases toward s = 0, the result is the scale of radius `smallest`. With other kernels
    the best scale of a grid is refined.

    Parameters
    ----------
    objective : Pairwise
        The objective E.
    Y : array of shape (n, d)
        The embedding.
    smallest : float, default=1e-3
        Root mean square radius of the smallest embedding considered.
    doublings : int, default=40
        Number of times the scale is doubled to bracket the minimum.
    accuracy : float, default=1e-4
        Tolerance of the logarithm of the scale.

    Returns
    -------
    float
        The factor s.

    See Also
    --------
    Pairwise : the objective.
    Resized : an objective in other units.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import best_scale, elastic
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
    >>> round(best_scale(objective, np.array([[0.0], [10.0]])), 3)
    0.1
    """
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y - Y.mean(axis=0)
    radius = float(np.sqrt((Y**2).sum(axis=1).mean()))
    if not 0 < radius < np.inf:
        raise ValueError(
            f"an embedding of radius {radius} has no best scale; pass finite positions that do not "
            "all coincide"
        )
    Y = Y / radius
    if objective.kernel.quadratic and objective.repulsion_kernel.quadratic:
        return _convex(objective, Y, smallest, doublings, accuracy) / radius
    return _on_grid(objective, Y, smallest) / radius


def _convex(
    objective: Pairwise, Y: Array, smallest: float, doublings: int, accuracy: float
) -> float:
    """Root of the derivative by t = s² of a convex function."""

    def derivative(log_s: float) -> float:
        s = float(np.exp(log_s))
        return float(np.vdot(objective.value_and_gradient(s * Y)[1], Y)) / (2 * s)

    low = float(np.log(smallest))
    if derivative(low) >= 0:
        return smallest
    high = 0.0
    for _ in range(doublings):
        if derivative(high) >= 0:
            return float(np.exp(brentq(derivative, low, high, xtol=accuracy)))
        low, high = high, high + float(np.log(2))
    return float(np.exp(low))  # E decreases without bound


def _on_grid(objective: Pairwise, Y: Array, smallest: float) -> float:
    """Best scale of a grid, refined between the neighboring ones."""

    def cost(log_s: float) -> float:
        return objective.value(float(np.exp(log_s)) * Y)

    grid = np.linspace(np.log(smallest), np.log(10.0 * objective.n), 25)
    best = int(np.argmin([cost(x) for x in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return float(np.exp(minimize_scalar(cost, bounds=around, method="bounded").x))
