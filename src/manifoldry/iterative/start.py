"""Starts of searches."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from manifoldry.base.input import Input
from manifoldry.exceptions import ConvergenceWarning, ManifoldryWarning, warn
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.array_like import array_like
from manifoldry.util.typing import Array

OPTIONS = ("spectral", "pca", "random")


def check_init(init: Any, shape: tuple[int, int], options: tuple[str, ...] = OPTIONS) -> Any:
    """Check the `init` of an estimator: a name, an estimator or an array of this shape."""
    if isinstance(init, str | BaseEstimator) or init is None:
        if init in options or hasattr(init, "fit_transform"):
            return init
        names = ", ".join(map(repr, options))
        raise ValueError(
            f"init={init!r} must be one of {names}, an array of shape {shape}, or an estimator "
            "with fit_transform"
        )
    Y = _as_numbers(init)
    if Y.shape != shape:
        raise ValueError(
            f"init has shape {Y.shape}; the embedding of {shape[0]} points in {shape[1]} "
            f"coordinates has shape {shape}; pass such an array"
        )
    if not np.isfinite(Y).all():
        raise ValueError("init has NaN or infinite entries; pass finite coordinates")
    if not np.ptp(Y, axis=0).any():
        raise ValueError(
            "init has all points in one place, where the gradient is zero; pass different "
            "coordinates, or add noise"
        )
    return Y


def warn_if_too_large(init: Array, value: Callable[[Array], float]) -> None:
    """Warn if a tenth of the given start has a smaller value of the objective."""
    if value(0.1 * init) < value(init):
        largest = np.abs(init).max()
        warn(
            f"init is too large (its largest coordinate is {largest:.3g}): a tenth of it has a "
            "lower loss, and points farther apart than the kernel's width hardly move; pass a "
            "smaller array, or the estimator that computed it, whose embedding is scaled",
            ConvergenceWarning,
        )


def _as_numbers(init: Any) -> Array:
    try:
        return np.array(array_like(init, "init"), dtype=np.float64)
    except (TypeError, ValueError) as error:
        names = ", ".join(map(repr, OPTIONS))
        raise TypeError(
            f"init={init!r} is not an array of numbers; pass one of {names}, an array or an "
            "estimator"
        ) from error


def starting_map(
    init: str | BaseEstimator,
    data: Input,
    graph: NeighborGraph,
    n_components: int,
    rng: np.random.Generator,
    noise: float = 1e-3,
) -> Array:
    """A start of roughly unit size, from the data, their distances or their graph.

    Some `noise`, as a fraction of the standard deviation, separates points that coincide.
    """
    shape = (data.n_samples, n_components)
    if isinstance(init, str) and init == "random":
        return _noise(shape, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)  # a start need not be a good embedding
        Y = _fitted_map(init, data, graph, n_components)
    if Y.shape != shape:
        raise ValueError(
            f"init={init!r} computed an embedding of shape {Y.shape}, but {shape} is needed"
        )
    Y = Y - np.nanmean(Y, axis=0)
    spread = float(np.nanmax(np.abs(Y), initial=0.0))
    if not 0 < spread < np.inf:
        return _noise(shape, rng)  # all points in one place
    Y = np.nan_to_num(Y / spread)
    return Y + noise * rng.standard_normal(Y.shape) * Y.std()


def _noise(shape: tuple[int, int], rng: np.random.Generator, spread: float = 1e-2) -> Array:
    """Gaussian noise, with the standard deviation `spread` in units of the kernel's width."""
    return spread * rng.standard_normal(shape)


def _fitted_map(
    init: str | BaseEstimator, data: Input, graph: NeighborGraph, n_components: int
) -> Array:
    if isinstance(init, BaseEstimator):
        model = clone(init)
        if "n_components" in model.get_params(deep=False):  # a pipeline has none
            model.set_params(n_components=n_components)
        return np.asarray(model.fit_transform(_input_of(model, data)), dtype=np.float64)
    if init == "pca":
        return _padded(_principal_components(data, n_components), n_components)
    from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps

    if graph.n_neighbors is not None:  # affinities have more edges than a smooth start needs
        graph = graph.truncate(min(15, graph.n_neighbors))
    k = min(n_components, graph.n_query - 1)
    return _padded(LaplacianEigenmaps(k).fit(graph).embedding_, n_components)


def _principal_components(data: Input, n_components: int) -> Array:
    from manifoldry.spectral.classical_mds import ClassicalMDS
    from manifoldry.spectral.pca import PCA

    if data.points is None and data.distances is not None:
        k = min(n_components, len(data.distances) - 1)
        D = data.distances.astype(np.float64, copy=False)  # the embedding has their precision
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
            f"init={init!r} needs the data, but only distances were given; pass "
            "init='spectral', 'random' or an array"
        )
    return points


def _padded(Y: Array, n_components: int) -> Array:
    """`Y` in double precision, with zero columns appended up to `n_components`."""
    return np.pad(np.asarray(Y, float), ((0, 0), (0, n_components - Y.shape[1])))
