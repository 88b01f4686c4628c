"""Maps from which an unfolding begins."""

import warnings
from typing import Any

import numpy as np

from manifoldry.base.input import Input
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.iterative.start import check_init, starting_map
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.optimize.interior_point import svec, svec_outer
from manifoldry.optimize.semidefinite import SemidefiniteQuadratic
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
    """A map of the points `rows`, in any unit."""
    init = check_init(init, (graph.n_query, n_components), OPTIONS)
    if isinstance(init, str) and init == "isomap":
        Y = _isomap(graph, n_components)
    elif isinstance(init, str) and init == "laplacian":
        Y = _mixture(graph, n_components, problem, rows)
    elif isinstance(init, np.ndarray):
        Y = init
    else:
        Y = starting_map(init, data, graph, n_components, rng)
    return np.nan_to_num(Y[rows])


class StartingIsomap(Isomap):
    """Isomap as a start, of whose short circuits nobody would see the warning."""

    def _inspect(self, graph: NeighborGraph) -> None:
        """Look for nothing."""


def _isomap(graph: NeighborGraph, n_components: int, n_landmarks: int = 50) -> Array:
    few = min(max(n_landmarks, n_components + 1), graph.n_query)
    model = StartingIsomap(n_components, n_landmarks=few, disconnected="separate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)  # a start need not be a good map
        return np.asarray(model.fit(graph).embedding_, dtype=np.float64)


def _mixture(
    graph: NeighborGraph,
    n_components: int,
    problem: FreeUnfolding,
    rows: IntArray,
    n_eigenvectors: int = 10,  # twice as many take sixty times as long
    slack: float = 0.01,  # in which they are unfolded: mixtures keep no length exactly
) -> Array:
    """The widest mixture of a Laplacian's smoothest eigenvectors that keeps lengths softly.

    In P = AAᵀ, where A are the weights of the mixture, both lengths and variance are linear, so
    that this is a small convex problem (graph-Laplacian-regularized unfolding).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)  # a start need not be a good map
        k = min(n_eigenvectors, graph.n_query - 1)
        Q = np.asarray(LaplacianEigenmaps(k).fit(graph).embedding_, dtype=np.float64)
    functions, edges = problem.centered(np.nan_to_num(Q[rows])), problem.edges
    U = svec_outer(edges.edge_vectors(functions)) / edges.scales[:, None]
    target = edges.squares / edges.scales
    spread = svec(functions.T @ problem.spread(functions))
    P = SemidefiniteQuadratic(U.T @ U, U.T @ target).solve().P  # lengths alone, for the scale
    variance_per_edge = float(spread @ svec(P)) / edges.count
    if variance_per_edge > 0:
        P = (
            SemidefiniteQuadratic(U.T @ U, U.T @ target + slack / variance_per_edge * spread)
            .solve()
            .P
        )
    values, vectors = np.linalg.eigh(P)
    A = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :n_components]
    full = np.zeros((graph.n_query, n_components))
    full[rows, : A.shape[1]] = functions @ A
    return full
