"""Leave-one-out errors of kernel regression of data on a map, and the scale that they favor."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.optimize import minimize_scalar

from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.regression_kernels import (
    RegressionKernel,
    as_kernel,
    centered_map,
    over_pairs,
)
from manifoldry.util.typing import Array, Matrix


class RegressionFit(NamedTuple):
    """Fitted values of regression on a map."""

    values: Array
    """(n, n_features)."""
    errors: Array
    """Squared distances between the data and the fitted values, (n,)."""


class ScaleFit(NamedTuple):
    """A scale of a map, and the mean squared leave-one-out error that it has."""

    scale: float
    value: float


def leave_one_out_errors(Y: Array, X: Array, kernel: str | RegressionKernel = "gaussian") -> Array:
    """Squared error of each row of `X`, predicted from its place on the map by all others.

    Use it to see how much of the data a map keeps at the scale that it has: the kernel's width is
    one. It costs n² distances, of which a block is held at a time.

    Parameters
    ----------
    Y : array of shape (n, d)
        The map.
    X : array of shape (n, n_features)
        The data.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        How the others' say falls with their squared distance on the map.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.arange(5.0)[:, None]
    >>> leave_one_out_errors(3 * Y, Y).round(3)  # each fits as its neighbors' mean
    array([1., 0., 0., 0., 1.])
    """
    return fit_kernel_regression(Y, centered(X), as_kernel(kernel)).errors


def fit_kernel_regression(
    Y: Array, X: Array, kernel: RegressionKernel, leave_one_out: bool = True
) -> RegressionFit:
    """Kernel regression of the rows of `X` on those of `Y`, each left out of its own or not."""

    def average(_: slice, D: Array) -> Array:
        return np.asarray(kernel.weights(D).weights @ X)

    values = np.vstack(over_pairs(average, centered_map(Y, len(X)), leave_one_out))
    return RegressionFit(values, ((X - values) ** 2).sum(axis=1))


def best_regression_scale(
    Y: Array, X: Array, kernel: str | RegressionKernel = "gaussian"
) -> ScaleFit:
    """The factor of the map `Y` with the smallest mean leave-one-out error.

    Tried are scales between that at which all points are within one kernel's reach, and that at
    which most are alone; the best is refined between its neighbors.

    Parameters
    ----------
    Y : array of shape (n, d)
        A map of any scale, such as a spectral embedding.
    X : array of shape (n, n_features)
        The data.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        As in :func:`leave_one_out_errors`.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.linspace(0, 1, 50)[:, None]
    >>> best_regression_scale(Y, np.sin(9 * Y)).scale > 10
    True
    """
    kernel, X = as_kernel(kernel), compress_features(centered(X))
    return minimize_over_scale(
        lambda Y: float(fit_kernel_regression(Y, X, kernel).errors.mean()), Y
    )


def minimize_over_scale(
    value: Callable[[Array], float],
    Y: Array,
    *,
    n_scales: int = 24,  # tried before the best is refined
    tolerance: float = 0.01,  # of the scale's logarithm
) -> ScaleFit:
    """The factor of the map `Y` at which a function of maps is smallest, and that value.

    Meant for functions whose kernel has width one: tried are scales between that at which all
    points are within its reach, and that at which most are alone.
    """
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y - Y.mean(axis=0)
    if not Y.any():
        raise ValueError("all points of the map coincide, so it has no scale; pass another start")

    def error(log_scale: float) -> float:
        return value(np.exp(log_scale) * Y)

    grid = np.log(_scales(Y, n_scales))
    errors = [error(step) for step in grid]
    i = int(np.argmin(errors))
    between = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(error, bounds=between, method="bounded", options={"xatol": tolerance})
    best = min((errors[i], grid[i]), (float(found.fun), float(found.x)))
    return ScaleFit(float(np.exp(best[1])), best[0])


def centered(X: Matrix) -> Array:
    """The data around their mean in double precision, where products keep their digits."""
    check_dense(X)
    X = np.asarray(X, dtype=np.float64)
    return np.asarray(X - X.mean(axis=0))


def check_dense(X: Matrix) -> None:
    """Refuse what is not a dense array of two rows or more."""
    if sparse.issparse(X) or np.ndim(X) != 2 or len(X) < 2:
        raise ValueError(
            "X must be a dense array with two rows or more; got "
            f"{type(X).__name__} of shape {np.shape(X)}"
        )


def compress_features(X: Array) -> Array:
    """Rows with the same inner products as those of `X`, in at most n dimensions."""
    n, n_features = X.shape
    if n_features <= n:
        return X
    return np.asarray(qr(X.T, mode="r", check_finite=False)[0][:n].T)


def _scales(Y: Array, count: int) -> Array:
    """From all in reach of each other to most alone, evenly spaced in their logarithm."""
    places = np.unique(Y, axis=0)
    _, distances = choose_index(places).nearest(places, 2)
    extent = float(np.linalg.norm(np.ptp(Y, axis=0)))
    return np.geomspace(0.3 / extent, 3.0 / float(np.median(distances[:, 1])), count)
