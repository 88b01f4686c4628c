"""Isomap of all rows of distributed data, by paths along the graph of all rows to landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from manifoldry.base.distributed import LANDMARKS, DistributedFit, with_warnings
from manifoldry.base.dominant_points import unchecked_dominance
from manifoldry.base.input import Points
from manifoldry.base.placement import KeptRows, kept_rows
from manifoldry.distributed.components import DistributedComponents
from manifoldry.distributed.options import current_options
from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import compute, delayed, persist, persist_all
from manifoldry.eigen import ComponentSolver
from manifoldry.extension.base import Nystrom
from manifoldry.extension.from_distances import gower_kernel
from manifoldry.neighbors.disconnected import DisconnectedPolicy
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.distributed_join import can_join, with_joined_components
from manifoldry.neighbors.distributed_paths import DistributedPaths, symmetric_edges
from manifoldry.neighbors.geodesics import SampledGeodesics, precision_of
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.distributed_eigenmaps import graph_of_rows
from manifoldry.spectral.distributed_laplacian import longest_edge
from manifoldry.spectral.distributed_model import CHECKED, FittedModel, received_model
from manifoldry.spectral.isomap import Isomap, PosedGeodesics
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import power_of_two_scale, row_blocks

# Landmarks if n_landmarks is None; their distances to all rows are stored.
DEFAULT_LANDMARKS = 500


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
    def of(cls, estimator: Isomap, n: int) -> Drawn:
        """Draw from n rows; the result does not depend on chunks or parts."""
        rng = as_generator(estimator.random_state, unset=0)
        m = estimator.n_landmarks
        m = min(DEFAULT_LANDMARKS, n) if m is None else m
        counts = m, min(LANDMARKS, n), min(CHECKED, n)
        landmarks, others, some = (rng.choice(n, c, replace=False, shuffle=False) for c in counts)
        kept = np.union1d(landmarks, others)
        return cls(np.sort(landmarks), kept, np.setdiff1d(some, kept), int(rng.integers(2**31)))


def fit_by_paths(
    estimator: Isomap, rows: Rows | DistributedGraph, n_components: int, policy: DisconnectedPolicy
) -> DistributedFit:
    """Fit Isomap to all rows, by their distances to landmarks along the graph of all rows.

    All workers together store the graph and n · n_landmarks distances, in single precision if
    these are more than 2²⁴. Every round of the search moves the distances of the rows that have
    neighbors in other parts.
    """
    graph = graph_of_rows(estimator, rows, None)
    drawn = Drawn.of(estimator, graph.order.n_samples)
    return fit_graph(estimator, graph, drawn, n_components, policy)


def fit_graph(
    estimator: Isomap,
    graph: DistributedGraph,
    drawn: Drawn,
    n_components: int,
    policy: DisconnectedPolicy,
) -> DistributedFit:
    """Fit Isomap to the rows of a distributed graph, with given landmarks."""
    verbose = current_options().verbose
    landmarks, D, which = _distances(graph, drawn.landmarks, n_components, policy, verbose)
    model = clone(estimator).set_output(transform="default")
    posing = _Posing.of(model, n_components, landmarks, graph, drawn)
    [fitted] = persist([delayed(with_warnings)(posing, kept_rows(graph, D, drawn.kept))])
    formula = delayed(_formula)(fitted)  # all that other workers need of the model
    Y = persist(delayed(_coordinates)(part, formula) for part in D)
    found, error = received_model(fitted, graph, Y, drawn.checked)
    dtype = found.model.embedding_.dtype
    restored = graph.order.restored(Y, n_components, dtype)
    [embedding] = persist_all([restored], "order of the rows", verbose=verbose)
    attributes = {
        "landmarks_": landmarks,
        "neighbor_search_": graph.search,
        "placement_error_": error,
    }
    text = _fitted_on(estimator, graph, which, len(landmarks), len(found.rows), error)
    return DistributedFit(found.model, embedding, text, attributes)


def _distances(
    graph: DistributedGraph,
    landmarks: IntArray,
    n_components: int,
    policy: DisconnectedPolicy,
    verbose: bool,
) -> tuple[IntArray, list[Any], str]:
    """The landmarks that are connected, distances of all rows to them, and which rows these are."""
    order, edges = graph.order, symmetric_edges(graph)
    which = f"all {order.n_samples} rows"
    components = DistributedComponents.of(edges)
    several = components.count > 1
    joined = several and policy.choice == "join" and can_join(components, order.n_samples)
    if joined:
        edges = symmetric_edges(with_joined_components(graph, components))
        policy.say_joined(components.sizes, components.count)
        which += f", whose {components.count} connected components were joined"
    unit = power_of_two_scale(np.array(longest_edge(edges.blocks, order.n_samples)))
    if several and not joined:
        policy.check_largest(components.sizes, components.count)
        landmarks = _inside(components, order, landmarks)
        which = f"the {components.sizes[0]} rows of the largest connected component"
    if len(landmarks) <= n_components:
        raise ValueError(
            f"only {len(landmarks)} random landmarks are in the largest connected component, of "
            f"{components.sizes[0]} rows; pass a larger n_landmarks, or raise n_neighbors"
        )
    paths = DistributedPaths.of(edges, order.bounds)
    stored = precision_of(order.n_samples * len(landmarks), unit)
    D = paths.lengths_from(order.positions(landmarks), stored, verbose=verbose)
    return landmarks, D, which


def _inside(components: DistributedComponents, order: RowOrder, landmarks: IntArray) -> IntArray:
    """The landmarks in the largest component."""
    of_part = delayed(_members)
    parts = zip(order.rows, components.inside, strict=True)
    found = compute([of_part(*part, landmarks) for part in parts], "connected components")
    return np.sort(np.concatenate(found))


@dataclass(frozen=True, eq=False)
class _Posing:
    """Fits the model of the kept rows to their known distances; runs on a worker."""

    model: Isomap
    n_components: int
    landmarks: IntArray
    n_neighbors: int
    metric: str
    names: Array | None
    has_all: bool
    seed: int

    @classmethod
    def of(
        cls,
        model: Isomap,
        n_components: int,
        landmarks: IntArray,
        graph: DistributedGraph,
        drawn: Drawn,
    ) -> _Posing:
        about = graph.n_neighbors, graph.metric, graph.names
        has_all = len(drawn.kept) == graph.order.n_samples
        return cls(model, n_components, landmarks, *about, has_all, drawn.seed)

    def __call__(self, kept: KeptRows) -> FittedModel:
        X, targets = kept.points, np.searchsorted(kept.rows, self.landmarks)
        k = min(self.n_neighbors, len(X) - 1)
        graph = NeighborGraph.build(X, k, metric=self.metric, copy=False)
        geodesics = SampledGeodesics(graph, targets, kept.values)
        if self.has_all:
            geodesics = replace(geodesics, slack=np.inf)
        posed = PosedGeodesics(Points(X), [np.arange(len(X))], geodesics)
        chosen, rng = self.model.eigen_solver, np.random.default_rng(self.seed)
        solver = ComponentSolver("auto" if chosen is None else chosen)
        spectra = solver.solve(posed.problems, self.n_components, rng)
        model = clone(self.model)  # a task may run twice
        vars(model).update(self._attributes(X.shape[1], graph, targets))
        with unchecked_dominance():  # it would number the kept rows
            model.adopt(posed, spectra)
        return FittedModel(model, kept.rows, posed.grams[0].extend(spectra.padded[0]))

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


def _members(rows: IntArray, inside: Array, chosen: IntArray) -> IntArray:
    return np.intersect1d(rows[inside], chosen)


def _formula(fitted: tuple[FittedModel, Any]) -> tuple[Nystrom, Any]:
    """How distances become coordinates, and the precision of these."""
    return fitted[0].formula, fitted[0].model.embedding_.dtype


def _coordinates(D: Array, how: tuple[Nystrom, Any]) -> Array:
    """Coordinates of the rows of a part; NaN without paths to the landmarks."""
    formula, dtype = how
    Y = np.full((len(D), formula.dual.shape[1]), np.nan, dtype)
    for block in row_blocks(len(D), D.shape[1], budget=2**17):  # blocks stay in the cache
        here = np.flatnonzero(np.isfinite(D[block]).all(axis=1))
        kernel = gower_kernel(D[block][here], formula.unit)
        Y[block.start + here] = formula.transform(kernel)
    return Y


def _fitted_on(
    estimator: Isomap,
    graph: DistributedGraph,
    which: str,
    landmarks: int,
    kept: int,
    error: float,
) -> str:
    """What was computed of all rows, and what of a sample."""
    recall = "exact" if graph.recall == 1 else f"recall {graph.recall:.3f} on a sample"
    all_kept = kept == graph.order.n_samples
    placing = "" if all_kept else f", with an error of {100 * error:.2g} % of the size of the map"
    unsearched = "; short circuits were not searched for"
    return (
        f"{which}, by shortest paths along their neighbor graph ({recall}) to {landmarks} random "
        f"landmarks; {kept} rows place new ones{placing}"
        + (unsearched if estimator.short_circuits == "warn" else "")
    )
