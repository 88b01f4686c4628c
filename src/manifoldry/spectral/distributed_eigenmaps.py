"""Fits of eigenmaps to the graph of all rows of distributed data, from its eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from manifoldry.base.distributed import (
    DistributedFit,
    landmarks_of,
    with_warnings,
)
from manifoldry.base.dominant_points import unchecked_dominance
from manifoldry.base.placement import KeptRows, kept_rows
from manifoldry.distributed.components import DistributedComponents
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import broadcast, delayed, persist, persist_all
from manifoldry.eigen import DistributedLobpcg, DistributedSpectrum, Spectra, Spectrum
from manifoldry.exceptions import DisconnectedGraphWarning, ignoring
from manifoldry.extension.laplacian import LaplacianExtension
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.neighbors.distributed_graph import METRICS, DistributedGraph
from manifoldry.neighbors.distributed_join import can_join, with_joined_components
from manifoldry.neighbors.graph import NeighborGraph, resolve_neighbors
from manifoldry.spectral.distributed_laplacian import DistributedLaplacian, longest_edge
from manifoldry.spectral.distributed_model import CHECKED, FittedModel, received_model
from manifoldry.util.checks import as_generator
from manifoldry.util.named_rows import named_rows
from manifoldry.util.typing import Array, IntArray, Matrix


class CoordinateScale(NamedTuple):
    """How eigenvectors f with fᵀDf = 1 become coordinates."""

    volume_power: float
    """f times this power of the sum of all degrees are the functions that extend to new points."""
    factors: Array
    """These functions times the factors are the coordinates, (k,)."""

    def of_functions(self, volume: float) -> float:
        """Factor of f, given the sum of all degrees."""
        return float(volume**self.volume_power)


def has_graph_in_parts(estimator: Any) -> bool:
    """Whether the graph of the parameters of an estimator can be built in parts."""
    known: bool = estimator.metric in METRICS
    return known and estimator.radius is None and not estimator.metric_params


def graph_of_rows(
    estimator: Any, rows: Rows | DistributedGraph, default: int | None
) -> DistributedGraph:
    """Return the neighbor graph of distributed rows, or a given one, for an estimator."""
    k, metric, options = estimator.n_neighbors, estimator.metric, current_options()
    if not isinstance(rows, DistributedGraph):
        return DistributedGraph.build(
            rows,
            resolve_neighbors(default if k is None else k, rows.n_samples),
            metric=metric,
            search=options.search,
            random_state=estimator.random_state,
            verbose=options.verbose,
        )
    if getattr(estimator, "radius", None) is not None:
        raise ValueError(
            f"radius={estimator.radius} is not used, since the graph passed to fit has "
            f"{rows.n_neighbors} neighbors of each row; pass the graph without radius"
        )
    if options.landmarks is not None:
        raise ValueError(
            f"landmarks={options.landmarks} does not use a graph of all rows; pass the data"
        )
    if not rows.points:
        raise ValueError(
            "the graph was written without its points, from which new rows are placed; build it "
            "again, or write it with points=True"
        )
    if metric not in ("euclidean", rows.metric):
        raise ValueError(
            f"metric={metric!r} differs from metric={rows.metric!r}, with which the graph passed "
            f"to fit was built; build it with metric={metric!r}"
        )
    return rows if k is None else truncated(rows, resolve_neighbors(k, rows.n_samples))


def check_solver(eigen_solver: Any) -> None:
    """Raise ValueError for a solver of problems in memory."""
    known = eigen_solver is None or isinstance(eigen_solver, DistributedLobpcg)
    if not (known or (isinstance(eigen_solver, str) and eigen_solver == "auto")):
        raise ValueError(
            f"eigen_solver={eigen_solver!r} solves problems in memory; for distributed data pass "
            "'auto' or a manifoldry.eigen.DistributedLobpcg, or fit a sample: with "
            "manifoldry.distributed.using_options(landmarks=20_000)"
        )


def connected_parts(graph: DistributedGraph, policy: DisconnectedPolicy) -> DistributedGraph:
    """Return the graph, with the edges that connect its components if the policy is "join"."""
    if policy.choice == "join":
        components = DistributedComponents.of(DistributedMatrix.of(graph.edges, graph.order.bounds))
        if components.count > 1 and can_join(components, graph.n_samples):
            policy.say_joined(components.sizes, components.count)
            graph = with_joined_components(graph, components)
    longest_edge(graph.edges, graph.n_samples)
    return graph


def truncated(graph: DistributedGraph, k: int) -> DistributedGraph:
    """Return the graph of the nearest k neighbors of each row."""
    if k > graph.n_neighbors:
        raise ValueError(
            f"n_neighbors={k} cannot be cut from a graph built with {graph.n_neighbors} neighbors; "
            f"build it with n_neighbors={k} or more"
        )
    if k == graph.n_neighbors:
        return graph
    cut = delayed(_nearest)
    return replace(graph, edges=persist(cut(part, k) for part in graph.edges), n_neighbors=k)


def fit_from_spectrum(
    estimator: Any,
    graph: DistributedGraph,
    laplacian: DistributedLaplacian,
    spectrum: DistributedSpectrum,
    scale: CoordinateScale,
    attributes: dict[str, Any],
) -> DistributedFit:
    """Return the fit of eigenmaps whose eigenvectors are known at all rows.

    Parameters
    ----------
    estimator : LaplacianEigenmaps
        The estimator, whose parameters the model of landmarks has.
    graph : DistributedGraph
        The graph of all rows.
    laplacian : DistributedLaplacian
        Its Laplacian.
    spectrum : DistributedSpectrum
        The eigenvectors f.
    scale : CoordinateScale
        How these become coordinates.
    attributes : dict
        Fitted attributes by name.

    Returns
    -------
    DistributedFit
        The fit.
    """
    F, volume = persist(laplacian.on_all_rows(spectrum.vectors)), laplacian.volume()
    landmarks, checked = _drawn(estimator, graph.n_samples)
    unfitted = _Unfitted.of(estimator, graph, spectrum.pairs, scale, volume)
    kept = kept_rows(graph, F, landmarks)
    [fitted] = persist([delayed(with_warnings)(broadcast(unfitted), kept)])
    factors = unfitted.factors
    Y = [delayed(np.multiply)(part, factors) for part in F]
    found, error = received_model(fitted, graph, Y, checked)
    labels = [delayed(_labels)(part) for part in F]
    restored = [
        graph.order.restored(Y, len(factors), found.model.embedding_.dtype),
        graph.order.restored(labels, 1, np.intp),
    ]
    verbose = current_options().verbose
    embedding, labels = persist_all(restored, "order of the rows", verbose=verbose)
    attributes = attributes | {
        "neighbor_search_": graph.search,
        "component_labels_": labels[:, 0],
        "placement_error_": error,
    }
    said = _said(graph, laplacian, len(found.rows), error)
    return DistributedFit(found.model, embedding, said, attributes)


@dataclass(frozen=True, eq=False)
class _Unfitted:
    """An estimator that is to be fitted to landmarks, whose eigenvectors are known."""

    estimator: Any
    n_neighbors: int
    metric: str
    names: Array | None
    pairs: Spectrum
    scale: CoordinateScale
    volume: float

    @classmethod
    def of(
        cls,
        estimator: Any,
        graph: DistributedGraph,
        pairs: Spectrum,
        scale: CoordinateScale,
        volume: float,
    ) -> _Unfitted:
        blank = clone(estimator).set_output(transform="default")
        return cls(blank, graph.n_neighbors, graph.metric, graph.names, pairs, scale, volume)

    @property
    def factors(self) -> Array:
        """Factors of the eigenvectors of the graph of all rows."""
        return self.scale.of_functions(self.volume) * self.scale.factors

    def __call__(self, kept: KeptRows) -> FittedModel:
        """Return the fitted estimator and the landmarks; runs on a worker."""
        model, own = clone(self.estimator), self.estimator.get_params(deep=False)
        k = min(self.n_neighbors, len(kept.rows) - 1)
        graph = NeighborGraph.build(named_rows(kept.points, self.names), k, metric=self.metric)
        # The whole graph connects landmarks that their own graph may not connect.
        model.set_params(disconnected="separate", n_neighbors=None)
        with unchecked_dominance(), ignoring(DisconnectedGraphWarning):
            posed = model.pose(graph)
            posed = replace(posed, rows_by_component=[np.arange(len(kept.rows))])
            functions = kept.values * self.scale.of_functions(self.volume)
            own_scale = self.scale.of_functions(float(posed.degree.sum()))
            pairs = replace(self.pairs, vectors=functions / own_scale)
            model.adopt(posed, Spectra([pairs], pairs.k))
        model.set_params(**{name: own[name] for name in ("disconnected", "n_neighbors")})
        model.embedding_ = (kept.values * self.factors).astype(model.embedding_.dtype)
        if isinstance(model.extension_, LaplacianExtension):
            values = _values_on(model.extension_)
            model.extension_ = replace(model.extension_, values=values)
        return FittedModel(model, kept.rows)


def _values_on(extension: LaplacianExtension) -> Array:
    """Values λ with which the formula for new points fits best at the landmarks.

    Landmarks are farther from their neighbors than all rows are from theirs, so that the same
    functions belong to larger eigenvalues of their graph. Absolute deviations Σ |(D − W − λM)f|ᵢ
    have a minimum that a few rows at which f is large do not determine.
    """
    F, D = extension.functions, extension.degree[:, None]
    M = np.ones_like(D) if extension.normalization == "none" else D
    ratios = (D * F - extension.affinity @ F) / np.where(F == 0, np.inf, M * F)
    return _weighted_medians(ratios, M * np.abs(F))[None]


def _weighted_medians(values: Array, weights: Array) -> Array:
    """Median of each column, in which values count by their weights."""
    order = np.argsort(values, axis=0)
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    middle = (below >= below[-1] / 2).argmax(axis=0)[None]
    return np.take_along_axis(values, np.take_along_axis(order, middle, axis=0), axis=0)[0]


def _drawn(estimator: Any, n: int) -> tuple[IntArray, IntArray]:
    """Landmarks, and other rows on which they are tested; they do not depend on chunks or parts."""
    m = landmarks_of(estimator)
    rng = as_generator(estimator.random_state, unset=0)
    drawn = rng.choice(n, min(n, m + CHECKED), replace=False)
    return np.sort(drawn[:m]), np.sort(drawn[m:])


def _labels(F: Array) -> IntArray:
    """0 for rows that are embedded, -1 for others."""
    return np.where(np.isfinite(F[:, :1]), 0, -1)


def _nearest(edges: Matrix, k: int) -> Matrix:
    """The first k edges of each row."""
    counts = np.diff(edges.indptr)
    rank = np.arange(len(edges.indices)) - np.repeat(edges.indptr[:-1], counts)
    kept, indptr = rank < k, np.concatenate([[0], np.cumsum(np.minimum(counts, k))])
    return sparse.csr_array((edges.data[kept], edges.indices[kept], indptr), shape=edges.shape)


def _said(graph: DistributedGraph, laplacian: DistributedLaplacian, m: int, error: float) -> str:
    """What was computed of all rows, and what of landmarks."""
    n = graph.n_samples
    search = "exact" if graph.recall == 1 else f"approximate (recall {graph.recall:.3f})"
    rows = f"all {n} rows" if laplacian.n == n else f"the {laplacian.n} connected of {n} rows"
    said = f"{rows}, by {search} neighbors and the eigenvectors of their graph; new rows are placed"
    if m == laplacian.n:
        return f"{said} like those of a fit in memory"
    return f"{said} by {m} landmarks, with an error of {100 * error:.2g} % of the size of the map"
