"""The score that all embeddings share."""

from typing import Any

from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if


def _sees_data(estimator: Any) -> bool:
    """Whether the estimator takes data, to which it can return; else it has no score."""
    if get_tags(estimator).input_tags.pairwise:
        raise AttributeError(
            f"{type(estimator).__name__} takes precomputed values here, so there are no data to "
            "find again and no score; fit it on the data"
        )
    return True


class ReconstructionScoreMixin:
    """Adds `score` to estimators with `transform` and `inverse_transform`."""

    @available_if(_sees_data)
    def score(self, X: Any, y: Any = None) -> float:
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
        from manifoldry.metrics import reconstruction

        return float(reconstruction(self, X))
