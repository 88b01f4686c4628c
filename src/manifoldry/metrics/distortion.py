"""Local distortion: stretch factors of an embedding around each point."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.device import Device, current_device
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.distortion_on_device import local_factors
from manifoldry.metrics.pair import DEFAULT_N_NEIGHBORS, DataEmbeddingPair
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.neighbors.neighborhoods import gathered
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

_FLAT = 1e-10  # variance of a direction without extent, relative to that of the longest


@dataclass(frozen=True, eq=False)
class LocalDistortion:
    """Singular values of a linear map fitted to the embedding around each point.

    Parameters
    ----------
    stretch : array of shape (n_samples, n_components)
        Factors by which lengths in the data are multiplied in the embedding along the principal
        directions of the linear map, largest first; NaN for points that were not embedded and for
        directions in which the neighborhood has no extent.

    See Also
    --------
    local_distortion : computes it.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> stretched = local_distortion(X, X * [6.0, 2.0])
    >>> stretched.stretch[0].round(6)
    array([6., 2.])
    >>> round(float(stretched.anisotropy[0]), 6), round(float(stretched.scale[0]), 6)
    (3.0, 3.464102)
    """

    stretch: Array

    @property
    def anisotropy(self) -> Array:
        """Ratio of the largest to the smallest factor at every point; 1 if angles are kept."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.stretch[:, 0] / np.fmin.reduce(self.stretch, axis=1))

    @property
    def scale(self) -> Array:
        """Geometric mean of the factors at every point; constant if relative areas are kept."""
        known = np.isfinite(self.stretch)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.where(known, self.stretch, 1.0)).sum(axis=1)
            return np.asarray(np.exp(logs / known.sum(axis=1)))

    @property
    def relative_scale(self) -> Array:
        """`scale` divided by its median: above 1 in magnified, below 1 in compressed regions."""
        return np.asarray(self.scale / np.nanmedian(self.scale))


@on_device_of_arguments
@shared_docs
def local_distortion(
    X: Any, embedding: Any, *, n_neighbors: int | None = None, metric: Any = "euclidean"
) -> LocalDistortion:
    """Stretch factors of an embedding around every point.

    The embedding of a point's nearest neighbors is regressed on their coordinates in the local
    principal subspace of the data, which has as many dimensions as the embedding. An isometry has
    all factors equal to 1, a conformal map anisotropy 1, and a fold a factor of 0.

    Parameters
    ----------
    {compared_data}
        It must have coordinates, so no precomputed distances.
    {compared_embedding}
    n_neighbors : int, default=None
        Number of neighbors in the data; by default 15, or twice the number of components if
        that is more.
    metric : str or callable, default="euclidean"
        Metric for finding neighbors.

    Returns
    -------
    LocalDistortion
        The factors at every point, and their ratio and mean; NaN for points that were not embedded.

    See Also
    --------
    stress : error of all distances.
    procrustes : difference from known coordinates.

    Examples
    --------
    The unrolled sheet of a Swiss roll keeps lengths; a projection along its axis compresses one
    direction:

    >>> import numpy as np
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.metrics import local_distortion
    >>> X, sheet = make_swiss_roll(1000, random_state=0)
    >>> float(np.median(local_distortion(X, sheet).anisotropy).round(2))
    1.01
    >>> bool(np.median(local_distortion(X, X[:, [0, 2]]).anisotropy) > 50)
    True
    """
    pair = DataEmbeddingPair.of(X, embedding, metric)
    found = distortion_of(pair, n_neighbors)
    if found is None:
        raise ValueError(
            "local distortion needs coordinates, but X holds distances; pass the data instead"
        )
    return LocalDistortion(
        np.column_stack([pair.expand_to_all_rows(column) for column in found.stretch.T])
    )


def distortion_of(
    pair: DataEmbeddingPair, n_neighbors: int | None = None
) -> LocalDistortion | None:
    """Distortion at the embedded points of a pair; None if X has no coordinates."""
    if isinstance(pair.X, NeighborGraph) or pair.precomputed:
        return None
    default = max(DEFAULT_N_NEIGHBORS, 2 * pair.Y.shape[1])
    k = pair.check_neighbors(n_neighbors, default, max_fraction=1)
    return LocalDistortion(_stretches(pair.X, pair.Y, pair.neighbors(k)))


def _stretches(X: Matrix, Y: Array, members: IntArray) -> Array:
    (n, k), device = members.shape, current_device()
    if device is not None and not sparse.issparse(X):
        return _stretches_on(device, X, Y, members)
    itself = np.arange(n)[:, None]

    def block(rows: slice) -> Array:
        group = np.concatenate([itself[rows], members[rows]], axis=1)
        return _factors(_centered(gathered(X, group)), _centered(Y[group]))

    budget = row_blocks(n, (k + 1) * max(X.shape[1], k + 1), budget=2**20)
    return np.concatenate(map_threads(block, budget))


def _centered(local: Array) -> Array:
    return local - local.mean(axis=1, keepdims=True)


def _stretches_on(device: Device, X: Array, Y: Array, members: IntArray) -> Array:
    found, d = local_factors(device, X, Y, members, _FLAT), Y.shape[1]
    factors = found.factors * _magnification(found.embedded_size, found.size)
    return _padded(factors, found.n_directions, d)


def _factors(A: Array, B: Array, flat: float = _FLAT) -> Array:
    """Singular values (n_block, d) of the linear map from the principal subspace of A to B.

    Directions with a variance below `flat` times the largest have factor NaN.
    """
    d = B.shape[2]
    (A, size), (B, embedded_size) = _scaled(A), _scaled(B)
    U, S, _ = np.linalg.svd(A @ A.transpose(0, 2, 1), hermitian=True)
    U, lengths = U[:, :, :d], np.sqrt(S[:, :d])
    extends = lengths > np.sqrt(flat) * np.maximum(lengths[:, :1], np.finfo(float).tiny)
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=extends)
    J = (B.transpose(0, 2, 1) @ U) * inverse[:, None, :]
    factors = np.linalg.svd(J, compute_uv=False) * _magnification(embedded_size, size)
    return _padded(factors, extends.sum(axis=1), d)


def _padded(factors: Array, n_directions: IntArray, d: int) -> Array:
    """Factors in d columns, NaN for directions in which a neighborhood has no extent."""
    factors = np.pad(factors, ((0, 0), (0, d - factors.shape[1])))
    return np.where(np.arange(d) < n_directions[:, None], factors, np.nan)


def _scaled(local: Array) -> tuple[Array, Array]:
    """Neighborhoods with a largest value of one, and their sizes (n_block, 1, 1).

    Those that collapse to a point have size zero and stay zero.
    """
    size = np.abs(local).max(axis=(1, 2), keepdims=True)
    return local / np.where(size > 0, size, 1.0), size


def _magnification(embedded: Array, size: Array) -> Array:
    """Ratio of the sizes of neighborhoods, (n_block, 1); raise ValueError if out of range.

    It is zero if one of them collapses to a point; in the data, it then has no stretch factors.
    """
    extended = size > 0
    with np.errstate(over="ignore"):
        ratio = np.divide(embedded, size, out=np.zeros_like(size), where=extended)[:, :, 0]
    underflow = (ratio == 0) & (extended & (embedded > 0))[:, :, 0]
    invalid = np.flatnonzero(np.isinf(ratio) | underflow)
    if len(invalid):
        row = invalid[0]
        raise ValueError(
            f"a neighborhood of size {size[row, 0, 0]:.0e} has size {embedded[row, 0, 0]:.0e} in "
            "the embedding, so stretch factors leave the range of double precision; rescale X or "
            "the embedding"
        )
    return np.asarray(ratio)
