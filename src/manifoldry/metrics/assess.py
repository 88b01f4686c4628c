"""One call that tells whether a map can be trusted, and where."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry._estimate import Estimate
from manifoldry._typing import Array, RandomState
from manifoldry.metrics.coranking import CoRanking, coranking_of
from manifoldry.metrics.distortion import LocalDistortion, distortion_of
from manifoldry.metrics.labels import accuracy_of, label_codes
from manifoldry.metrics.pair import Pair, sample_points
from manifoldry.metrics.ranks import NeighborRanks
from manifoldry.metrics.redundancy import redundancy
from manifoldry.metrics.shepard import Shepard, shepard_of
from manifoldry.metrics.verdict import table, verdict
from manifoldry.neighbors.choose import choose_index

_NEIGHBORS = 15
_DOUBTFUL = 0.9  # a point's own trustworthiness below which its place is in doubt


@dataclass(frozen=True, eq=False)
class Assessment:
    """What :func:`assess` found; ``print`` it for the verdict in words.

    Parameters
    ----------
    figures : dict of str to Estimate
        The figures by name; see :func:`assess`.
    baseline : dict of str to Estimate
        The same of a principal component map of as many dimensions; empty where there is none.
    curves : dict of str to CoRanking
        Neighbours kept at every size of neighbourhood, by ``"this map"`` and ``"PCA"``.
    shepard : Shepard
        Distances on the map against those in the data.
    n_neighbors : int
        Size of the neighbourhoods of the figures that need one.
    pair : Pair
        The data and the map.
    """

    figures: dict[str, Estimate]
    baseline: dict[str, Estimate]
    curves: dict[str, CoRanking]
    shepard: Shepard
    n_neighbors: int
    pair: Pair

    @property
    def embedding(self) -> Array:
        """The map that was judged, (n_samples, n_components); NaN for points left off it."""
        return np.column_stack([self.pair.for_all_rows(column) for column in self.pair.Y.T])

    @property
    def verdict(self) -> str:
        """What the figures mean, in sentences."""
        return " ".join(verdict(self.figures, self.baseline))

    def __str__(self) -> str:
        head = f"A map of {self.pair.n} points in {self.pair.Y.shape[1]} coordinates"
        lines = [head, "", *table(self.figures, self.baseline), ""]
        return "\n".join([*lines, *verdict(self.figures, self.baseline)])

    __repr__ = __str__

    @cached_property
    def per_point(self) -> dict[str, Array]:
        """Figures of every point, to colour the map by; each an array of (n_samples,).

        ``"trustworthiness"``, ``"continuity"`` and ``"neighbors_kept"`` as in the figures;
        ``"magnification"``, how much larger than usual the map shows the surroundings of a
        point, and ``"shear"`` (only where coordinates of the data are known). Computed for all
        points when first asked for: time grows with n_samples² · n_features. Points left off the
        map are NaN.
        """
        points, k = np.arange(self.pair.n), self.n_neighbors
        of_map = NeighborRanks.of_map(self.pair, k, points)
        of_data = NeighborRanks.of_data(self.pair, k, points)
        values = {
            "trustworthiness": 1 - of_map.intrusion(k),
            "continuity": 1 - of_data.intrusion(k),
            "neighbors_kept": of_map.within(k),
        }
        out = {name: self.pair.for_all_rows(each) for name, each in values.items()}
        if self._distortion is not None:
            local = self._distortion
            out["magnification"] = self.pair.for_all_rows(local.relative_scale)
            out["shear"] = self.pair.for_all_rows(local.shear)
        return out

    @cached_property
    def _distortion(self) -> LocalDistortion | None:
        return distortion_of(self.pair, self.n_neighbors)


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

    - ``trustworthiness``, ``continuity``: can neighbours on the map be believed, were neighbours
      in the data torn apart? ``doubtful`` is the share of points whose own trustworthiness is
      below 0.9;
    - ``neighbors_kept``, ``rnx_area``: share of the nearest neighbours that are kept, and how many
      more than by chance over all sizes of neighbourhood; the one to compare maps by;
    - ``distance_order``: rank correlation of the distances (Spearman): do large distances mean
      anything?
    - ``stress``: what is lost of the distances, after the best rescaling;
    - ``shear``, ``magnification``: how unevenly small pieces are drawn, median over the points and
      ratio of the ninth to the first decile;
    - ``redundancy``: how much of the most redundant coordinate is new, 1 for all;
    - ``label_accuracy``, ``label_accuracy_in_data``: how many points have the label of most of
      their neighbours, on the map and in the data, where labels are given.

    Parameters
    ----------
    X, embedding, metric, sample, random_state
        As for :func:`trustworthiness`. A :class:`~manifoldry.neighbors.NeighborGraph` in place of
        the data stands for distances along the graph.
    labels : array of shape (n_samples,) or str, default=None
        Labels of the points; the name of a column of an AnnData's ``obs``.
    n_neighbors : int, default=None
        Size of the neighbourhoods; by default 15, or what there are.

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
    >>> found.figures["trustworthiness"] > 0.98 > found.baseline["trustworthiness"]
    True
    >>> found.per_point["neighbors_kept"].shape
    (500,)
    """
    if isinstance(labels, str) and hasattr(X, "obs"):
        labels = X.obs[labels]
    pair = Pair.of(X, embedding, metric, least=4)
    k = pair.check_neighbors(n_neighbors, default=_NEIGHBORS, largest=1 / 2)
    points = sample_points(pair.n, sample, random_state)
    curves, diagram = {"this map": coranking_of(pair, points)}, shepard_of(pair, random_state)
    figures = _of_neighbors(pair, k, curves["this map"], diagram) | _of_shape(pair, k)
    if labels is not None:
        figures |= _of_labels(pair, k, labels)
    flat, baseline = pair.principal_map(), {}
    if flat is not None:
        curves["PCA"] = coranking_of(flat, points)
        baseline = _of_neighbors(flat, k, curves["PCA"], shepard_of(flat, random_state))
    return Assessment(figures, baseline, curves, diagram, k, pair)


def _of_neighbors(pair: Pair, k: int, curve: CoRanking, diagram: Shepard) -> dict[str, Estimate]:
    of_map = NeighborRanks.of_map(pair, k, curve.points)
    of_data = NeighborRanks.of_data(pair, k, curve.points)
    trust = 1 - of_map.intrusion(k)
    values = {
        "trustworthiness": trust,
        "doubtful": (trust < _DOUBTFUL).astype(float),
        "continuity": 1 - of_data.intrusion(k),
        "neighbors_kept": of_map.within(k),
        "rnx_area": curve.area_per_point,
    }
    figures = {name: Estimate.of_mean(each, pair.n) for name, each in values.items()}
    return figures | {"distance_order": diagram.spearman, "stress": diagram.stress()}


def _of_shape(pair: Pair, k: int) -> dict[str, Estimate]:
    figures = {"redundancy": Estimate(float(redundancy(pair.Y).min()))}
    local = distortion_of(pair, k)
    if local is not None:
        low, high = np.nanquantile(local.scale, [0.1, 0.9])
        figures["shear"] = Estimate(float(np.median(local.shear)))
        figures["magnification"] = Estimate(high / low if low > 0 else np.inf)
    return figures


def _of_labels(pair: Pair, k: int, labels: Any) -> dict[str, Estimate]:
    codes = label_codes(labels, pair.n_rows)[pair.on_map]
    return {
        "label_accuracy": accuracy_of(choose_index(pair.Y).others(pair.Y, k).indices, codes),
        "label_accuracy_in_data": accuracy_of(pair.neighbors(k), codes),
    }
