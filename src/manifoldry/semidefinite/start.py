"""Initial maps of maximum variance unfolding."""

from typing import Any

import numpy as np

from manifoldry.base.input import Input
from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.iterative.start import check_init, is_fitted, map_of_model, starting_map
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.optimize.interior_point import svec, svec_outer
from manifoldry.optimize.semidefinite_quadratic import SemidefiniteQuadratic
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding
from manifoldry.spectral.isomap import Isomap
from manifoldry.spectral.laplacian_eigenmaps import LaplacianEigenmaps
from manifoldry.util.typing import Array, IntArray

OPTIONS = ("isomap", "laplacian", "spectral", "pca", "random")


def unfolding_start(
    init: Any,
    data: Input,
    graph: NeighborGraph,
    n_components: int,
    problem: FreeUnfolding,
    rows: IntArray,
    rng: np.random.Generator,
) -> Array:
    """Initial map of the points `rows`, at any scale."""
    init = check_init(init, (graph.n_query, n_components), OPTIONS)
    if isinstance(init, str) and init == "isomap":
        Y = _isomap(graph, n_components)
    elif isinstance(init, str) and init == "laplacian":
        Y = _laplacian_combination(graph, n_components, problem, rows)
    elif isinstance(init, np.ndarray):
        Y = init
    elif is_fitted(init):
        Y = map_of_model(init, data, n_components)
    else:
        Y = starting_map(init, data, graph, n_components, rng)
    return np.nan_to_num(Y[rows])


def _isomap(graph: NeighborGraph, n_components: int, n_landmarks: int = 50) -> Array:
    few = min(max(n_landmarks, n_components + 1), graph.n_query)
    model = Isomap(n_components, n_landmarks=few, disconnected="separate", short_circuits="ignore")
    with ignoring(ManifoldryWarning):  # an initial map need not be good
        return np.asarray(model.fit(graph).embedding_, dtype=np.float64)


def _laplacian_combination(
    graph: NeighborGraph,
    n_components: int,
    problem: FreeUnfolding,
    rows: IntArray,
    n_eigenvectors: int = 10,  # 20 take sixty times as long
    slack: float = 0.01,  # combinations of few eigenvectors cannot keep all lengths
) -> Array:
    """Combination of smooth Laplacian eigenvectors with large variance and soft edge lengths.

    With coefficients A, squared lengths and variance are linear in P = AAᵀ, so that this is a small
    convex problem (graph-Laplacian-regularized unfolding).
    """
    with ignoring(ManifoldryWarning):  # an initial map need not be good
        k = min(n_eigenvectors, graph.n_query - 1)
        Q = np.asarray(LaplacianEigenmaps(k).fit(graph).embedding_, dtype=np.float64)
    functions, edges = problem.centered(np.nan_to_num(Q[rows])), problem.edges
    U = svec_outer(edges.edge_vectors(functions)) / edges.scales[:, None]
    target = edges.squares / edges.scales
    covariance = svec(functions.T @ problem.half_variance_gradient(functions))
    P = (
        SemidefiniteQuadratic(U.T @ U, U.T @ target).solve().P
    )  # fits lengths only, to set the scale
    variance_per_edge = float(covariance @ svec(P)) / edges.count
    if variance_per_edge > 0:
        P = (
            SemidefiniteQuadratic(U.T @ U, U.T @ target + slack / variance_per_edge * covariance)
            .solve()
            .P
        )
    values, vectors = np.linalg.eigh(P)
    A = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :n_components]
    full = np.zeros((graph.n_query, n_components))
    full[rows, : A.shape[1]] = functions @ A
    return full
