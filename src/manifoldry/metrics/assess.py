"""Overall quality of an embedding: metrics, comparison with PCA, and a written summary."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.base.dominant_points import (
    DominatedCoordinate,
    dominated_coordinates,
    takes_n_neighbors,
)
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.distributed.collections import is_collection
from manifoldry.extension.far_rows import FAR, differ
from manifoldry.metrics.coranking import CoRanking, RankComparison, compare_ranks
from manifoldry.metrics.distortion import LocalDistortion, distortion_of
from manifoldry.metrics.labels import accuracy_of, label_codes
from manifoldry.metrics.pair import (
    DEFAULT_N_NEIGHBORS,
    DataEmbeddingPair,
    describe_data,
    sample_points,
)
from manifoldry.metrics.pipelines import StepsBefore, last_step
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.metrics.procrustes import procrustes
from manifoldry.metrics.shepard import Shepard, shepard_of
from manifoldry.metrics.summary import (
    DEFAULT_THRESHOLDS,
    AssessmentResults,
    SummaryThresholds,
    summarize,
    table,
)
from manifoldry.metrics.unpredictability import unpredictability
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.array_like import labels_of
from manifoldry.util.cached import cached_property
from manifoldry.util.estimate import FRACTION, Estimate
from manifoldry.util.lazy import is_lazy
from manifoldry.util.typing import Array, IntArray, RandomState

_SAME = 1e-4  # relative difference of embeddings that are equal but for single precision
# Metrics of neighborhoods, which depend on the number of rows.
_OF_NEIGHBORHOODS = (
    "rnx_area",
    "anisotropy",
    "magnification",
    "unpredictability",
    "label_accuracy",
    "label_accuracy_in_data",
)


@dataclass(frozen=True)
class Sampling:
    """Which rows of a Dask collection an assessment is based on.

    Parameters
    ----------
    n_rows : int
        Number of all rows.
    n_points : int
        Number of rows whose neighbors among all rows are compared.
    n_samples, size : int
        Number of samples, and of the rows of each of them.
    n_left_out : int, default=0
        Number of rows that are not embedded, besides `n_rows`.

    See Also
    --------
    Assessment : has one.

    Examples
    --------
    >>> from manifoldry.metrics.assess import Sampling
    >>> print(Sampling(100_000, 300, 5, 5000))
    Trustworthiness, continuity and neighbor_preservation: 300 of 100000 rows, with their neighbors
    among all of them. All else: means of 5 samples of 5000 rows, with neighbors within a sample.
    Intervals of metrics within samples are for data of 5000 rows, whose neighborhoods are wider.
    """

    n_rows: int
    n_points: int
    n_samples: int
    size: int
    n_left_out: int = 0

    def scopes(self, metrics: Iterable[str]) -> dict[str, str]:
        """Return which metrics describe neighborhoods of a sample only, in words.

        Parameters
        ----------
        metrics : iterable of str
            Names of metrics.

        Returns
        -------
        dict of str to str
            What their values and intervals are of. Those of other metrics are of all rows.
        """
        within = f"within samples of {self.size} rows"
        return {name: within for name in metrics if name in _OF_NEIGHBORHOODS}

    def __str__(self) -> str:
        return (
            f"Trustworthiness, continuity and neighbor_preservation: {self.n_points} of "
            f"{self.n_rows} rows, with their neighbors among all of them. All else: means of "
            f"{self.n_samples} samples of {self.size} rows, with neighbors within a sample. "
            f"Intervals of metrics within samples are for data of {self.size} rows, whose "
            "neighborhoods are wider."
        )


@dataclass(frozen=True, eq=False)
class Assessment:
    """Result of :func:`~manifoldry.assess`; ``print`` it for a table and a written summary.

    It holds references to the data and the embedding, which `per_point` needs.

    Parameters
    ----------
    metrics : dict of str to Estimate
        Values by name; see :func:`~manifoldry.assess`.
    baseline : dict of str to Estimate
        The same for PCA with as many components; empty if X has no coordinates.
    gains : dict of str to Estimate
        Mean over the points of the difference to PCA in the neighbor metrics. The interval
        accounts for the choice of points, as if they were a sample of a population.
    curves : dict of str to CoRanking
        Fraction of neighbors kept for every neighborhood size, for ``"embedding"`` and ``"PCA"``.
    shepard : Shepard
        Distances in the embedding against distances in the data.
    distortion : LocalDistortion or None
        Local stretch factors at every embedded point; None if X has no coordinates.
    n_neighbors : int
        Neighborhood size of the metrics that need one.
    pair : DataEmbeddingPair
        The data and the embedding.
    data_description : str
        Description of the data for the printed header.
    thresholds : SummaryThresholds
        Values at which the wording of the summary changes.
    novelty : array of shape (n_new,) or None
        Distance of each row of `X_new` from the training data; None without it.
    has_neighbors : bool
        Whether the embedding is that of a model with the parameter ``n_neighbors``.
    is_pca : bool
        Whether the embedding is that of PCA, up to rotation and scale; then nothing is written
        about a comparison of the two.
    largest_label : float or None
        Fraction of the points with the most frequent label; None without labels.
    sampling : Sampling or None
        What was estimated from which rows of a Dask collection; `curves`, `shepard`,
        `distortion`, `pair` and `per_point` are then those of the first sample. None for data in
        memory.

    See Also
    --------
    manifoldry.assess : computes it.
    manifoldry.plotting.plot_assessment : draws it.

    Examples
    --------
    >>> from manifoldry import assess
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, _ = make_swiss_roll(200, random_state=0)
    >>> found = assess(X, X[:, [0, 2]])  # a projection along the axis of the roll
    >>> print(found.summary)
    Most, not all, points that are close in this embedding are close in the data. ...
    >>> found.gains["neighbor_preservation"] < 0  # PCA keeps more neighbors
    True
    >>> bool(found.per_point["trustworthiness"].min() < 0.8)
    True
    """

    metrics: dict[str, Estimate]
    baseline: dict[str, Estimate]
    gains: dict[str, Estimate]
    curves: dict[str, CoRanking]
    shepard: Shepard
    distortion: LocalDistortion | None
    n_neighbors: int
    pair: DataEmbeddingPair
    data_description: str
    thresholds: SummaryThresholds = DEFAULT_THRESHOLDS
    novelty: Array | None = None
    has_neighbors: bool = False
    is_pca: bool = False
    largest_label: float | None = None
    sampling: Sampling | None = None

    @property
    def embedding(self) -> Array:
        """The embedding, (n_samples, n_components); NaN for points that were not embedded."""
        return np.column_stack([self.pair.expand_to_all_rows(column) for column in self.pair.Y.T])

    @property
    def summary(self) -> str:
        """Interpretation of the metrics, in sentences."""
        return " ".join(self._sentences)

    @property
    def dominated_coordinates(self) -> list[DominatedCoordinate]:
        """Coordinates of which one point, a handful or a small group hold most of the variance."""
        return dominated_coordinates(self.embedding)

    @property
    def new_rows_differ(self) -> bool | None:
        """Whether many new rows are unlike the training data, or one by far; not by chance."""
        if self.novelty is None:
            return None
        return differ(self.novelty, self.pair.n_rows)

    @property
    def _sentences(self) -> list[str]:
        return summarize(
            AssessmentResults(
                self.metrics,
                {} if self.is_pca else self.gains,
                self.pair.n,
                # Only data in memory have a graph that could be passed instead.
                isinstance(self.pair.X, NeighborGraph) or self.sampling is not None,
                self.dominated_coordinates,
                self.has_neighbors,
                self.new_rows_differ,
                self.largest_label,
                self.thresholds,
            )
        )

    def __str__(self) -> str:
        n = self.pair.n if self.sampling is None else self.sampling.n_rows
        head = (
            f"Embedding of {n} points in {self.pair.Y.shape[1]} coordinates; data: "
            f"{self.data_description}; neighborhoods of {self.n_neighbors}"
        )
        left_out, scopes = self.pair.n_rows - self.pair.n, dict[str, str]()
        if self.sampling is not None:
            head = f"{head}\n{self.sampling}"
            left_out, scopes = self.sampling.n_left_out, self.sampling.scopes(self.metrics)
        if left_out:
            head = f"{head}\n{left_out} rows are not embedded (NaN) and left out."
        baseline = {} if self.is_pca else self.baseline
        return "\n".join([head, "", *table(self.metrics, baseline, scopes), "", *self._sentences])

    __repr__ = __str__

    @cached_property
    def per_point(self) -> dict[str, Array]:
        """Metrics of every point, arrays of shape (n_samples,), for coloring the embedding.

        ``"trustworthiness"``, ``"continuity"`` and ``"neighbor_preservation"`` as in `metrics`;
        if X has coordinates also ``"magnification"``, the local scale relative to its median, and
        ``"anisotropy"``. Computed for all points on first access, in time proportional to
        n_samples² · n_features. NaN for points that were not embedded. Of a Dask collection, they
        are those of the first sample, among its rows.
        """
        found = self.of_points(np.arange(self.pair.n))
        return {name: self.pair.expand_to_all_rows(each) for name, each in found.items()}

    def of_points(self, points: IntArray) -> dict[str, Array]:
        """Compute the metrics of `per_point` for some of the embedded points.

        Parameters
        ----------
        points : array of shape (n_points,)
            Their indices among the embedded points.

        Returns
        -------
        dict of str to array of shape (n_points,)
            The values by name.
        """
        k = self.n_neighbors
        of_embedding = NeighborRanks.of_embedding(self.pair, k, points)
        of_data = NeighborRanks.of_data(self.pair, k, points)
        values = {
            "trustworthiness": 1 - of_embedding.rank_penalty(k),
            "continuity": 1 - of_data.rank_penalty(k),
            "neighbor_preservation": of_embedding.preservation(k),
        }
        if self.distortion is not None:
            values["magnification"] = self.distortion.relative_scale[points]
            values["anisotropy"] = self.distortion.anisotropy[points]
        return values


@on_device_of_arguments
@shared_docs
def assess(
    X: Any,
    embedding: Any,
    labels: Any = None,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
    X_new: Any = None,
) -> Assessment:
    """Compute quality metrics of an embedding and compare them with those of PCA.

    The embedding may come from any package: a fitted estimator, a UMAP or t-SNE array, or an
    entry of an AnnData. The metrics are

    - ``trustworthiness``: are neighbors in the embedding neighbors in the data?
      ``untrustworthy_points`` is the fraction of points whose own value is below 0.9;
    - ``continuity``: are neighbors in the data neighbors in the embedding?
    - ``neighbor_preservation``: fraction of the nearest neighbors that are kept;
    - ``rnx_area``: neighbors kept beyond chance, averaged over all neighborhood sizes; use it to
      compare embeddings;
    - ``distance_rank_correlation``: Spearman correlation of the distances; if it is low, large
      distances in the embedding carry no information;
    - ``stress``: relative error of the distances after the best rescaling;
    - ``anisotropy``: ratio of the largest to the smallest local stretch factor, median over the
      points;
    - ``magnification``: ratio of the ninth to the first decile of the local scale;
    - ``unpredictability``: smallest value of :func:`~manifoldry.metrics.unpredictability` over the
      coordinates; only for fitted spectral estimators, whose coordinates are ordered;
    - ``unlike_rows``: fraction of the rows of `X_new` with a novelty above 2, if they are given;
    - ``label_accuracy``, ``label_accuracy_in_data``: :func:`~manifoldry.metrics.knn_accuracy` in
      the embedding and in the data, if labels are given.

    `X` and `embedding` may be collections of Dask. Trustworthiness, continuity and
    ``neighbor_preservation`` are then those of 300 rows among all rows, with intervals for the
    values of all rows. All else is the mean over up to five disjoint samples of 5000 rows. Of
    these, metrics of neighborhoods are marked when printed: in a sample neighborhoods are wider, so
    values and intervals are for data of 5000 rows. Up to 10 000 rows are assessed as in memory, on
    one worker. The data are read once for the samples and twice for the neighbors, and once more if
    the embedding is a lazy one that is computed from them. No more than a sample reaches the
    client.

    Parameters
    ----------
    {compared_data_or_graph}
    {compared_embedding}
    labels : array of shape (n_samples,) or str, default=None
        Labels of the points, or the name of a column of ``obs`` if `X` or `embedding` is from an
        AnnData.
    {metric_neighbors}
    {data_metric}
    {metric_sample}
        For a Dask collection the number of rows of a sample, by default 5000. There are five, or
        as many as there are rows for; up to twice that number of rows, all are one sample.
    {sample_seed}
    X_new : array, sparse matrix or frame of shape (n_new, n_features), default=None
        New data for a fitted estimator passed as `embedding`: are they like the data that it was
        fitted on, so that ``transform`` can place them? See ``novelty`` of the estimators.

    Returns
    -------
    Assessment
        The metrics, those of PCA for comparison, values per point, and a summary in words.

    See Also
    --------
    manifoldry.compare : several embeddings in one table.
    manifoldry.metrics.stability : how far points move if the estimator is fitted again.
    manifoldry.plotting.plot_assessment : draws the result.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import assess
    >>> X, sheet = make_swiss_roll(500, random_state=0)
    >>> found = assess(X, sheet)
    >>> found.metrics["trustworthiness"] > 0.98 > found.baseline["trustworthiness"]
    True
    >>> found.per_point["neighbor_preservation"].shape
    (500,)
    """
    if is_collection(X):
        from manifoldry.metrics.distributed import assess_collection

        return assess_collection(
            X, embedding, labels, n_neighbors=n_neighbors, metric=metric, sample=sample,
            random_state=random_state, X_new=X_new,
        )  # fmt: skip
    if is_lazy(getattr(embedding, "embedding_", embedding)):
        raise TypeError(
            "the embedding is a Dask collection, but X is in memory; pass X as a Dask array, such "
            "as dask.array.from_array(X), or the embedding in memory: embedding.compute()"
        )
    pair = DataEmbeddingPair.of(X, embedding, metric, min_samples=4)
    model = last_step(embedding)
    k = pair.check_neighbors(n_neighbors, default=DEFAULT_N_NEIGHBORS, max_fraction=1 / 2)
    # Before the metrics, which take much longer than a check.
    codes = None if labels is None else check_labels(pair, labels_of(labels, X, embedding))
    points = sample_points(pair.n, sample, random_state)
    pca = pair.with_pca_embedding()
    embeddings = [each.embedding_distances for each in (pair, pca) if each is not None]
    own, *others = compare_ranks(pair, embeddings, points, k)
    diagram, distortion = shepard_of(pair, random_state), distortion_of(pair)
    metrics = metrics_of(pair, own, diagram, distortion, model)
    if codes is not None:
        metrics |= label_metrics(pair, k, codes)
    novelty = None if X_new is None else novelty_of(embedding, X_new)
    if novelty is not None:
        metrics |= novelty_metrics(novelty)
    curves, baseline, gains = {"embedding": own.coranking}, {}, {}
    if pca is not None:
        curves["PCA"] = others[0].coranking
        baseline = _neighbor_metrics(others[0], pair.n)
        baseline |= _distance_metrics(shepard_of(pca, random_state))
        gains = _gains(own, others[0])
    return Assessment(
        metrics,
        baseline,
        gains,
        curves,
        diagram,
        distortion,
        k,
        pair,
        describe_data(X, pair, embedding),
        novelty=novelty,
        has_neighbors=takes_n_neighbors(model),
        is_pca=pca is not None and procrustes(pca.Y, pair.Y).error < _SAME,
        largest_label=None if codes is None else float(np.bincount(codes).max() / pair.n),
    )


def metrics_of(
    pair: DataEmbeddingPair,
    ranks: RankComparison,
    diagram: Shepard,
    distortion: LocalDistortion | None,
    embedding: Any,
) -> dict[str, Estimate]:
    """All metrics that need no labels; `embedding` is the array or estimator that was passed."""
    metrics = _neighbor_metrics(ranks, pair.n) | _distance_metrics(diagram)
    return metrics | _distortion_metrics(distortion) | _unpredictability_metrics(embedding, pair.Y)


def _neighbor_metrics(
    found: RankComparison, n: int, threshold: float = DEFAULT_THRESHOLDS.point_trustworthiness
) -> dict[str, Estimate]:
    return {
        "trustworthiness": Estimate.of_mean(found.trustworthiness, n, FRACTION),
        "untrustworthy_points": Estimate.of_fraction(found.trustworthiness < threshold, n),
        "continuity": Estimate.of_mean(found.continuity, n, FRACTION),
        "neighbor_preservation": Estimate.of_mean(found.neighbor_preservation, n, FRACTION),
        "rnx_area": found.coranking.area,
    }


def _distance_metrics(diagram: Shepard) -> dict[str, Estimate]:
    return {"distance_rank_correlation": diagram.spearman, "stress": diagram.stress()}


def _distortion_metrics(distortion: LocalDistortion | None) -> dict[str, Estimate]:
    if distortion is None or np.isnan(distortion.anisotropy).all():
        return {}  # no neighborhood extends in data and embedding
    low, high = np.nanquantile(distortion.scale, [0.1, 0.9])
    return {
        "anisotropy": Estimate(float(np.nanmedian(distortion.anisotropy))),
        "magnification": Estimate(high / low if low > 0 else np.inf),
    }


def _unpredictability_metrics(embedding: Any, Y: Array) -> dict[str, Estimate]:
    """Redundancy of spectral coordinates; those of other methods have no meaningful order."""
    if not hasattr(embedding, "eigenvalues_"):
        return {}
    return {"unpredictability": Estimate(float(unpredictability(Y).min()))}


def _gains(own: RankComparison, other: RankComparison) -> dict[str, Estimate]:
    """Mean difference to another embedding in the neighbor metrics, point by point."""
    area = own.coranking.area_per_point - other.coranking.area_per_point
    return {
        "neighbor_preservation": Estimate.of_mean(
            own.neighbor_preservation - other.neighbor_preservation
        ),
        "rnx_area": Estimate.of_mean(area),
    }


def check_labels(pair: DataEmbeddingPair, labels: Any) -> IntArray:
    """The labels of the embedded points as integers; refuse continuous values."""
    codes = label_codes(labels, pair.n_rows)[pair.embedded_rows]
    check_n_labels(len(np.unique(codes)), pair.n)
    return codes


def check_n_labels(n_labels: int, n: int, least: int = 2) -> None:
    """Raise ValueError for fewer than two labels, or as many as continuous values would have."""
    if n_labels < least or n_labels > n / 2:
        raise ValueError(
            f"labels has {n_labels} different values for {n} points, but must have 2 to "
            f"{n // 2}; bin continuous values first, or omit labels"
        )


def label_metrics(pair: DataEmbeddingPair, k: int, codes: IntArray) -> dict[str, Estimate]:
    """Label accuracy in the embedding and in the data."""
    return {
        "label_accuracy": accuracy_of(
            choose_index(pair.Y).reference_neighbors(pair.Y, k).indices, codes
        ),
        "label_accuracy_in_data": accuracy_of(pair.neighbors(k), codes),
    }


def novelty_metrics(novelty: Array) -> dict[str, Estimate]:
    """Fraction of the new rows that are unlike the training data."""
    return {"unlike_rows": Estimate.of_fraction(novelty > FAR, len(novelty))}


def novelty_of(embedding: Any, X_new: Any) -> Array:
    """Distances of new rows from the training data of a model."""
    model = last_step(embedding)
    if not hasattr(model, "novelty"):
        raise TypeError(
            "X_new needs a fitted estimator of manifoldry as embedding, to compare new rows with "
            f"its training data, not a {type(model).__name__}; pass it, or omit X_new"
        )
    return np.asarray(model.novelty(StepsBefore.of(embedding).transform(X_new)))
