"""How a map stretches and shears the data around each point."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.metrics.pair import DEFAULT_N_NEIGHBORS, DataEmbeddingPair
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import gathered
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks


@dataclass(frozen=True, eq=False)
class LocalDistortion:
    """What the map does to small components of the data: one linear map per point.

    Parameters
    ----------
    stretch : array of shape (n_samples, n_components)
        Factors by which a step on the data grows on the map, along the local principal
        directions of the map, largest first; NaN for points left off the map and for directions
        in which the data around a point do not extend.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> bent = local_distortion(X, X * [6.0, 2.0])
    >>> bent.stretch[0].round(6)
    array([6., 2.])
    >>> round(float(bent.anisotropy[0]), 6), round(float(bent.scale[0]), 6)
    (3.0, 3.464102)
    """

    stretch: Array

    @property
    def anisotropy(self) -> Array:
        """Largest over smallest factor at every point: 1 where the map keeps angles."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.stretch[:, 0] / np.fmin.reduce(self.stretch, axis=1))

    @property
    def scale(self) -> Array:
        """Geometric mean of the factors at every point: constant where it keeps areas."""
        known = np.isfinite(self.stretch)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.where(known, self.stretch, 1.0)).sum(axis=1)
            return np.asarray(np.exp(logs / known.sum(axis=1)))

    @property
    def relative_scale(self) -> Array:
        """`scale` over its median: above 1 where the map magnifies, below where it crowds."""
        return np.asarray(self.scale / np.nanmedian(self.scale))


def local_distortion(
    X: Any, embedding: Any, *, n_neighbors: int | None = None, metric: Any = "euclidean"
) -> LocalDistortion:
    """Measure stretching and anisotropy of a map around every point.

    The map's offsets to a point's nearest neighbors are regressed on the data's, within the
    plane of as many dimensions as the map has that fits the neighbors best. An isometry has all
    factors equal to 1, a conformal map no anisotropy, and a fold a factor of 0.

    Parameters
    ----------
    X, embedding
        As for :func:`trustworthiness`; coordinates are needed, so no precomputed distances.
    n_neighbors : int, default=None
        Neighbors in the data that make up a neighborhood; by default 15, or twice the
        dimensions of the map if that is more.
    metric : str or callable, default="euclidean"
        How neighbors are found.

    Returns
    -------
    LocalDistortion
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    found = distortion_of(pair, n_neighbors)
    if found is None:
        raise ValueError("distances alone have no directions to measure along; pass the data")
    return LocalDistortion(
        np.column_stack([pair.expand_to_all_rows(column) for column in found.stretch.T])
    )


def distortion_of(
    pair: DataEmbeddingPair, n_neighbors: int | None = None
) -> LocalDistortion | None:
    """Distortion at the points of a pair; None where coordinates of the data are not known."""
    if isinstance(pair.X, NeighborGraph) or pair.precomputed:
        return None
    default = max(DEFAULT_N_NEIGHBORS, 2 * pair.Y.shape[1])
    k = pair.check_neighbors(n_neighbors, default, max_fraction=1)
    return LocalDistortion(_stretches(pair.X, pair.Y, pair.neighbors(k)))


def _stretches(X: Matrix, Y: Array, members: IntArray) -> Array:
    n, k = members.shape
    itself = np.arange(n)[:, None]

    def block(rows: slice) -> Array:
        group = np.concatenate([itself[rows], members[rows]], axis=1)
        return _factors(_centered(gathered(X, group)), _centered(Y[group]))

    budget = row_blocks(n, (k + 1) * max(X.shape[1], k + 1), budget=2**20)
    return np.concatenate(map_threads(block, budget))


def _centered(local: Array) -> Array:
    return local - local.mean(axis=1, keepdims=True)


def _factors(A: Array, B: Array, flat: float = 1e-10) -> Array:
    """Singular values (n_block, d) of the map from the tangent plane of A to B.

    A direction is flat whose variance is below this fraction of the largest.
    """
    d = B.shape[2]
    size = np.abs(A).max(axis=(1, 2), keepdims=True)
    size[size == 0] = 1.0
    A = A / size
    U, S, _ = np.linalg.svd(A @ A.transpose(0, 2, 1), hermitian=True)
    U, lengths = U[:, :, :d], np.sqrt(S[:, :d])
    extends = lengths > np.sqrt(flat) * np.maximum(lengths[:, :1], np.finfo(float).tiny)
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=extends)
    J = (B.transpose(0, 2, 1) @ U) * (inverse / size[:, :, 0])[:, None, :]
    factors = np.linalg.svd(J, compute_uv=False)
    factors = np.pad(factors, ((0, 0), (0, d - factors.shape[1])))
    return np.where(np.arange(d) < extends.sum(axis=1)[:, None], factors, np.nan)
