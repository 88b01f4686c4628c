"""The score of all embeddings: R² of the reconstruction."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from manifoldry.base.resources import on_its_device
from manifoldry.exceptions import NoveltyWarning, ignoring
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import power_of_two_scale, read_rows, row_blocks


def _takes_data(estimator: Any) -> bool:
    """Whether the estimator takes data, which a score needs; raises an AttributeError if not."""
    if get_tags(estimator).input_tags.pairwise:
        raise AttributeError(
            f"{type(estimator).__name__} takes precomputed values here, so there are no data to "
            "reconstruct and no score; fit it on the data"
        )
    return True


@available_if(_takes_data)
@on_its_device
def score(self: Any, X: Any, y: Any = None) -> float:
    """Return R² of the reconstruction ``inverse_transform(transform(X))`` of `X`.

    1 is perfect; 0 is no better than the mean of `X`. Use it to compare settings and methods, also
    in :class:`~sklearn.model_selection.GridSearchCV`, on held-out data: ``transform`` returns the
    fitted coordinates of training rows, so their score is too high. R² does not measure whether
    neighborhoods are preserved; for that see :func:`manifoldry.metrics.coranking`. More
    coordinates rarely lower it, so choose the smallest number whose score is near the best
    (``docs/choosing.md``). For a confidence interval see
    :func:`manifoldry.metrics.reconstruction`.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features)
        Data with at least two rows.
    y : ignored
        Present for API consistency.
    """
    residual, total = reconstruction_errors(self, X)
    return 1 - float(residual.sum() / total.sum())


def reconstruction_errors(estimator: Any, X: Any) -> tuple[Array, Array]:
    """Return the squared reconstruction error of each row, and its squared distance from the mean.

    Both are in a common unit.
    """
    data = read_rows(X, least=2)
    residual, total = _squared_errors(data, _reconstruct(estimator, X, data))
    if not total.any():
        raise ValueError(
            "all rows of X are equal, so their variance is zero and R² is undefined; pass "
            "different rows"
        )
    return residual, total


def _reconstruct(estimator: Any, X: Any, data: Matrix) -> Array:
    with ignoring(NoveltyWarning):  # the score itself shows rows that cannot be reconstructed
        Z = np.asarray(estimator.transform(X), dtype=np.float64)
        on_map = np.isfinite(Z).all(axis=1)
        mean = np.asarray(data.mean(axis=0, dtype=np.float64)).ravel()
        reconstructed = np.tile(mean, (len(Z), 1))
        if on_map.any():
            reconstructed[on_map] = np.asarray(estimator.inverse_transform(Z[on_map]))
    return reconstructed


def _squared_errors(data: Matrix, reconstructed: Array) -> tuple[Array, Array]:
    """Return the squared error and the squared distance from the mean of each row, in one unit."""
    mean = np.asarray(data.mean(axis=0, dtype=np.float64)).ravel()
    unit = max(power_of_two_scale(reconstructed - mean), power_of_two_scale(data))
    residual, total = np.empty(len(reconstructed)), np.empty(len(reconstructed))
    for block in row_blocks(*reconstructed.shape):
        rows = data[block].toarray() if sparse.issparse(data) else data[block]
        residual[block] = (((rows - reconstructed[block]) / unit) ** 2).sum(axis=1)
        total[block] = (((rows - mean) / unit) ** 2).sum(axis=1)
    return residual, total
