"""Sequential regression: embed the residual of the data after earlier coordinates."""

from typing import Any

import numpy as np
from sklearn.base import clone

from manifoldry.nonredundant.baselines.selection import kernel_rows, standardized
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array
from manifoldry.util.validation import read_array, row_blocks


def sequential_regression(
    estimator: Any, X: Any, n_components: int, *, bandwidth: float = 0.3
) -> Array:
    """Subtract from the data what earlier coordinates explain, and embed the residual.

    The first coordinate is the estimator's. For each further one, the Nadaraya–Watson
    reconstruction of the data from all earlier coordinates is subtracted, the estimator is fitted
    to the residual, and its first coordinate is kept. Residuals no longer lie on the manifold:
    parts of it with the same residual are merged, and coordinates may still be redundant. On a ring
    the third one is, if the bandwidth is wide (Blau and Michaeli 2017, figure 4).

    Parameters
    ----------
    estimator : estimator with ``fit_transform``
        The method; it is cloned, not changed.
    X : array of shape (n_samples, n_features)
        The data.
    n_components : int
        Number of coordinates.
    bandwidth : float, default=0.3
        Standard deviation of the Gaussian kernel, in units of the root mean squared norm of the
        standardized earlier coordinates.

    Returns
    -------
    array of shape (n_samples, n_components)
        The coordinates, as returned by each fit.

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_strip
    >>> from manifoldry.nonredundant.baselines import sequential_regression
    >>> X = make_strip(300, aspect=3.5, random_state=0).X
    >>> sequential_regression(LaplacianEigenmaps(1), X, 2).shape
    (300, 2)
    """
    X = read_array(X, dtype=np.float64, ensure_min_samples=3)
    bandwidth = check_positive("bandwidth", bandwidth)
    count = check_count("n_components", n_components)
    F = _first_coordinate(estimator, X)
    while F.shape[1] < count:
        residual = X - _kernel_average(standardized(F), X, bandwidth)
        F = np.column_stack([F, _first_coordinate(estimator, residual)])
    return F


def _kernel_average(Z: Array, X: Array, bandwidth: float) -> Array:
    """Nadaraya–Watson estimate of X at the points Z, in blocks."""
    length = float(np.sqrt((Z**2).sum(axis=1).mean())) or 1.0
    width = np.sqrt(2.0) * bandwidth * length  # exp(−d²/width²) has this standard deviation
    blocks = row_blocks(len(Z), 2 * len(Z))
    return np.vstack([kernel_rows(Z, np.r_[block], width) @ X for block in blocks])


def _first_coordinate(estimator: Any, X: Array) -> Array:
    coordinates = np.asarray(clone(estimator).fit_transform(X), dtype=np.float64)
    return coordinates.reshape(len(X), -1)[:, :1]
