"""Errors of distances and inner products: stress, strain, residual variance."""

from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.distance_rows import DistanceRows, map_rows
from manifoldry.metrics.on_device import on_device_if_possible
from manifoldry.metrics.pair import DataEmbeddingPair, sample_points
from manifoldry.metrics.shepard import shepard_of
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.arrays import namespace, to_numpy
from manifoldry.util.checks import check_option
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import power_of_two_scale, row_blocks


@on_device_of_arguments
@shared_docs
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
    """Relative error of the distances in an embedding; 0 if all are kept.

    Parameters
    ----------
    {compared_data_or_graph}
        Pairs are drawn as for :func:`shepard`.
    {compared_embedding}
    kind : {"metric", "kruskal"}, default="metric"
        ``"metric"``: √(Σ(d − δ)² / Σδ²) for distances δ in the data and d in the embedding.
        ``"kruskal"``: √(Σ(d − d̂)² / Σd²), where d̂ is the best increasing function of δ, so that
        only the order of distances matters.
    scale : bool, default=True
        Rescale the embedding to minimize the metric stress. The scale of most embeddings is
        arbitrary and would otherwise dominate the stress.
    {data_metric}
    per_point : bool, default=False
        Return the metric stress of every point, from its distances to at most 1000 others.
    {sample_seed}

    Returns
    -------
    {mean_or_values}

    See Also
    --------
    shepard : the distances themselves.
    strain : the same of inner products.
    residual_variance : the same of correlations.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> round(stress(X, 5 * X), 10), round(stress(X, 5 * X, scale=False), 10)
    (0.0, 4.0)
    """
    check_option("kind", kind, ("metric", "kruskal"))
    pair, by_order = DataEmbeddingPair.of(X, embedding, metric), kind == "kruskal"
    if per_point:
        if by_order:
            raise ValueError(
                "kind='kruskal' has no value per point; pass kind='metric' or per_point=False"
            )
        return pair.expand_to_all_rows(_stress_of_points(pair, scale, random_state))
    diagram = shepard_of(pair, random_state)
    return diagram.kruskal() if by_order else diagram.stress(scale)


def _stress_of_points(
    pair: DataEmbeddingPair, scale: bool, random_state: RandomState, n_partners: int = 1000
) -> Array:
    """Stress of every point, from its distances to `n_partners` points."""
    partners = sample_points(pair.n, min(pair.n, n_partners), random_state)
    spaces = on_device_if_possible(pair.data_distances, pair.embedding_distances)
    units, device = _units(spaces, partners), spaces[0].device

    def sums(points: IntArray) -> Array:
        """Σδ², Σδd and Σd² over these points, for every point, (3, n), scaled by `units`."""
        data, embedded = (s.distances(points) / unit for s, unit in zip(spaces, units, strict=True))
        xp = namespace(data)
        apart = ~xp.isfinite(data)
        data[apart] = embedded[apart] = 0.0
        pairs = _products(data, embedded)
        return to_numpy(xp.stack([xp.einsum("ij,ij->j", *two) for two in pairs]))

    found = map_rows(sums, partners, pair.n, device=device)
    data, mixed, own = np.sum(found, axis=0)
    if not data.any():
        raise ValueError("all points of X coincide, so stress is undefined")
    best = mixed.sum() / own.sum() if own.any() else 1.0
    factor = best if scale else units[1] / units[0]
    left = np.maximum(data - 2 * factor * mixed + factor**2 * own, 0.0)
    return np.sqrt(np.divide(left, data, out=np.zeros(pair.n), where=data > 0))


def _units(spaces: list[DistanceRows], partners: IntArray) -> tuple[float, float]:
    """Scales of the distances in data and embedding, so that squares do not overflow."""
    some = partners[:: max(1, len(partners) // 10)]
    data, embedded = (to_numpy(space.distances(some)) for space in spaces)
    return power_of_two_scale(data[np.isfinite(data)]), power_of_two_scale(embedded)


def _products(a: Array, b: Array) -> tuple[tuple[Array, Array], ...]:
    return (a, a), (a, b), (b, b)


@on_device_of_arguments
@shared_docs
def residual_variance(
    X: Any, embedding: Any, *, metric: Any = "euclidean", random_state: RandomState = None
) -> Estimate:
    """Fraction 1 − ρ² of the variance of distances that the embedding does not explain.

    Pass a :class:`~manifoldry.NeighborGraph` as X to compare with geodesic distances, as is done
    for Isomap.

    Parameters
    ----------
    {compared_data_or_graph}
        Pairs are drawn as for :func:`shepard`.
    {compared_embedding}
    {data_metric}
    {sample_seed}

    Returns
    -------
    Estimate
        The fraction, a float with its 95 % confidence interval: 0 if distances are proportional.

    See Also
    --------
    shepard : the distances themselves.
    stress : their relative error.
    manifoldry.dimension.residual_variance_elbow : the dimension at which it stops decreasing.

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
    diagram = shepard_of(DataEmbeddingPair.of(X, embedding, metric), random_state)
    rho = diagram.pearson
    if rho.exact:
        return Estimate(1 - rho**2)
    ends = [1 - rho.low**2, 1 - rho.high**2]
    least = 1.0 if rho.low < 0 < rho.high else max(ends)  # at correlation 0 nothing is explained
    return Estimate(1 - rho**2, min(ends), least)


@on_device_of_arguments
def strain(X: Any, embedding: Any, *, scale: bool = False) -> Estimate:
    """Relative error of the inner products of centered data, minimized by classical MDS.

    √(‖B − YYᵀ‖² / ‖B‖²), where B is the Gram matrix of the centered data and Y the centered
    embedding. No n × n matrix is held in memory.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The embedding.
    scale : bool, default=False
        Rescale the embedding to minimize the strain.

    Returns
    -------
    Estimate
        The relative error, exact: 0 if all inner products are kept.

    See Also
    --------
    stress : the same of distances.
    manifoldry.ClassicalMDS : minimizes it.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import PCA
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3, 2, 1]
    >>> bool(strain(X, X) < 1e-12 < strain(X, PCA(2).fit(X)) < strain(X, PCA(1).fit(X)))
    True
    """
    pair = DataEmbeddingPair.of(X, embedding)
    if isinstance(pair.X, NeighborGraph):
        raise TypeError("strain needs coordinates, but X is a NeighborGraph; pass the data instead")
    frame = Frame.of(pair.X)
    A, Y = frame.apply(pair.X), pair.Y - pair.Y.mean(axis=0)
    unit = power_of_two_scale(Y)
    Y = Y / unit
    cross = np.asarray(A.T @ Y)  # Y is centered, so centering A changes nothing
    data, mixed, own = _gram_norm(A), (cross**2).sum(), ((Y.T @ Y) ** 2).sum()
    if data == 0:
        raise ValueError("all points of X coincide, so strain is undefined")
    if own == 0:
        return Estimate(1.0)  # all points of the embedding coincide
    with np.errstate(over="ignore"):  # infinite beyond the range of double precision
        square = mixed / own if scale else np.square(np.float64(unit) / frame.unit)
        inverse = 1 / np.maximum(square, 1)
        part = np.minimum(square, 1)
        left = inverse**2 + part * (part * own - 2 * inverse * mixed) / data
        return Estimate(float(np.sqrt(max(left, 0.0)) * np.maximum(square, 1)))


def _gram_norm(A: Matrix) -> float:
    """‖B‖² of the Gram matrix of centered rows, by blocks of the smaller of B and AᵀA."""
    mean = np.asarray(A.mean(axis=0)).ravel()
    n, n_features = A.shape
    total = 0.0
    if n_features <= n:
        columns = A.T.tocsr() if sparse.issparse(A) else A.T
        for block in row_blocks(n_features, n_features):
            part = _dense(columns[block] @ A) - n * np.outer(mean[block], mean)
            total += float((part**2).sum())
        return total
    along = np.asarray(A @ mean).ravel()
    for block in row_blocks(n, n):
        part = _dense(A[block] @ A.T) - along[block, None] - along + mean @ mean
        total += float((part**2).sum())
    return total


def _dense(product: Matrix) -> Array:
    return np.asarray(product.toarray() if sparse.issparse(product) else product)
