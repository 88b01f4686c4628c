"""One call that tells whether a map can be trusted, and where."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry.metrics.coranking import Comparison, CoRanking, compare
from manifoldry.metrics.distortion import LocalDistortion, distortion_of
from manifoldry.metrics.labels import accuracy_of, label_codes
from manifoldry.metrics.pair import NEIGHBORHOOD, Pair, described, sample_points
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.metrics.redundancy import redundancy
from manifoldry.metrics.shepard import Shepard, shepard_of
from manifoldry.metrics.summary import (
    DEFAULT_BOUNDS,
    Findings,
    SummaryBounds,
    table,
    verdict,
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
    figures : dict of str to Estimate
        The figures by name; see :func:`assess`.
    baseline : dict of str to Estimate
        The same of a principal component map of as many dimensions; empty where there is none.
    gains : dict of str to Estimate
        By how much the map exceeds that baseline in neighbors, point by point; the interval is
        about other points of the same kind.
    curves : dict of str to CoRanking
        Neighbors kept at every size of neighborhood, by ``"this map"`` and ``"PCA"``.
    shepard : Shepard
        Distances on the map against those in the data.
    distortion : LocalDistortion or None
        Stretching at the points on the map; None where coordinates of the data are not known.
    n_neighbors : int
        Size of the neighborhoods of the figures that need one.
    pair : Pair
        The data and the map.
    data : str
        Which data those are.
    bounds : SummaryBounds
        Bounds between what the verdict says of a figure.
    """

    figures: dict[str, Estimate]
    baseline: dict[str, Estimate]
    gains: dict[str, Estimate]
    curves: dict[str, CoRanking]
    shepard: Shepard
    distortion: LocalDistortion | None
    n_neighbors: int
    pair: Pair
    data: str
    bounds: SummaryBounds = DEFAULT_BOUNDS

    @property
    def embedding(self) -> Array:
        """The map that was judged, (n_samples, n_components); NaN for points left off it."""
        return np.column_stack([self.pair.for_all_rows(column) for column in self.pair.Y.T])

    @property
    def verdict(self) -> str:
        """What the figures mean, in sentences."""
        return " ".join(self._sentences)

    @property
    def _sentences(self) -> list[str]:
        along = isinstance(self.pair.X, NeighborGraph)
        return verdict(Findings(self.figures, self.gains, self.pair.n, along, self.bounds))

    def __str__(self) -> str:
        head = (
            f"A map of {self.pair.n} points in {self.pair.Y.shape[1]} coordinates; data: "
            f"{self.data}; neighborhoods of {self.n_neighbors}"
        )
        return "\n".join([head, "", *table(self.figures, self.baseline), "", *self._sentences])

    __repr__ = __str__

    @cached_property
    def per_point(self) -> dict[str, Array]:
        """Figures of every point, to color the map by; each an array of (n_samples,).

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
        if self.distortion is not None:
            values["magnification"] = self.distortion.relative_scale
            values["shear"] = self.distortion.shear
        return {name: self.pair.for_all_rows(each) for name, each in values.items()}


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
    - ``shear``, ``magnification``: how unevenly small components are drawn, median over the points
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
    >>> found.figures["trustworthiness"] > 0.98 > found.baseline["trustworthiness"]
    True
    >>> found.per_point["neighbors_kept"].shape
    (500,)
    """
    if isinstance(labels, str) and hasattr(X, "obs"):
        labels = _column(X.obs, labels)
    pair = Pair.of(X, embedding, metric, least=4)
    k = pair.check_neighbors(n_neighbors, default=NEIGHBORHOOD, largest=1 / 2)
    points = sample_points(pair.n, sample, random_state)
    flat = pair.principal_map()
    maps = [pair.on_plane] if flat is None else [pair.on_plane, flat.on_plane]
    mine, *theirs = compare(pair, maps, points, k)
    diagram, distortion = shepard_of(pair, random_state), distortion_of(pair)
    figures = _of_neighbors(mine, pair.n) | _of_distances(diagram)
    figures |= _of_shape(distortion) | _of_coordinates(embedding, pair.Y)
    if labels is not None:
        figures |= _of_labels(pair, k, labels)
    curves, baseline, gains = {"this map": mine.coranking}, {}, {}
    if flat is not None:
        curves["PCA"] = theirs[0].coranking
        baseline = _of_neighbors(theirs[0], pair.n) | _of_distances(shepard_of(flat, random_state))
        gains = _gains(mine, theirs[0])
    return Assessment(
        figures, baseline, gains, curves, diagram, distortion, k, pair, described(X, pair)
    )


def _of_neighbors(
    found: Comparison, n: int, doubtful: float = DEFAULT_BOUNDS.doubtful
) -> dict[str, Estimate]:
    return {
        "trustworthiness": Estimate.of_mean(found.trust, n, FRACTION),
        "doubtful": Estimate.of_fraction(found.trust < doubtful, n),
        "continuity": Estimate.of_mean(found.continuity, n, FRACTION),
        "neighbors_kept": Estimate.of_mean(found.kept, n, FRACTION),
        "rnx_area": found.coranking.area,
    }


def _of_distances(diagram: Shepard) -> dict[str, Estimate]:
    return {"distance_order": diagram.spearman, "stress": diagram.stress()}


def _of_shape(distortion: LocalDistortion | None) -> dict[str, Estimate]:
    if distortion is None or np.isnan(distortion.scale).all():
        return {}
    low, high = np.nanquantile(distortion.scale, [0.1, 0.9])
    return {
        "shear": Estimate(float(np.nanmedian(distortion.shear))),
        "magnification": Estimate(high / low if low > 0 else np.inf),
    }


def _of_coordinates(embedding: Any, Y: Array) -> dict[str, Estimate]:
    """Redundancy of spectral coordinates; on other maps their order and directions mean nothing."""
    if not hasattr(embedding, "eigenvalues_"):
        return {}
    return {"redundancy": Estimate(float(redundancy(Y).min()))}


def _gains(mine: Comparison, other: Comparison) -> dict[str, Estimate]:
    """How much more of its neighbors each point keeps than on another map."""
    area = mine.coranking.area_per_point - other.coranking.area_per_point
    return {
        "neighbors_kept": Estimate.of_mean(mine.kept - other.kept),
        "rnx_area": Estimate.of_mean(area),
    }


def _of_labels(pair: Pair, k: int, labels: Any) -> dict[str, Estimate]:
    codes = label_codes(labels, pair.n_rows)[pair.on_map]
    several = len(np.unique(codes))
    if several < 2 or several > pair.n / 2:
        raise ValueError(
            f"labels has {several} different values for {pair.n} points; labels name groups of "
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
