"""The score that all embeddings share: how well data are found again."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import power_of_two_scale, read_rows, row_blocks


def _takes_data(estimator: Any) -> bool:
    """Whether the estimator takes data, to which it can return; else it has no score."""
    if get_tags(estimator).input_tags.pairwise:
        raise AttributeError(
            f"{type(estimator).__name__} takes precomputed values here, so there are no data to "
            "find again and no score; fit it on the data"
        )
    return True


@available_if(_takes_data)
def score(self: Any, X: Any, y: Any = None) -> float:
    """How well data are found again after going to the map and back: R² in data space.

    1 is perfect, 0 no better than the mean of `X`. It compares settings and methods, in
    :class:`~sklearn.model_selection.GridSearchCV` too, as long as `X` was held out: training
    rows know their place on the map. It does not see the shape of a map, so look at
    :func:`manifoldry.metrics.coranking` beside it; further coordinates seldom lower it, so
    take the fewest that come near the best (``docs/choosing.md``). For its confidence interval
    see :func:`manifoldry.metrics.reconstruction`.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Data, two rows at least.
    y : ignored
        Present for scikit-learn's sake.
    """
    residual, total = reconstruction_errors(self, X)
    return 1 - float(residual.sum() / total.sum())


def reconstruction_errors(estimator: Any, X: Any) -> tuple[Array, Array]:
    """Squared error of every row that goes to the map and reconstructed, and its own about the mean."""
    data = read_rows(X, least=2)
    residual, total = _squared_errors(data, _reconstruct(estimator, X, data))
    if not total.any():
        raise ValueError("all rows of X are equal; R² compares with their spread, which is zero")
    return residual, total


def _reconstruct(estimator: Any, X: Any, data: Matrix) -> Array:
    Z = np.asarray(estimator.transform(X), dtype=np.float64)
    on_map = np.isfinite(Z).all(axis=1)
    mean = np.asarray(data.mean(axis=0, dtype=np.float64)).ravel()
    reconstructed = np.tile(mean, (len(Z), 1))
    if on_map.any():
        reconstructed[on_map] = np.asarray(estimator.inverse_transform(Z[on_map]))
    return reconstructed


def _squared_errors(data: Matrix, reconstructed: Array) -> tuple[Array, Array]:
    """Squared error of every row, and its squared distance from the mean, in one unit."""
    mean = np.asarray(data.mean(axis=0, dtype=np.float64)).ravel()
    unit = max(power_of_two_scale(reconstructed - mean), power_of_two_scale(data))
    residual, total = np.empty(len(reconstructed)), np.empty(len(reconstructed))
    for block in row_blocks(*reconstructed.shape):
        rows = data[block].toarray() if sparse.issparse(data) else data[block]
        residual[block] = (((rows - reconstructed[block]) / unit) ** 2).sum(axis=1)
        total[block] = (((rows - mean) / unit) ** 2).sum(axis=1)
    return residual, total
