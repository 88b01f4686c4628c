"""The method for data about which nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

_FEW_ROWS = 20
_FEW_FEATURES = 2
_SAMPLE = 1500  # rows from which the dimension and the number of clusters are estimated
# Rows from which Isomap uses landmarks: before, its matrix of distances takes less than 200 MB.
_LANDMARKS_FROM = 5000
_N_LANDMARKS = 500
# Pairs of rows that are ranked to assess a map: 2000 rows of 100 000, in about a minute.
_RANKED_PAIRS = 2e8
_LEAST_SAMPLE = 200


class MethodChoice(NamedTuple):
    """A method and the reason for it."""

    method: str
    reason: str


def default_method(X: Any, seed: int) -> MethodChoice:
    """The method for data, decided from a sample of them; see `choose_method`."""
    n, n_features = X.shape
    if n < _FEW_ROWS or n_features <= _FEW_FEATURES:  # then nothing has to be estimated
        return choose_method(n, n_features, 1, None)
    from manifoldry import NeighborGraph, estimate_dimension
    from manifoldry.exceptions import ManifoldryWarning, ignoring

    rows = np.sort(np.random.default_rng(seed).permutation(n)[:_SAMPLE])
    sample = X[rows]
    with ignoring(ManifoldryWarning):
        n_clusters = NeighborGraph.build(sample, n_neighbors=10).components()[0]
        try:
            dimension = estimate_dimension(sample, random_state=seed).dimension
        except ValueError:  # nearly all rows are equal
            dimension = None
    return choose_method(n, n_features, n_clusters, dimension)


def choose_method(n: int, n_features: int, n_clusters: int, dimension: int | None) -> MethodChoice:
    """Isomap for a single curve or surface, t-SNE for other data, PCA for very few.

    This is the table "Which method" of docs/choose/index.md, as far as it can be decided from data:
    their shape, the number of connected components, and the dimension, None if too few rows
    differ to estimate it.
    """
    if n < _FEW_ROWS:
        return MethodChoice("pca", f"{n} rows are too few for another method")
    if n_features <= _FEW_FEATURES:
        count = "one feature" if n_features == 1 else f"{n_features} features"
        return MethodChoice("pca", f"data of {count} need no other method")
    if dimension is None:
        return MethodChoice("pca", "too few rows differ from each other for another method")
    if n_clusters == 1 and dimension <= 2:
        shape = "curve" if dimension == 1 else "surface"
        return MethodChoice(
            "isomap", f"the data look like one {shape}, and it keeps the global shape"
        )
    what = (
        f"the data are in {n_clusters} separate parts"
        if n_clusters > 1
        else f"the data have about {dimension} dimensions"
    )
    return MethodChoice("tsne", f"{what}, and it shows clusters and which rows are neighbors")


def suited_to_size(estimator: Any, n: int, note: Callable[[str], None]) -> Any:
    """The estimator; Isomap of many rows gets landmarks unless their number was set."""
    is_isomap = type(estimator).__name__ == "Isomap"
    if is_isomap and n > _LANDMARKS_FROM and estimator.n_landmarks is None:
        note(f"isomap of {n} rows uses {_N_LANDMARKS} landmarks; --set n_landmarks=N")
        estimator.set_params(n_landmarks=_N_LANDMARKS)
    return estimator


def metric_of(estimator: Any) -> Any:
    """The metric in which an estimator compares rows of the data, so that its map is judged by it.

    That of a nested estimator if it has none of its own; Euclidean if there is no choice.
    """
    params = estimator.get_params()
    return params.get("metric", params.get("estimator__metric", "euclidean"))


def common_metric(estimators: Mapping[str, Any], note: Callable[[str], None]) -> Any:
    """The metric by which maps of several estimators are compared: theirs if they agree."""
    chosen = {
        name: metric_of(each)
        for name, each in estimators.items()
        if {"metric", "estimator__metric"} & set(each.get_params())
    }
    metrics = list(dict.fromkeys(chosen.values()))
    if len(metrics) > 1:
        listed = ", ".join(f"{name}: {metric}" for name, metric in chosen.items())
        note(f"metrics of the methods differ ({listed}), so maps are compared by Euclidean "
             "distances; choose others with --metric")  # fmt: skip
        return "euclidean"
    if metrics and metrics[0] != "euclidean":
        note(f"maps are compared by the metric of the methods, {metrics[0]}")
    return metrics[0] if metrics else "euclidean"


def assessed_rows(n: int, note: Callable[[str], None]) -> Any:
    """Number of rows from which the quality of a map is estimated, as `assess` takes it."""
    if n * 2000 <= _RANKED_PAIRS:
        return "auto"
    size = max(_LEAST_SAMPLE, int(_RANKED_PAIRS / n))
    note(f"metrics of {n} rows are estimated from {size} of them")
    return size
