"""Several embeddings of the same data, compared in one table and aligned with each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from numbers import Integral
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.assess import label_metrics, metrics_of
from manifoldry.metrics.coranking import CoRanking, compare_ranks
from manifoldry.metrics.distortion import distortion_of
from manifoldry.metrics.named_embeddings import (
    ComparisonOptions,
    check_before_fits,
    check_names,
    common_pairs,
    fit_all,
    without_pipelines,
)
from manifoldry.metrics.pair import DataEmbeddingPair, describe_data, unpack_anndata
from manifoldry.metrics.procrustes import procrustes
from manifoldry.metrics.shepard import shepard_of
from manifoldry.metrics.summary import padded_lines
from manifoldry.util.array_like import annotated_of, labels_of
from manifoldry.util.checks import as_generator
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, RandomState

# Metrics of which a smaller value is better.
_SMALLER = ("untrustworthy_points", "stress", "anisotropy", "magnification", "alignment_error")
# Metrics without a mark in the table: they do not say which embedding is better.
_UNMARKED = ("alignment_error", "label_accuracy_in_data")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of :func:`~manifoldry.compare`; ``print`` it for a table with the best values marked.

    Parameters
    ----------
    metrics : dict of str to dict of str to Estimate
        Metrics of each embedding by its name; see :func:`~manifoldry.assess` for their meaning.
        ``"alignment_error"`` is the difference from the reference after alignment: 0 if the
        embeddings are equal up to a similarity transformation, 1 if they are unrelated.
    aligned : dict of str to array of shape (n_samples, n_components)
        The embeddings, shifted, rotated, reflected and scaled to be as close as possible to the
        reference; NaN for points that were not embedded. Each has as many columns as it had, or
        as the reference if that has more.
    curves : dict of str to CoRanking
        Neighbors kept for every neighborhood size, for ``plot_coranking``.
    models : dict of str to estimator
        The fitted estimators.
    align_to : str
        Name of the reference.
    labels : array of shape (n_samples,) or None
        The labels that were passed.
    annotated : AnnData or None
        The AnnData of the data or embeddings, whose columns of ``obs`` can be colors of the plot.
    description : str
        What was compared: number of points, data, sample, neighborhood size.

    See Also
    --------
    manifoldry.compare : computes it.
    manifoldry.plotting.plot_comparison : draws it.

    Examples
    --------
    >>> from manifoldry import compare
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, sheet = make_swiss_roll(200, random_state=0)
    >>> found = compare(X, {"sheet": sheet, "from above": X[:, :2], "sideways": X[:, [0, 2]]})
    >>> found.best("trustworthiness"), found.align_to
    ('sheet', 'sheet')
    >>> [row["embedding"] for row in found.rows()]
    ['sheet', 'from above', 'sideways']
    >>> found.aligned["from above"].shape
    (200, 2)
    """

    metrics: dict[str, dict[str, Estimate]]
    aligned: dict[str, Array]
    curves: dict[str, CoRanking]
    models: dict[str, Any]
    align_to: str
    labels: Any
    annotated: Any
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
        import pandas

        return pandas.DataFrame(self.rows()).set_index("embedding")

    def best(self, metric: str) -> str:
        """Return the name of the embedding with the best value of a metric.

        Of equal ones it is the first. For ``"alignment_error"`` it is the one that is most similar
        to the reference.

        Parameters
        ----------
        metric : str
            Name of a metric, such as ``"rnx_area"``.

        Returns
        -------
        str
            Name of the embedding.
        """
        values = self._values(metric)
        if not values:
            names = ", ".join(name for name in self._metric_names if self._values(name))
            raise ValueError(f"metric={metric!r} must be one of {names}")
        return (min if metric in _SMALLER else max)(values, key=lambda name: values[name])

    def _values(self, metric: str) -> dict[str, Estimate]:
        """Return the values that can be compared; the reference is equal to itself."""
        own = {self.align_to} if metric == "alignment_error" else set()
        return {
            name: found[metric]
            for name, found in self.metrics.items()
            if metric in found and name not in own
        }

    @property
    def _metric_names(self) -> list[str]:
        return list(dict.fromkeys(metric for found in self.metrics.values() for metric in found))

    def __str__(self) -> str:
        head = ["", *self.metrics]
        body = [self._line(metric) for metric in self._metric_names]
        return "\n".join([self.description, "", *padded_lines([head, *body]), "", "* best value"])

    __repr__ = __str__

    def _line(self, metric: str) -> list[str]:
        best = self._best_names(metric)
        cells = {name: _cell(found.get(metric)) for name, found in self.metrics.items()}
        return [metric, *(cell + "*" * (name in best) for name, cell in cells.items())]

    def _best_names(self, metric: str) -> set[str]:
        """Return the embeddings with the best value, if there is a choice."""
        values = self._values(metric)
        if metric in _UNMARKED or len(values) < 2:
            return set()
        best = values[self.best(metric)]
        return {name for name, value in values.items() if isclose(value, best, abs_tol=1e-12)}


@on_device_of_arguments
@shared_docs
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
    embeddings leave out are not used for any of them. If an embedding has more columns than the
    reference, the reference is padded with zeros to align them.

    Parameters
    ----------
    {compared_data_or_graph}
    embeddings : mapping of str to array or estimator
        The embeddings by name: arrays from any package, fitted estimators, or estimators that are
        not fitted, of which a clone is fitted to X; keys of ``obsm`` if X is an AnnData. All must
        be of the same data, so a pipeline whose first steps change the data is refused: pass
        ``pipeline[:-1].fit_transform(X)`` as X, with its last step, ``pipeline[-1]``.
    labels : array of shape (n_samples,), default=None
        Labels of the points, for the label accuracy and the colors of the plot.
    align_to : str, default=None
        Name of the embedding with which the others are aligned; by default the first.
    {metric_neighbors}
    {data_metric}
    {metric_sample}
        The points are the same for all embeddings.
    {sample_seed}

    Returns
    -------
    Comparison
        The metrics of each embedding, and the aligned embeddings; ``print`` it for a table.

    See Also
    --------
    manifoldry.assess : one embedding, with a summary in words.
    manifoldry.plotting.plot_comparison : draws the result.
    manifoldry.report : compares methods on a page.

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
    target = check_names(embeddings, align_to)
    data = unpack_anndata(X, None)[0]
    labels = None if labels is None else labels_of(labels, X, *embeddings.values())
    given = without_pipelines(
        {name: unpack_anndata(X, each)[1] for name, each in embeddings.items()}
    )
    options = ComparisonOptions(n_neighbors, labels, sample, _seed(random_state))
    check_before_fits(data, given, metric, options)
    models, maps = fit_all(given, data)
    pairs = common_pairs(data, maps, metric)
    reference, seed = pairs[target], options.seed
    k, codes, points = options.checked(reference)
    distances = [pair.embedding_distances for pair in pairs.values()]
    ranks = dict(zip(pairs, compare_ranks(reference, distances, points, k), strict=True))
    fits = {name: procrustes(Y, _padded(maps[target], Y.shape[1])) for name, Y in maps.items()}
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
        next((a for a in map(annotated_of, [X, *embeddings.values()]) if a is not None), None),
        f"{len(pairs)} embeddings of {_described(reference, len(points))}; data: "
        f"{describe_data(X, reference)}; neighborhoods of {k}; aligned with {target}",
    )


def _padded(target: Array, n_columns: int) -> Array:
    """Return the reference with at least `n_columns` columns, zeros where they are missing."""
    added = max(0, n_columns - target.shape[1])
    return np.hstack([target, 0 * target[:, :1].repeat(added, axis=1)])  # NaN stays NaN


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
