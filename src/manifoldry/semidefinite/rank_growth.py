"""New coordinates of a low-rank map, where the multipliers show that it needs more of them."""

import numpy as np

from manifoldry.semidefinite.unfolding_problem import UnfoldingProblem
from manifoldry.util.typing import Array


def descent_coordinates(
    problem: UnfoldingProblem,
    multipliers: Array,
    variance_per_edge: float,
    penalty: float,
    most: int,
    rng: np.random.Generator,
    *,
    enough: float = 0.999,
) -> Array:
    """Coordinates whose addition to a map decreases the augmented Lagrangian, (n, at most `most`).

    Let v be an eigenvector of the edge Laplacian of :class:`VarianceBound` with eigenvalue λ < 1.
    A map that is stationary in its own coordinates can still be improved by a·v as a new
    coordinate: the variance grows faster than the multipliers charge for the edges. To second order
    in a² the augmented Lagrangian changes by −(1 − λ)a²·vᵀMv/variance_per_edge + penalty/2·a⁴·Σ q²,
    where M are the multiplicities and q the relative changes of squared lengths due to v. Each
    coordinate has the length that minimizes this, divided by √count since all are added at once.
    Random coordinates would need hundreds of steps to grow along v.

    Eigenvectors with λ ≥ `enough` are not used: they would hardly change the variance.
    """
    scales = problem.edges.scales
    lowest = problem.smallest_eigenpairs(variance_per_edge * multipliers / scales, most, rng)
    low = np.flatnonzero(lowest.values[:most] < enough)
    V = lowest.vectors[:, low]
    variances = np.einsum("nd,nd->d", V, problem.half_variance_gradient(V))
    changes = problem.edge_vectors(V) ** 2 / scales[:, None]
    stiffness = penalty / (1 + penalty * problem.slack) * (changes**2).sum(axis=0)
    squares = (1 - lowest.values[low]) * variances / (variance_per_edge * stiffness)
    return V * np.sqrt(squares / max(1, len(low)))
