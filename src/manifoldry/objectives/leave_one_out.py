"""Leave-one-out errors of the kernel regression of data on an embedding, and its best scale."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.optimize import minimize_scalar

from manifoldry.device import device_of, on_current_device
from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.regression_kernels import (
    RegressionKernel,
    as_kernel,
    centered_embedding,
)
from manifoldry.objectives.regression_pairs import (
    DEFAULT_PAIRS,
    PairBlock,
    RegressionPairs,
    over_pairs,
)
from manifoldry.util.arrays import as_array, like
from manifoldry.util.typing import Array, IntArray, Matrix


class RegressionFit(NamedTuple):
    """Result of a kernel regression of the data on an embedding."""

    values: Array
    """Fitted values, (n, n_features)."""
    errors: Array
    """Squared distances between the data and the fitted values, (n,)."""


class ScaleFit(NamedTuple):
    """The best scale of an embedding, and the value of the minimized function."""

    scale: float
    value: float


def leave_one_out_errors(Y: Array, X: Array, kernel: str | RegressionKernel = "gaussian") -> Array:
    """Compute the squared error of each row of `X`, predicted from the other rows by `Y`.

    The prediction is a kernel regression of `X` on `Y`. The kernel has width one, so the errors
    depend on the scale of `Y`. For more than 2000 points negligible weights are left out
    (:class:`~manifoldry.objectives.RegressionPairs`).

    Parameters
    ----------
    Y : array of shape (n, d)
        The embedding.
    X : array of shape (n, n_features)
        The data.
    kernel : {"gaussian", "student", "quartic", "triweight"} or RegressionKernel
        Weight of a point as a function of its squared distance in the embedding.

    Returns
    -------
    array of shape (n,)
        The squared errors.

    See Also
    --------
    UKRObjective : their mean is its value.
    RegressionPairs : which weights are left out.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.arange(5.0)[:, None]
    >>> leave_one_out_errors(3 * Y, Y).round(3)  # the fit is the mean of the two neighbors
    array([1., 0., 0., 0., 1.])
    """
    return fit_kernel_regression(Y, centered_data(X), as_kernel(kernel)).errors


def fit_kernel_regression(
    Y: Array,
    X: Array,
    kernel: RegressionKernel,
    leave_one_out: bool = True,
    pairs: RegressionPairs = DEFAULT_PAIRS,
    rows: IntArray | None = None,
) -> RegressionFit:
    """Kernel regression of the rows of `X` on the rows of `Y`, at some rows or at all.

    The result is where `Y` is.
    """
    given, Y = as_array(Y), centered_embedding(on_current_device(Y), len(X))
    X = data_near(X, Y)
    reach = pairs.reach(kernel, *Y.shape)

    def average(block: PairBlock) -> tuple[IntArray, Array]:
        return block.rows, kernel.weights(block.D).weights @ X[block.sources]

    values = np.empty_like(X)
    for at, fitted in over_pairs(average, Y, leave_one_out, reach=reach, rows=rows):
        values[at] = fitted
    if rows is not None:
        some = data_near(rows, Y)
        values, X = values[some], X[some]
    errors = ((X - values) ** 2).sum(axis=1)
    return RegressionFit(like(values, given), like(errors, given))


def data_near(X: Any, Y: Array) -> Any:
    """The array `X` in the memory of the embedding `Y`, where it is copied once if it is large."""
    device = device_of(Y)
    return X if device is None else device.array(X)


def best_regression_scale(
    Y: Array, X: Array, kernel: str | RegressionKernel = "gaussian"
) -> ScaleFit:
    """Factor of the embedding `Y` with the smallest mean leave-one-out error.

    Scales are tried on a grid, from one at which all points lie within the width of the kernel to
    one at which most points are isolated; the best one is refined.

    Parameters
    ----------
    Y : array of shape (n, d)
        An embedding of any scale, such as a spectral embedding.
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
    kernel, X = as_kernel(kernel), compress_features(centered_data(X))
    return minimize_over_scale(
        lambda Y: float(fit_kernel_regression(Y, X, kernel).errors.mean()), Y
    )


def minimize_over_scale(
    value: Callable[[Array], float],
    Y: Array,
    *,
    n_scales: int = 24,  # tried before the best is refined
    tolerance: float = 0.01,  # of the logarithm of the scale
    patience: int | None = None,
) -> ScaleFit:
    """Minimize a function of the embedding over the scale of `Y`.

    The range of scales is meant for kernels of width one: from most points isolated to all points
    within the width. With `patience`, smaller scales are not tried after this number of scales
    without improvement: at small scales, nearly all pairs of points matter.
    """
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y - Y.mean(axis=0)
    if not Y.any():
        raise ValueError("all rows of Y coincide, so no scale is best; pass different positions")
    placed = on_current_device(Y)

    def error(log_scale: float) -> float:
        return value(np.exp(log_scale) * placed)

    grid = np.log(_scales(Y, n_scales))
    errors = np.full(n_scales, np.inf)
    for i in reversed(range(n_scales)):
        errors[i] = error(grid[i])
        if patience is not None and np.argmin(errors) - i >= patience:
            break
    i = int(np.argmin(errors))
    between = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(error, bounds=between, method="bounded", options={"xatol": tolerance})
    best = min((float(errors[i]), float(grid[i])), (float(found.fun), float(found.x)))
    return ScaleFit(float(np.exp(best[1])), best[0])


def centered_data(X: Matrix) -> Array:
    """Centered data in double precision."""
    check_dense(X)
    X = np.asarray(X, dtype=np.float64)
    return np.asarray(X - X.mean(axis=0))


def check_dense(X: Matrix) -> None:
    """Raise a ValueError unless `X` is a dense array with at least two rows."""
    if sparse.issparse(X) or np.ndim(X) != 2 or len(X) < 2:
        raise ValueError(
            f"X is {type(X).__name__} of shape {np.shape(X)}; pass a dense array with two rows or "
            "more"
        )


def compress_features(X: Array) -> Array:
    """Rotate the rows of `X` to at most n dimensions; inner products do not change."""
    n, n_features = X.shape
    if n_features <= n:
        return X
    return np.asarray(qr(X.T, mode="r", check_finite=False)[0][:n].T)


def _scales(Y: Array, count: int) -> Array:
    """Scales on a geometric grid, from all points within the kernel width to most isolated."""
    positions = np.unique(Y, axis=0)
    _, distances = choose_index(positions).nearest(positions, 2)
    extent = float(np.linalg.norm(np.ptp(Y, axis=0)))
    return np.geomspace(0.3 / extent, 3.0 / float(np.median(distances[:, 1])), count)
