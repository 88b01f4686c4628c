"""Isomap of all rows of distributed data, by paths along the graph of all rows to landmarks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from manifoldry.base.distributed import (
    LANDMARKS,
    DistributedFit,
    fit_to_landmarks,
    say,
    with_warnings,
)
from manifoldry.base.dominant_points import unchecked_dominance, warn_if_dominated
from manifoldry.base.input import Points
from manifoldry.base.placement import KeptRows, kept_rows, placement_error
from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import combined, compute, delayed, persist
from manifoldry.eigen import ComponentSolver
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning, warn
from manifoldry.extension.base import Nystrom
from manifoldry.extension.from_distances import gower_kernel
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.distributed_paths import DistributedPaths
from manifoldry.neighbors.geodesics import SampledGeodesics, precision_of
from manifoldry.neighbors.graph import NeighborGraph, resolve_neighbors
from manifoldry.spectral.isomap import Isomap, PosedGeodesics
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import power_of_two_scale, row_blocks

# Landmarks if n_landmarks is None; their distances to all rows are stored.
DEFAULT_LANDMARKS = 500
# Rows on which the error of placing new rows is measured.
CHECKED = 1000


class Drawn(NamedTuple):
    """Rows that were drawn at random, ascending."""

    landmarks: IntArray
    """Rows from which all paths start."""
    kept: IntArray
    """Rows that the model keeps to place others, among them the landmarks."""
    checked: IntArray
    """Other rows, on which the error of placing them is measured."""
    seed: int

    @classmethod
    def of(cls, estimator: Isomap, n: int, most: int = LANDMARKS) -> Drawn:
        """Draw from n rows; the result does not depend on chunks or parts."""
        rng = as_generator(estimator.random_state, unset=0)
        m = estimator.n_landmarks
        counts = min(DEFAULT_LANDMARKS, n) if m is None else m, min(most, n), min(CHECKED, n)
        landmarks, others, some = (rng.choice(n, c, replace=False, shuffle=False) for c in counts)
        kept = np.union1d(landmarks, others)
        return cls(np.sort(landmarks), kept, np.setdiff1d(some, kept), int(rng.integers(2**31)))


def fit_all_rows(
    estimator: Isomap, rows: Rows, n_components: int, disconnected: str
) -> DistributedFit:
    """Fit Isomap to all rows, by their distances to landmarks along the graph of all rows.

    All workers together store the graph and n · n_landmarks distances, in single precision if
    these are more than 2²⁴. Every round of the search moves the distances of the rows that have
    neighbors in other parts.
    """
    if estimator.radius is not None or estimator.metric_params or callable(estimator.metric):
        return fit_to_landmarks(estimator, rows)  # there are no such graphs in parts
    options, drawn = current_options(), Drawn.of(estimator, rows.n_samples)
    graph = DistributedGraph.build(
        rows,
        resolve_neighbors(estimator.n_neighbors, rows.n_samples),
        metric=estimator.metric,
        search=options.search,
        random_state=drawn.seed,
        verbose=options.verbose,
    )
    return fit_graph(estimator, graph, drawn, n_components, disconnected, rows.dtype)


def fit_graph(
    estimator: Isomap,
    graph: DistributedGraph,
    drawn: Drawn,
    n_components: int,
    disconnected: str,
    dtype: Any = np.float64,
) -> DistributedFit:
    """Fit Isomap to the rows of a distributed graph; `dtype` is that of the embedding."""
    verbose, order, m = current_options().verbose, graph.order, len(drawn.landmarks)
    [longest] = compute([combined([delayed(_longest)(e) for e in graph.edges], max)], "edges")
    stored = precision_of(order.n_samples * m, power_of_two_scale(np.array(longest)))
    at = order.positions(drawn.landmarks)
    D = DistributedPaths.of(graph).lengths_from(at, stored, verbose=verbose)
    columns = _connected_landmarks(D, order.bounds, at, disconnected)
    if len(columns) < m:
        D = persist(delayed(_columns)(part, columns) for part in D)
    model = clone(estimator).set_output(transform="default")
    posing = _Posing(model, n_components, drawn, columns, graph)
    fit = delayed(with_warnings)(posing, kept_rows(graph, D, drawn.kept))
    [fitted] = persist([fit])
    Y = persist(delayed(_coordinates)(part, fitted, dtype) for part in D)
    [embedding] = persist([order.restored(Y, n_components, dtype)])
    error = delayed(_error)(fitted, kept_rows(graph, Y, drawn.checked))
    (found, said), error = compute([fitted, error], "placing rows", verbose=verbose)
    say(said)
    warn_if_dominated(found.model.embedding_, has_neighbors=True, rows=found.rows)
    attributes = {
        "landmarks_": drawn.landmarks[columns],
        "neighbor_search_": graph.search,
        "placement_error_": error,
    }
    text = _fitted_on(estimator, graph, len(columns), len(found.rows), error)
    return DistributedFit(found.model, embedding, text, attributes)


class _Fitted(NamedTuple):
    """A model of the rows that are kept, and the formula for the coordinates of all rows."""

    model: Isomap
    formula: Nystrom
    rows: IntArray


class _Posing:
    """Fits the model of the kept rows to their known distances; runs on a worker."""

    def __init__(
        self,
        model: Isomap,
        n_components: int,
        drawn: Drawn,
        columns: IntArray,
        graph: DistributedGraph,
    ) -> None:
        self.model, self.n_components = model, n_components
        self.landmarks, self.rng = drawn.landmarks[columns], np.random.default_rng(drawn.seed)
        self.n_neighbors, self.metric, self.names = graph.n_neighbors, graph.metric, graph.names
        self.has_all = len(drawn.kept) == graph.order.n_samples

    def __call__(self, kept: KeptRows) -> _Fitted:
        X, targets = kept.points, np.searchsorted(kept.rows, self.landmarks)
        k = min(self.n_neighbors, len(X) - 1)
        graph = NeighborGraph.build(X, k, metric=self.metric, copy=False)
        geodesics = SampledGeodesics(graph, targets, kept.values)
        if self.has_all:
            geodesics = replace(geodesics, slack=np.inf)
        posed = PosedGeodesics(Points(X), [np.arange(len(X))], geodesics)
        solver = ComponentSolver(self.model.eigen_solver)
        spectra = solver.solve(posed.problems, self.n_components, self.rng)
        model = clone(self.model)  # a task may run twice
        vars(model).update(self._attributes(X.shape[1], graph, targets))
        with unchecked_dominance():  # it would number the kept rows
            model.adopt(posed, spectra)
        return _Fitted(model, posed.grams[0].extend(spectra.padded[0]), kept.rows)

    def _attributes(
        self, n_features: int, graph: NeighborGraph, landmarks: IntArray
    ) -> dict[str, Any]:
        """Attributes that other fits set when they read the data and pose the problem."""
        names = {} if self.names is None else {"feature_names_in_": self.names}
        return names | {
            "n_features_in_": n_features,
            "n_components_": self.n_components,
            "neighbor_search_": graph.search,
            "landmarks_": landmarks,
        }


def _connected_landmarks(
    D: list[Any], bounds: IntArray, at: IntArray, disconnected: str
) -> IntArray:
    """Numbers of the landmarks in the connected component of most rows.

    Raises, or warns, if there are rows outside.
    """
    count = combined([delayed(_counts)(part) for part in D], sum)
    [counts] = compute([count], "connected components")
    first = int(np.argmax(counts[1:]))  # the first landmark of that component
    rows, n = int(counts[1 + first]), int(bounds[-1])
    if rows == n:
        return np.arange(len(at))
    separate = int((counts[1:] > 0).sum()), int(counts[0])
    _report(n, rows, separate, disconnected)
    part = int(np.searchsorted(bounds, at[first], side="right")) - 1
    row = delayed(_row)(D[part], at[first] - bounds[part])
    [distances] = compute([row], "connected components")
    return np.flatnonzero(np.isfinite(distances))


def _report(n: int, rows: int, others: tuple[int, int], disconnected: str) -> None:
    """Raise or warn because only some rows are connected."""
    several, unreached = others
    without = f", and {unreached} rows are in components without a landmark" if unreached else ""
    what = (
        f"the neighbor graph of all rows is not connected: its largest component has {rows} of {n} "
        f"rows, {several - 1} other components have landmarks{without}"
    )
    if disconnected == "error":
        raise DisconnectedGraphError(f"{what}; raise n_neighbors, or pass disconnected='largest'")
    options = "manifoldry.distributed.using_options(landmarks=20_000)"
    instead = (
        ""
        if disconnected == "largest"
        else f", or fit a sample, to which disconnected={disconnected!r} applies: with {options}"
    )
    warn(
        f"{what}. Only the largest component was embedded, the other rows are NaN. Raise "
        f"n_neighbors{instead}",
        DisconnectedGraphWarning,
    )


def _longest(edges: Matrix) -> float:
    return float(edges.data.max(initial=0.0))


def _counts(D: Array) -> IntArray:
    """Number of rows that no landmark reaches, and of those that each is the first to reach."""
    reached = np.isfinite(D)
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), -1)
    return np.bincount(first + 1, minlength=D.shape[1] + 1)


def _row(values: Array, row: int) -> Array:
    return values[row]


def _columns(values: Array, columns: IntArray) -> Array:
    return values[:, columns]


def _coordinates(D: Array, fitted: tuple[_Fitted, Any], dtype: Any) -> Array:
    """Coordinates of the rows of a part; NaN without paths to the landmarks."""
    formula = fitted[0].formula
    Y = np.full((len(D), formula.dual.shape[1]), np.nan, dtype)
    for block in row_blocks(len(D), D.shape[1], budget=2**17):  # blocks stay in the cache
        here = np.flatnonzero(np.isfinite(D[block]).all(axis=1))
        kernel = gower_kernel(D[block][here], formula.unit)
        Y[block.start + here] = formula.transform(kernel)
    return Y


def _error(fitted: tuple[_Fitted, Any], checked: KeptRows) -> float:
    return placement_error(fitted[0].model, checked.points, checked.values)


def _fitted_on(
    estimator: Isomap, graph: DistributedGraph, landmarks: int, kept: int, error: float
) -> str:
    """What was computed of all rows, and what of a sample."""
    n = graph.order.n_samples
    recall = "exact" if graph.recall == 1 else f"recall {graph.recall:.3f} on a sample"
    placing = "" if kept == n else f", with an error of {100 * error:.2g} % of the size of the map"
    unsearched = "; short circuits were not searched for"
    return (
        f"all {n} rows, by shortest paths along their neighbor graph ({recall}) to {landmarks} "
        f"random landmarks; {kept} rows place new ones{placing}"
        + (unsearched if estimator.short_circuits == "warn" else "")
    )
