"""Maps from which searches begin."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from manifoldry._typing import Array
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.neighbors.graph import NeighborGraph

OPTIONS = ("spectral", "pca", "random")
_SPECTRAL_NEIGHBORS = 15  # as many edges as a smooth start needs; affinities have more
_NOISE = 1e-3  # share of a coordinate's spread that tells repeated points apart
_RANDOM = 1e-2  # spread of a random start, in units of the map's kernel


def check_init(init: Any, shape: tuple[int, int]) -> Any:
    """The `init` of an estimator: a word, an estimator, or a map of this shape."""
    if isinstance(init, BaseEstimator) or (isinstance(init, str) and init in OPTIONS):
        return init
    if isinstance(init, str) or init is None:
        words = ", ".join(map(repr, OPTIONS))
        raise ValueError(f"init={init!r} must be one of {words}, a map or an estimator")
    Y = np.array(init, dtype=np.float64)
    if Y.shape != shape:
        raise ValueError(
            f"init has shape {Y.shape}; a map of {shape[0]} points in {shape[1]} coordinates "
            f"has shape {shape}"
        )
    if not np.isfinite(Y).all():
        raise ValueError("init has NaN or infinite entries; pass a finite map")
    return Y


def starting_map(
    init: str | BaseEstimator,
    points: Any,
    graph: NeighborGraph,
    n_components: int,
    rng: np.random.Generator,
) -> Array:
    """A map of roughly unit spread; `points` are the data, None if only the graph was seen."""
    n = graph.n_query
    if isinstance(init, str) and init == "random":
        return _RANDOM * rng.standard_normal((n, n_components))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)  # a start need not be a good map
        Y = _fitted_map(init, points, graph, n_components)
    Y = Y - np.nanmean(Y, axis=0)
    spread = float(np.nanmax(np.abs(Y), initial=0.0))
    Y = np.nan_to_num(Y / spread if spread > 0 else Y)
    return Y + _NOISE * rng.standard_normal(Y.shape) * Y.std()


def _fitted_map(
    init: str | BaseEstimator, points: Any, graph: NeighborGraph, n_components: int
) -> Array:
    from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
    from manifoldry.spectral.pca import PCA

    if isinstance(init, BaseEstimator):
        model = clone(init).set_params(n_components=n_components)
        return np.asarray(model.fit_transform(_needed(points, init)), dtype=np.float64)
    if init == "pca":
        data = _needed(points, init)
        k = min(n_components, *data.shape)
        return _padded(PCA(k).fit(data).embedding_, n_components)
    few = min(_SPECTRAL_NEIGHBORS, graph.n_neighbors or _SPECTRAL_NEIGHBORS)
    local = graph if graph.n_neighbors is None else graph.truncate(few)
    k = min(n_components, graph.n_query - 1)
    return _padded(LaplacianEigenmaps(k).fit(local).embedding_, n_components)


def _needed(points: Any, init: Any) -> Any:
    if points is None:
        raise ValueError(
            f"init={init!r} needs the data, of which this fit saw only distances; pass "
            "init='spectral', 'random' or a map"
        )
    return points


def _padded(Y: Array, n_components: int) -> Array:
    """`Y` in double precision with columns of zeros for coordinates that the data do not have."""
    return np.pad(np.asarray(Y, float), ((0, 0), (0, n_components - Y.shape[1])))
