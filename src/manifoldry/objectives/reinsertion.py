"""Bring back points that a search has lost out of the others' reach."""

import numpy as np

from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.leave_one_out import fit
from manifoldry.objectives.regression_kernels import as_kernel
from manifoldry.util.typing import Array

_REACH = 3.0  # distance on the map beyond which a Gaussian of width one is below 1e-3


def reinsert(objective: UKRObjective, Y: Array, reach: float = _REACH) -> Array:
    """Put lonely points where the others predict their data best, if that lowers the objective.

    A point whose nearest neighbour on the map is farther than `reach` has next to no gradient in
    unsupervised kernel regression, and no search moves it. Call this between two searches.

    Parameters
    ----------
    objective : UKRObjective
    Y : array of shape (n, d)
        The map that a search has left.
    reach : float, default=3.0
        Distance beyond which a point counts as lonely.

    Returns
    -------
    array of shape (n, d)
        The map with lonely points at the places of others, or `Y` itself if that is no better.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.append(np.arange(9.0), 100.0)[:, None]
    >>> X = np.append(np.arange(9.0), 3.0)[:, None]
    >>> reinsert(UKRObjective(X), Y)[-1]
    array([3.])
    """
    others = np.asarray(Y, dtype=np.float64)
    lonely = choose_index(others).nearest(others, 2)[1][:, -1] > reach
    if not lonely.any() or (~lonely).sum() < 2:
        return Y
    X, rest = objective.data, np.flatnonzero(~lonely)
    predicted = fit(others[rest], X[rest], as_kernel(objective.kernel), leave_one_out=False).values
    nearest = choose_index(predicted).nearest(X[lonely], 1)[0][:, 0]
    moved = Y.copy()
    moved[lonely] = Y[rest[nearest]]
    return moved if objective.value(moved) < objective.value(Y) else Y
