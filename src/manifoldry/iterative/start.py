"""Starts of searches."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.input import Input
from manifoldry.device import current_device
from manifoldry.eigen import ComponentSolver
from manifoldry.exceptions import ConvergenceWarning, ManifoldryWarning, ignoring, warn
from manifoldry.neighbors.distances import Frame
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.array_like import array_like
from manifoldry.util.named_rows import rows_for
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array

OPTIONS = ("spectral", "pca", "random")


def check_init(init: Any, shape: tuple[int, int], options: tuple[str, ...] = OPTIONS) -> Any:
    """Check the `init` of an estimator: a name, an estimator or an array of this shape."""
    if isinstance(init, str | BaseEstimator) or init is None:
        if init in options or hasattr(init, "fit_transform") or is_fitted(init):
            return init
        names = ", ".join(map(repr, options))
        raise ValueError(
            f"init={init!r} must be one of {names}, an array of shape {shape}, a fitted model, or "
            "an estimator with fit_transform"
        )
    return _checked_map(_as_numbers(init), shape)


def _checked_map(Y: Array, shape: tuple[int, int]) -> Array:
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


def is_fitted(init: Any) -> bool:
    """Whether `init` is a fitted estimator."""
    if not isinstance(init, BaseEstimator):
        return False
    try:
        check_is_fitted(init)
    except NotFittedError:
        return False
    return True


def map_of_model(model: BaseEstimator, data: Input, n_components: int) -> Array:
    """The map of a fitted model, for the data of another fit.

    It is what ``transform`` returns, which for the model's own data is its embedding. If the data
    or ``transform`` are missing, it is the embedding, provided that it has as many rows.
    """
    name, n = type(model).__name__, data.n_samples
    pairwise = get_tags(model).input_tags.pairwise
    rows = data.distances if pairwise else data.points
    if hasattr(model, "transform") and rows is not None:
        _check_columns(model, rows.shape[1])
        Y = np.array(model.transform(rows_for(model, rows)), dtype=np.float64)
    else:
        Y = np.array(getattr(model, "embedding_", np.empty((0, 0))), dtype=np.float64)
        if len(Y) != n:
            raise ValueError(
                f"init is a fitted {name} of {len(Y)} points, which cannot place the {n} points of "
                "this fit; pass a model of the same points, or one with transform and the data"
            )
    if Y.shape[1] != n_components:
        raise ValueError(
            f"init is a fitted {name} with {Y.shape[1]} coordinates; pass n_components="
            f"{Y.shape[1]}, or a model with {n_components}"
        )
    Y = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)  # points that are not embedded
    return _checked_map(Y, (n, n_components))


def _check_columns(model: BaseEstimator, n_columns: int) -> None:
    """Check that a fitted model can transform data with this many columns."""
    expected = getattr(model, "n_features_in_", n_columns)
    if expected != n_columns:
        raise ValueError(
            f"init is a {type(model).__name__} of data with {expected} columns, but the data of "
            f"this fit have {n_columns}; pass a model of data with the same columns"
        )


def recognizes_rows(embedding: Array, start: Array) -> bool:
    """Whether the rows of a fit are those of the model whose ``transform`` of them is `start`.

    Then they start at the points of its embedding, in any order and each as often, since
    ``transform`` returns these for its training rows only. They are compared in single precision,
    which either fit may have.
    """
    if start.shape != embedding.shape:
        return False
    known = RowLookup.of(embedding.astype(np.float32))
    rows, own = (np.sort(known.identical(Y.astype(np.float32))) for Y in (start, embedding))
    return np.array_equal(rows, own)


def well_scaled(
    Y: Array, scale: float, value: Callable[[Array], float], gain: float = 0.01
) -> Array:
    """`scale` times the map, if that lowers the value by more than the fraction `gain`.

    So the map of a model that minimizes the same objective stays as it is.
    """
    before = value(Y)
    return scale * Y if value(scale * Y) < before - gain * abs(before) else Y


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
    with ignoring(ManifoldryWarning):  # a start need not be a good embedding
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
    if current_device() is not None and points is data.rows:  # which are there already
        posed, rng = PCA(k).pose(data), np.random.default_rng(0)
        return posed.coordinates(ComponentSolver().solve(posed.problems, k, rng))
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
