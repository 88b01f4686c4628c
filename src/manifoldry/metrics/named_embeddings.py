"""The embeddings that `compare` is given by name: checked, fitted where needed, and read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from manifoldry.metrics.assess import check_labels
from manifoldry.metrics.pair import (
    DEFAULT_N_NEIGHBORS,
    DataEmbeddingPair,
    read_embedding,
    sample_points,
)
from manifoldry.metrics.pipelines import refuse_steps_before
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import read_rows


def check_names(embeddings: Any, align_to: str | None) -> str:
    """Return the name of the reference."""
    if not isinstance(embeddings, Mapping) or not embeddings:
        raise ValueError("embeddings must be a mapping of at least one name to an embedding")
    if align_to is not None and align_to not in embeddings:
        names = ", ".join(map(repr, embeddings))
        raise ValueError(f"align_to={align_to!r} must be one of the embeddings: {names}")
    return next(iter(embeddings)) if align_to is None else align_to


def without_pipelines(given: dict[str, Any]) -> dict[str, Any]:
    """Return the embeddings, with the last step in place of a pipeline that has no other."""
    found = {}
    for name, each in given.items():
        with _naming(name):
            found[name] = refuse_steps_before(each)
    return found


class ComparisonOptions(NamedTuple):
    """Arguments whose bounds depend on the points that are compared."""

    n_neighbors: int | None
    labels: Any
    sample: Any
    seed: RandomState

    def checked(self, pair: DataEmbeddingPair) -> tuple[int, IntArray | None, IntArray]:
        """Return the neighborhood size, the labels as integers, and the sampled points."""
        return (
            pair.check_neighbors(self.n_neighbors, DEFAULT_N_NEIGHBORS, max_fraction=1 / 2),
            None if self.labels is None else check_labels(pair, self.labels),
            sample_points(pair.n, self.sample, self.seed),
        )


def check_before_fits(
    data: Any, given: dict[str, Any], metric: Any, options: ComparisonOptions
) -> None:
    """Check all arguments, since fits may take long; coordinates that exist are read."""
    n = data.n_query if isinstance(data, NeighborGraph) else read_rows(data, 4).shape[0]
    any_map = DataEmbeddingPair.of(data, np.zeros((n, 1)), metric, min_samples=4)
    any_map.data_distances.among(np.arange(2))  # computed, to check the metric
    maps = {}
    for name, each in given.items():
        if isinstance(each, type):
            raise TypeError(f"embeddings[{name!r}] is a class; pass an instance: {each.__name__}()")
        if not hasattr(each, "fit") or hasattr(each, "embedding_"):
            with _naming(name):
                maps[name] = read_embedding(each)
    pairs = common_pairs(data, maps, metric)
    options.checked(next(iter(pairs.values()), any_map))


def fit_all(embeddings: dict[str, Any], X: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the estimators, fitted, and the coordinates of all embeddings."""
    models, maps = {}, {}
    for name, each in embeddings.items():
        with _naming(name):
            Y = each
            if hasattr(each, "fit"):
                models[name], Y = _fitted(each, X)
            maps[name] = read_embedding(Y)
    return models, maps


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Begin the message of an error with the embedding that caused it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"embeddings[{name!r}]: {error}") from error


def _fitted(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model, or a fitted clone if it is not fitted, and its embedding."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        model = clone(model)
        return model, model.fit_transform(X)
    return model, model.embedding_ if hasattr(model, "embedding_") else model.transform(X)


def common_pairs(X: Any, maps: dict[str, Array], metric: Any) -> dict[str, DataEmbeddingPair]:
    """Return data and embedding of each map, at the points that all of them embed."""
    pairs, missing = {}, _missing_rows(maps)
    for name, Y in maps.items():
        Y = np.where(missing[:, None], np.nan, Y) if missing.any() else Y
        with _naming(name):
            pairs[name] = DataEmbeddingPair.of(X, Y, metric, min_samples=4)
    return pairs


def _missing_rows(maps: dict[str, Array]) -> Array:
    """Return whether each row is missing in some of the maps."""
    counts = {name: len(Y) for name, Y in maps.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
        raise ValueError(f"embeddings must have one row per row of X, but {listed}")
    return np.any([np.isnan(Y).all(axis=1) for Y in maps.values()], axis=0)
