"""Several embeddings of the same data, compared in one table and aligned with each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from manifoldry.metrics.assess import check_labels, label_metrics, metrics_of
from manifoldry.metrics.coranking import CoRanking, compare_ranks
from manifoldry.metrics.distortion import distortion_of
from manifoldry.metrics.pair import (
    DEFAULT_N_NEIGHBORS,
    DataEmbeddingPair,
    describe_data,
    read_embedding,
    sample_points,
    unpack_anndata,
)
from manifoldry.metrics.procrustes import procrustes
from manifoldry.metrics.shepard import shepard_of
from manifoldry.metrics.summary import padded_lines
from manifoldry.util.array_like import labels_of
from manifoldry.util.checks import as_generator
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, RandomState

# Metrics of which a smaller value is better.
_SMALLER = ("untrustworthy_points", "stress", "anisotropy", "magnification")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of :func:`compare`; ``print`` it for a table with the best values marked.

    Parameters
    ----------
    metrics : dict of str to dict of str to Estimate
        Metrics of each embedding by its name; see :func:`assess` for their meaning.
        ``"alignment_error"`` is the difference from the reference after alignment: 0 if the
        embeddings are equal up to a similarity transformation, 1 if they are unrelated.
    aligned : dict of str to array of shape (n_samples, n_components)
        The embeddings, shifted, rotated, reflected and scaled to be as close as possible to the
        reference, with as many columns as that; NaN for points that were not embedded.
    curves : dict of str to CoRanking
        Neighbors kept for every neighborhood size, for ``plot_coranking``.
    models : dict of str to estimator
        The fitted estimators.
    align_to : str
        Name of the reference.
    labels : array of shape (n_samples,) or None
        The labels that were passed.
    description : str
        What was compared: number of points, data, sample, neighborhood size.
    """

    metrics: dict[str, dict[str, Estimate]]
    aligned: dict[str, Array]
    curves: dict[str, CoRanking]
    models: dict[str, Any]
    align_to: str
    labels: Any
    description: str

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per embedding: its name, and the value of every metric or None."""
        names = self._metric_names
        return [
            {"embedding": name} | {m: _plain(found.get(m)) for m in names}
            for name, found in self.metrics.items()
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per embedding and one column per metric."""
        import pandas  # type: ignore[import-untyped]  # it ships no types

        return pandas.DataFrame(self.rows()).set_index("embedding")

    def best(self, metric: str) -> str:
        """Name of the embedding with the best value of a metric."""
        values = {name: found[metric] for name, found in self.metrics.items() if metric in found}
        if not values:
            raise ValueError(f"metric={metric!r} must be one of {', '.join(self._metric_names)}")
        return (min if metric in _SMALLER else max)(values, key=lambda name: values[name])

    @property
    def _metric_names(self) -> list[str]:
        return list(dict.fromkeys(metric for found in self.metrics.values() for metric in found))

    def __str__(self) -> str:
        head = ["", *self.metrics]
        body = [self._line(metric) for metric in self._metric_names]
        return "\n".join([self.description, "", *padded_lines([head, *body]), "", "* best value"])

    __repr__ = __str__

    def _line(self, metric: str) -> list[str]:
        same = metric in ("alignment_error", "label_accuracy_in_data")
        best = None if same or len(self.metrics) == 1 else self.best(metric)
        values = {name: found.get(metric) for name, found in self.metrics.items()}
        return [metric, *(_cell(value) + "*" * (name == best) for name, value in values.items())]


def compare(
    X: Any,
    embeddings: Mapping[str, Any],
    labels: Any = None,
    *,
    align_to: str | None = None,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
) -> Comparison:
    """Compare embeddings of the same data: metrics in one table, and aligned coordinates.

    Draw the result with :func:`manifoldry.plotting.plot_comparison`. Points that some of the
    embeddings leave out are not used for any of them.

    Parameters
    ----------
    X, metric, sample, random_state
        As for :func:`trustworthiness`. With ``sample="auto"`` metrics of more than 10 000 points
        are evaluated at 2000 of them, the same for all embeddings.
    embeddings : mapping of str to array or estimator
        The embeddings by name: arrays from any package, fitted estimators, or estimators that are
        not fitted, of which a clone is fitted to X; keys of ``obsm`` if X is an AnnData.
    labels : array of shape (n_samples,), default=None
        Labels of the points, for the label accuracy and the colors of the plot.
    align_to : str, default=None
        Name of the embedding with which the others are aligned; by default the first.
    n_neighbors : int, default=None
        Neighborhood size; by default 15, or fewer if there are not enough points.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from manifoldry import PCA, Isomap
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import compare
    >>> X, sheet = make_swiss_roll(400, random_state=0)
    >>> found = compare(X, {"PCA": PCA(2), "Isomap": Isomap(n_neighbors=6), "truth": sheet})
    >>> found.best("neighbor_preservation")
    'truth'
    >>> found.metrics["PCA"]["rnx_area"] < found.metrics["Isomap"]["rnx_area"]
    True
    """
    target = _check_names(embeddings, align_to)
    data = unpack_anndata(X, None)[0]
    labels = None if labels is None else labels_of(labels, X, *embeddings.values())
    given = {name: unpack_anndata(X, each)[1] for name, each in embeddings.items()}
    models, maps = _fit_all(given, data)
    pairs = _common_pairs(data, maps, metric)
    reference, seed = pairs[target], _seed(random_state)
    k = reference.check_neighbors(n_neighbors, default=DEFAULT_N_NEIGHBORS, max_fraction=1 / 2)
    codes = None if labels is None else check_labels(reference, labels)
    points = sample_points(reference.n, sample, seed)
    distances = [pair.embedding_distances for pair in pairs.values()]
    ranks = dict(zip(pairs, compare_ranks(reference, distances, points, k), strict=True))
    fits = {name: procrustes(Y, maps[target]) for name, Y in maps.items()}
    metrics = {}
    for name, pair in pairs.items():
        parts = shepard_of(pair, seed), distortion_of(pair)
        metrics[name] = metrics_of(pair, ranks[name], *parts, models.get(name))
        metrics[name] |= {} if codes is None else label_metrics(pair, k, codes)
        metrics[name] |= {"alignment_error": Estimate(fits[name].error)}
    return Comparison(
        metrics,
        {name: fit.aligned for name, fit in fits.items()},
        {name: each.coranking for name, each in ranks.items()},
        models,
        target,
        labels,
        f"{len(pairs)} embeddings of {_described(reference, len(points))}; data: "
        f"{describe_data(X, reference)}; neighborhoods of {k}; aligned with {target}",
    )


def _check_names(embeddings: Any, align_to: str | None) -> str:
    """Return the name of the reference."""
    if not isinstance(embeddings, Mapping) or not embeddings:
        raise ValueError("embeddings must be a mapping of at least one name to an embedding")
    if align_to is not None and align_to not in embeddings:
        names = ", ".join(map(repr, embeddings))
        raise ValueError(f"align_to={align_to!r} must be one of the embeddings: {names}")
    return next(iter(embeddings)) if align_to is None else align_to


def _fit_all(embeddings: dict[str, Any], X: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the estimators, fitted, and the coordinates of all embeddings."""
    models, maps = {}, {}
    for name, each in embeddings.items():
        Y = each
        if isinstance(each, type):
            raise TypeError(f"embeddings[{name!r}] is a class; pass an instance: {each.__name__}()")
        if hasattr(each, "fit"):
            models[name], Y = _fitted(each, X)
        try:
            maps[name] = read_embedding(Y)
        except (TypeError, ValueError) as error:
            raise type(error)(f"embeddings[{name!r}]: {error}") from error
    return models, maps


def _fitted(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model, or a fitted clone if it is not fitted, and its embedding."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        model = clone(model)
        return model, model.fit_transform(X)
    return model, model.embedding_ if hasattr(model, "embedding_") else model.transform(X)


def _common_pairs(X: Any, maps: dict[str, Array], metric: Any) -> dict[str, DataEmbeddingPair]:
    """Return data and embedding of each map, at the points that all of them embed."""
    pairs, missing = {}, _missing_rows(maps)
    for name, Y in maps.items():
        Y = np.where(missing[:, None], np.nan, Y) if missing.any() else Y
        try:
            pairs[name] = DataEmbeddingPair.of(X, Y, metric, min_samples=4)
        except (TypeError, ValueError) as error:
            raise type(error)(f"embeddings[{name!r}]: {error}") from error
    return pairs


def _missing_rows(maps: dict[str, Array]) -> Array:
    """Return whether each row is missing in some of the maps."""
    counts = {name: len(Y) for name, Y in maps.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
        raise ValueError(f"embeddings must have one row per row of X, but {listed}")
    return np.any([np.isnan(Y).all(axis=1) for Y in maps.values()], axis=0)


def _seed(random_state: RandomState) -> RandomState:
    """Return a seed that can be used repeatedly, so that all embeddings have the same sample."""
    if random_state is None or isinstance(random_state, Integral):
        return random_state
    return int(as_generator(random_state).integers(2**31))


def _described(pair: DataEmbeddingPair, n_sampled: int) -> str:
    """Return the number of points, and how many were left out or sampled."""
    text = f"{pair.n} points"
    if pair.n < pair.n_rows:
        text = f"the {pair.n} of {pair.n_rows} points that all contain"
    return text if n_sampled == pair.n else f"{text}, a random sample of {n_sampled} for neighbors"


def _plain(value: Estimate | None) -> float | None:
    return None if value is None else float(value)


def _cell(value: Estimate | None) -> str:
    return "" if value is None else f"{round(float(value), 6):.3g}"  # no rounding errors
