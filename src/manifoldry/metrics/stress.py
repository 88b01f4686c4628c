"""How well distances are kept: stress, strain, residual variance."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry._checks import check_option
from manifoldry._estimate import Estimate
from manifoldry._typing import Array, IntArray, RandomState
from manifoldry.metrics.distance_rows import map_rows
from manifoldry.metrics.pair import Pair, sample_points
from manifoldry.metrics.shepard import shepard_of
from manifoldry.neighbors.distances import Frame

_PARTNERS = 1000  # points that each is compared with for its own stress


def stress(
    X: Any,
    embedding: Any,
    *,
    kind: str = "metric",
    scale: bool = True,
    metric: Any = "euclidean",
    per_point: bool = False,
    random_state: RandomState = None,
) -> Estimate | Array:
    """What is lost of the distances, relative to them: 0 is a map that keeps all.

    Parameters
    ----------
    X, embedding, metric
        As for :func:`trustworthiness`; pairs are drawn as for :func:`shepard`.
    kind : {"metric", "kruskal"}, default="metric"
        ``"metric"``: root of Σ(d − δ)² / Σδ², with δ the distances in the data and d on the map.
        ``"kruskal"``: root of Σ(d − d̂)² / Σd², with d̂ the best increasing function of δ, so that
        only the order of distances counts.
    scale : bool, default=True
        Rescale the map so that the metric stress is least. Units of most maps mean nothing, and
        without this the figure says mainly how large the map is.
    per_point : bool, default=False
        Return the metric stress of every point, from its distances to 1000 others.
    random_state : int, Generator or None, default=None
        Seed of the sample.

    Returns
    -------
    Estimate, a float with its 95 % confidence interval, or array of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> round(stress(X, 5 * X), 10), round(stress(X, 5 * X, scale=False), 10)
    (0.0, 4.0)
    """
    check_option("kind", kind, ("metric", "kruskal"))
    pair = Pair.of(X, embedding, metric)
    if per_point:
        if kind == "kruskal":
            raise ValueError("kind='kruskal' has no figure per point; pass kind='metric'")
        return pair.for_all_rows(_stress_of_points(pair, scale, random_state))
    diagram = shepard_of(pair, random_state)
    return diagram.kruskal() if kind == "kruskal" else diagram.stress(scale)


def _stress_of_points(pair: Pair, scale: bool, random_state: RandomState) -> Array:
    partners = sample_points(pair.n, min(pair.n, _PARTNERS), random_state)

    def sums(points: IntArray) -> Array:
        """Σδ², Σδd and Σd² of every point with these, (3, n)."""
        data, on_map = pair.in_data.distances(points), pair.on_plane.distances(points)
        apart = ~np.isfinite(data)
        data[apart] = on_map[apart] = 0.0
        return np.array([np.einsum("ij,ij->j", *two) for two in _products(data, on_map)])

    data, mixed, own = np.sum(map_rows(sums, partners, pair.n), axis=0)
    if not data.any():
        raise ValueError("all points of X coincide; there are no distances to keep")
    factor = mixed.sum() / own.sum() if scale and own.any() else 1.0
    left = np.maximum(data - 2 * factor * mixed + factor**2 * own, 0.0)
    return np.sqrt(np.divide(left, data, out=np.zeros(pair.n), where=data > 0))


def _products(a: Array, b: Array) -> tuple[tuple[Array, Array], ...]:
    return (a, a), (a, b), (b, b)


def residual_variance(
    X: Any, embedding: Any, *, metric: Any = "euclidean", random_state: RandomState = None
) -> Estimate:
    """Variance of the distances in the data that those on the map leave unexplained: 1 − ρ².

    Pass a :class:`~manifoldry.neighbors.NeighborGraph` in place of the data to compare with
    distances along the manifold, as is done for Isomap.

    Parameters
    ----------
    X, embedding, metric, random_state
        As for :func:`shepard`.

    Examples
    --------
    >>> from manifoldry import Isomap, NeighborGraph
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> graph = NeighborGraph.build(X, 8)
    >>> unrolled = Isomap(2).fit(graph)
    >>> residual_variance(graph, unrolled) < 0.02 < 0.5 < residual_variance(X, unrolled)
    True
    """
    diagram = shepard_of(Pair.of(X, embedding, metric), random_state)
    rho = diagram.pearson
    ends = sorted((1 - rho.low**2, 1 - rho.high**2))
    return Estimate(1 - rho**2, *(ends if not rho.exact else ()))


def strain(X: Any, embedding: Any, *, scale: bool = False) -> float:
    """What is lost of the inner products of centred data, relative to them.

    Root of ‖B − YYᵀ‖² / ‖B‖², with B the Gram matrix of the centred data and Y the centred map:
    what classical MDS makes least. Computed through the features, so no matrix of all pairs.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The map.
    scale : bool, default=False
        Rescale the map so that strain is least.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3, 2, 1]
    >>> bool(strain(X, X) < 1e-12 < strain(X, PCA(2).fit(X)) < strain(X, PCA(1).fit(X)))
    True
    """
    pair = Pair.of(X, embedding)
    frame = Frame.of(pair.X)
    A, Y = frame.apply(pair.X), (pair.Y - pair.Y.mean(axis=0)) / frame.unit
    mean = np.asarray(A.mean(axis=0)).ravel()
    cross = np.asarray(A.T @ Y)  # Y is centred, so centring A changes nothing
    data, mixed, own = _gram_norm(A, mean), float((cross**2).sum()), float(((Y.T @ Y) ** 2).sum())
    if data == 0:
        raise ValueError("all points of X coincide, so that strain is 0/0; nothing to keep")
    if scale:
        left = 1 - (mixed**2 / own if own > 0 else 0.0) / data
    else:
        left = 1 - (2 * mixed - own) / data
    return float(np.sqrt(max(left, 0.0)))


def _gram_norm(A: Any, mean: Array) -> float:
    """‖B‖² of the Gram matrix of centred rows, through the smaller side."""
    n, n_features = A.shape
    if n_features <= n:
        product = A.T @ A
        dense = product.toarray() if sparse.issparse(product) else product
        return float(((dense - n * np.outer(mean, mean)) ** 2).sum())
    product = A @ A.T
    B = product.toarray() if sparse.issparse(product) else product
    B = B - B.mean(axis=0) - B.mean(axis=1)[:, None] + B.mean()
    return float((B**2).sum())
