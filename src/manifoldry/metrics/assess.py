"""One call that tells whether a map can be trusted, and where."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry.metrics.coranking import Comparison, CoRanking, compare
from manifoldry.metrics.distortion import LocalDistortion, distortion_of
from manifoldry.metrics.labels import accuracy_of, label_codes
from manifoldry.metrics.pair import (
    DEFAULT_N_NEIGHBORS,
    DataEmbeddingPair,
    describe_data,
    sample_points,
)
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.metrics.redundancy import redundancy
from manifoldry.metrics.shepard import Shepard, shepard_of
from manifoldry.metrics.summary import (
    DEFAULT_THRESHOLDS,
    AssessmentResults,
    SummaryThresholds,
    summarize,
    table,
)
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.estimate import FRACTION, Estimate
from manifoldry.util.typing import Array, RandomState


@dataclass(frozen=True, eq=False)
class Assessment:
    """What :func:`assess` found; ``print`` it for the verdict in words.

    It keeps the data and the map, for `per_point`.

    Parameters
    ----------
    metrics : dict of str to Estimate
        The figures by name; see :func:`assess`.
    baseline : dict of str to Estimate
        The same of a principal component map of as many dimensions; empty where there is none.
    gains : dict of str to Estimate
        By how much the map exceeds that baseline in neighbors, point by point; the interval is
        about other points of the same kind.
    curves : dict of str to CoRanking
        Neighbors kept at every size of neighborhood, by ``"embedding"`` and ``"PCA"``.
    shepard : Shepard
        Distances on the map against those in the data.
    distortion : LocalDistortion or None
        Stretching at the points on the map; None where coordinates of the data are not known.
    n_neighbors : int
        Size of the neighborhoods of the figures that need one.
    pair : DataEmbeddingPair
        The data and the map.
    data_description : str
        Which data those are.
    thresholds : SummaryThresholds
        Bounds between what the summary says of a figure.
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

    @property
    def embedding(self) -> Array:
        """The map that was judged, (n_samples, n_components); NaN for points left off it."""
        return np.column_stack([self.pair.expand_to_all_rows(column) for column in self.pair.Y.T])

    @property
    def summary(self) -> str:
        """What the figures mean, in sentences."""
        return " ".join(self._sentences)

    @property
    def _sentences(self) -> list[str]:
        along_graph = isinstance(self.pair.X, NeighborGraph)
        return summarize(
            AssessmentResults(self.metrics, self.gains, self.pair.n, along_graph, self.thresholds)
        )

    def __str__(self) -> str:
        head = (
            f"A map of {self.pair.n} points in {self.pair.Y.shape[1]} coordinates; data: "
            f"{self.data_description}; neighborhoods of {self.n_neighbors}"
        )
        return "\n".join([head, "", *table(self.metrics, self.baseline), "", *self._sentences])

    __repr__ = __str__

    @cached_property
    def per_point(self) -> dict[str, Array]:
        """Figures of every point, to color the map by; each an array of (n_samples,).

        ``"trustworthiness"``, ``"continuity"`` and ``"neighbor_preservation"`` as in the figures;
        ``"magnification"``, how much larger than usual the map shows the surroundings of a
        point, and ``"anisotropy"`` (only where coordinates of the data are known). Computed for all
        points when first asked for: time grows with n_samples² · n_features. Points left off the
        map are NaN.
        """
        points, k = np.arange(self.pair.n), self.n_neighbors
        of_embedding = NeighborRanks.of_embedding(self.pair, k, points)
        of_data = NeighborRanks.of_data(self.pair, k, points)
        values = {
            "trustworthiness": 1 - of_embedding.rank_penalty(k),
            "continuity": 1 - of_data.rank_penalty(k),
            "neighbor_preservation": of_embedding.preservation(k),
        }
        if self.distortion is not None:
            values["magnification"] = self.distortion.relative_scale
            values["anisotropy"] = self.distortion.anisotropy
        return {name: self.pair.expand_to_all_rows(each) for name, each in values.items()}


def assess(
    X: Any,
    embedding: Any,
    labels: Any = None,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    random_state: RandomState = None,
) -> Assessment:
    """Judge a map of some data, whoever made it.

    Use it on any map beside its data: one from this package, a UMAP or t-SNE array, or one in an
    AnnData. The figures are

    - ``trustworthiness``, ``continuity``: can neighbors on the map be believed, were neighbors
      in the data torn apart? ``doubtful`` is the fraction of points whose own trustworthiness is
      below 0.9;
    - ``neighbors_kept``, ``rnx_area``: fraction of the nearest neighbors that are kept, and how
    many
      more than by chance over all sizes of neighborhood; the one to compare maps by;
    - ``distance_order``: rank correlation of the distances (Spearman): do large distances mean
      anything?
    - ``stress``: what is lost of the distances, after the best rescaling;
    - ``anisotropy``, ``magnification``: how unevenly small components are drawn, median over the points
    and
      ratio of the ninth to the first decile;
    - ``redundancy``: how much of the most redundant coordinate is new, 1 for all; only of fitted
      spectral estimators, whose coordinates have an order;
    - ``label_accuracy``, ``label_accuracy_in_data``: how many points have the label of most of
      their neighbors, on the map and in the data, where labels are given.

    Parameters
    ----------
    X, embedding, metric, sample, random_state
        As for :func:`trustworthiness`. A :class:`~manifoldry.neighbors.NeighborGraph` in place of
        the data stands for distances along the graph.
    labels : array of shape (n_samples,) or str, default=None
        Labels of the points; the name of a column of an AnnData's ``obs``.
    n_neighbors : int, default=None
        Size of the neighborhoods; by default 15, or what there are.

    Returns
    -------
    Assessment

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
    if isinstance(labels, str) and hasattr(X, "obs"):
        labels = _column(X.obs, labels)
    pair = DataEmbeddingPair.of(X, embedding, metric, min_samples=4)
    k = pair.check_neighbors(n_neighbors, default=DEFAULT_N_NEIGHBORS, max_fraction=1 / 2)
    points = sample_points(pair.n, sample, random_state)
    flat = pair.with_pca_embedding()
    maps = (
        [pair.embedding_distances]
        if flat is None
        else [pair.embedding_distances, flat.embedding_distances]
    )
    mine, *theirs = compare(pair, maps, points, k)
    diagram, distortion = shepard_of(pair, random_state), distortion_of(pair)
    metrics = _neighbor_metrics(mine, pair.n) | _distance_metrics(diagram)
    metrics |= _distortion_metrics(distortion) | _redundancy_metrics(embedding, pair.Y)
    if labels is not None:
        metrics |= _label_metrics(pair, k, labels)
    curves, baseline, gains = {"embedding": mine.coranking}, {}, {}
    if flat is not None:
        curves["PCA"] = theirs[0].coranking
        baseline = _neighbor_metrics(theirs[0], pair.n) | _distance_metrics(
            shepard_of(flat, random_state)
        )
        gains = _gains(mine, theirs[0])
    return Assessment(
        metrics, baseline, gains, curves, diagram, distortion, k, pair, describe_data(X, pair)
    )


def _neighbor_metrics(
    found: Comparison, n: int, threshold: float = DEFAULT_THRESHOLDS.point_trustworthiness
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
    if distortion is None or np.isnan(distortion.scale).all():
        return {}
    low, high = np.nanquantile(distortion.scale, [0.1, 0.9])
    return {
        "anisotropy": Estimate(float(np.nanmedian(distortion.anisotropy))),
        "magnification": Estimate(high / low if low > 0 else np.inf),
    }


def _redundancy_metrics(embedding: Any, Y: Array) -> dict[str, Estimate]:
    """Redundancy of spectral coordinates; on other maps their order and directions mean nothing."""
    if not hasattr(embedding, "eigenvalues_"):
        return {}
    return {"redundancy": Estimate(float(redundancy(Y).min()))}


def _gains(mine: Comparison, other: Comparison) -> dict[str, Estimate]:
    """How much more of its neighbors each point keeps than on another map."""
    area = mine.coranking.area_per_point - other.coranking.area_per_point
    return {
        "neighbor_preservation": Estimate.of_mean(
            mine.neighbor_preservation - other.neighbor_preservation
        ),
        "rnx_area": Estimate.of_mean(area),
    }


def _label_metrics(pair: DataEmbeddingPair, k: int, labels: Any) -> dict[str, Estimate]:
    codes = label_codes(labels, pair.n_rows)[pair.embedded_rows]
    n_labels = len(np.unique(codes))
    if n_labels < 2 or n_labels > pair.n / 2:
        raise ValueError(
            f"labels has {n_labels} different values for {pair.n} points; labels name groups of "
            "several points each. Bin values first, or leave them out"
        )
    return {
        "label_accuracy": accuracy_of(choose_index(pair.Y).others(pair.Y, k).indices, codes),
        "label_accuracy_in_data": accuracy_of(pair.neighbors(k), codes),
    }


def _column(obs: Any, name: str) -> Any:
    if name not in obs:
        raise ValueError(f"obs has no {name!r}; it has {', '.join(map(repr, obs)) or 'nothing'}")
    return obs[name]
