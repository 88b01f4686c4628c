"""Maps from which searches begin."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from manifoldry.base.input import Input
from manifoldry.exceptions import ConvergenceWarning, ManifoldryWarning
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.objectives.base import Objective
from manifoldry.util.typing import Array
from manifoldry.util.warn import warn

OPTIONS = ("spectral", "pca", "random")


def check_init(init: Any, shape: tuple[int, int], options: tuple[str, ...] = OPTIONS) -> Any:
    """The `init` of an estimator: a word, an estimator, or a map of this shape."""
    if isinstance(init, str | BaseEstimator) or init is None:
        if init in options or hasattr(init, "fit_transform"):
            return init
        words = ", ".join(map(repr, options))
        raise ValueError(f"init={init!r} must be one of {words}, a map or an estimator of maps")
    Y = _as_numbers(init)
    if Y.shape != shape:
        raise ValueError(
            f"init has shape {Y.shape}; a map of {shape[0]} points in {shape[1]} coordinates "
            f"has shape {shape}"
        )
    if not np.isfinite(Y).all():
        raise ValueError("init has NaN or infinite entries; pass a finite map")
    if not np.ptp(Y, axis=0).any():
        raise ValueError(
            "init has all points in one place, from where no gradient leads away; pass a map that "
            "has some extent, if only by noise"
        )
    return Y


def warn_if_too_large(init: Array, objective: Objective) -> None:
    """Say so where a given map is larger than its kernel can see: a tenth of it would be better."""
    if objective.value(0.1 * init) < objective.value(init):
        largest = np.abs(init).max()
        warn(
            f"init is too large (its largest coordinate is {largest:.3g}): a tenth of it has a "
            "lower loss, and points that do not see each other hardly move; pass a smaller map, "
            "or the estimator that made it, whose map is scaled",
            ConvergenceWarning,
        )


def _as_numbers(init: Any) -> Array:
    try:
        return np.array(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        words = ", ".join(map(repr, OPTIONS))
        raise TypeError(
            f"init={init!r} is no array of numbers; pass one of {words}, a map or an estimator"
        ) from error


def starting_map(
    init: str | BaseEstimator,
    data: Input,
    graph: NeighborGraph,
    n_components: int,
    rng: np.random.Generator,
    noise: float = 1e-3,
) -> Array:
    """A map of roughly unit spread, from the data, their distances or their graph.

    Some `noise`, as a fraction of the spread, tells repeated points apart.
    """
    shape = (graph.n_query, n_components)
    if isinstance(init, str) and init == "random":
        return _cloud(shape, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)  # a start need not be a good map
        Y = _fitted_map(init, data, graph, n_components)
    if Y.shape != shape:
        raise ValueError(f"init={init!r} made a map of shape {Y.shape} where {shape} is needed")
    Y = Y - np.nanmean(Y, axis=0)
    spread = float(np.nanmax(np.abs(Y), initial=0.0))
    if not 0 < spread < np.inf:
        return _cloud(shape, rng)  # all in one place: it says nothing
    Y = np.nan_to_num(Y / spread)
    return Y + noise * rng.standard_normal(Y.shape) * Y.std()


def _cloud(shape: tuple[int, int], rng: np.random.Generator, spread: float = 1e-2) -> Array:
    """Noise, its spread in units of the map's kernel."""
    return spread * rng.standard_normal(shape)


def _fitted_map(
    init: str | BaseEstimator, data: Input, graph: NeighborGraph, n_components: int
) -> Array:
    if isinstance(init, BaseEstimator):
        model = clone(init)
        if "n_components" in model.get_params(deep=False):  # a pipeline has none of its own
            model.set_params(n_components=n_components)
        return np.asarray(model.fit_transform(_input_of(model, data)), dtype=np.float64)
    if init == "pca":
        return _padded(_principal_components(data, n_components), n_components)
    from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps

    if graph.n_neighbors is not None:  # a smooth start needs few edges; affinities have more
        graph = graph.truncate(min(15, graph.n_neighbors))
    k = min(n_components, graph.n_query - 1)
    return _padded(LaplacianEigenmaps(k).fit(graph).embedding_, n_components)


def _principal_components(data: Input, n_components: int) -> Array:
    from manifoldry.spectral.classical_mds import ClassicalMDS
    from manifoldry.spectral.pca import PCA

    if data.points is None and data.distances is not None:
        k = min(n_components, len(data.distances) - 1)
        D = data.distances.astype(np.float64, copy=False)  # the map has their precision
        return ClassicalMDS(k, metric="precomputed").fit(D).embedding_
    points = _needed(data.points, "pca")
    k = min(n_components, points.shape[0] - 1, points.shape[1])
    return PCA(k).fit(Frame.of(points).apply(points)).embedding_


def _input_of(model: BaseEstimator, data: Input) -> Any:
    if get_tags(model).input_tags.pairwise and data.distances is not None:
        return data.distances
    return _needed(data.points, model)


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
