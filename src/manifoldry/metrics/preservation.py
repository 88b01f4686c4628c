"""Whether neighbours on the map are neighbours in the data, and the other way round."""

from typing import Any

from manifoldry.metrics.pair import NEIGHBORHOOD, Pair
from manifoldry.metrics.ranks import NeighborRanks
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, RandomState


def trustworthiness(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """How far one may believe that neighbours on the map are neighbours in the data.

    Points that are near on the map and not in the data are charged by how far down they are in
    the ranking of the data; 1 is perfect, about a half what a random map gets. Equal to
    :func:`sklearn.manifold.trustworthiness`, without its square matrices.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or an AnnData
        The data; of an AnnData ``obsm["X_pca"]``, or its matrix where there is none.
    embedding : array of shape (n_samples, n_components), fitted estimator, or str
        The map, whoever made it; its name in an AnnData's ``obsm``.
    n_neighbors : int, default=None
        Size of the neighbourhoods, less than half the points; by default 5, or what there are.
    metric : str or callable, default="euclidean"
        Distances between data; ``"precomputed"`` if `X` is a matrix of them.
    sample : {"auto", "all"} or int, default="auto"
        Points whose neighbourhoods are looked at, each among all points: by default all up to
        10 000, beyond 2000 drawn at random, with the error that this may cause. All of them take
        time as n_samples² · n_features, and memory as n_samples.
    per_point : bool, default=False
        Return one figure for each point, to colour the map by; NaN for points left off the map.
        They are all computed, whatever `sample`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sample; ``None`` is a fixed one, so that the same call gives the same figure.

    Returns
    -------
    Estimate, a float with its 95 % confidence interval, or array of shape (n_samples,)

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import continuity, trustworthiness
    >>> X, sheet = make_swiss_roll(500, random_state=0)
    >>> trustworthiness(X, sheet) > 0.99
    True
    >>> flat = PCA(2).fit(X)  # looks through the roll: layers fall onto each other
    >>> trustworthiness(X, flat) < 0.98 < continuity(X, flat)
    True
    """
    pair = Pair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=5, largest=1 / 2)
    return pair.pointwise(
        lambda points: 1 - NeighborRanks.of_map(pair, k, points).intrusion(k),
        sample,
        per_point,
        random_state,
    )


def continuity(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """How far one may believe that neighbours in the data are neighbours on the map.

    Trustworthiness with data and map exchanged: it charges maps that tear the data apart.
    Parameters and result are those of :func:`trustworthiness`.
    """
    pair = Pair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=5, largest=1 / 2)
    return pair.pointwise(
        lambda points: 1 - NeighborRanks.of_data(pair, k, points).intrusion(k),
        sample,
        per_point,
        random_state,
    )


def neighbor_preservation(
    X: Any,
    embedding: Any,
    *,
    n_neighbors: int | None = None,
    metric: Any = "euclidean",
    sample: Any = "auto",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """Share of each point's nearest neighbours on the map that are so in the data.

    The same as Q_NX at `n_neighbors`, by default 15. Parameters and result are those of
    :func:`trustworthiness`.
    """
    pair = Pair.of(X, embedding, metric)
    k = pair.check_neighbors(n_neighbors, default=NEIGHBORHOOD, largest=1)
    return pair.pointwise(
        lambda points: NeighborRanks.of_map(pair, k, points).within(k),
        sample,
        per_point,
        random_state,
    )
