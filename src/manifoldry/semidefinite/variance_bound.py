"""Upper bounds on the variance, from the dual of maximum variance unfolding."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from manifoldry.semidefinite.edge_lengths import EdgeLengths
from manifoldry.util.typing import Array, IntArray

if TYPE_CHECKING:
    from manifoldry.semidefinite.unfolding_problem import SmallestEigenpairs, UnfoldingProblem


@dataclass(frozen=True, eq=False)
class VarianceBound:
    """An upper bound on the variance of all feasible maps, and the multipliers u that prove it.

    Let L be the graph Laplacian with edge weights v·u/scale, where v is `variance_per_edge`, and λ
    its smallest eigenvalue orthogonal to constants, relative to the multiplicities. Every feasible
    map has variance ≤ v·Σ(u·squared length/scale + h(u))/λ, if λ > 0 and, where edges may only
    shrink, no multiplier is negative. With slack this bounds the variance minus the cost of slack.
    """

    value: float
    multipliers: Array

    @classmethod
    def of(
        cls,
        problem: "UnfoldingProblem",
        multipliers: Array,
        variance_per_edge: float,
        rng: np.random.Generator,
        *,
        n_eigenpairs: int = 12,
        rounds: int = 60,
        enough: float = 0.999,
    ) -> "VarianceBound":
        """The lowest bound found near given multipliers.

        Before the method of multipliers has converged, L has some eigenvalues below one, most of
        them with eigenvectors around few points. Each of at most `rounds` rounds computes
        `n_eigenpairs` of them and raises the multipliers of the edges in proportion to their effect
        on these eigenvalues, until λ is at least `enough`; a larger λ hardly changes the bound.
        """
        best = cls(np.inf, multipliers)
        scales = problem.edges.scales
        multipliers = (
            problem.raise_weights(variance_per_edge * multipliers / scales)
            * scales
            / variance_per_edge
        )
        for _ in range(rounds):
            lowest = problem.smallest_eigenpairs(
                variance_per_edge * multipliers / scales, n_eigenpairs, rng
            )
            smallest = float(lowest.values[0]) - lowest.error
            if smallest > 0:
                value = variance_per_edge * dual_value(problem, multipliers / smallest)
                best = min(best, cls(value, multipliers / smallest), key=lambda bound: bound.value)
            if smallest >= enough:
                break
            multipliers = multipliers + _missing_multipliers(problem, lowest, variance_per_edge)
        return best


def dual_value(problem: "UnfoldingProblem", multipliers: Array) -> float:
    """The bound in units of `variance_per_edge`, for multipliers scaled to λ = 1."""
    edges = problem.edges
    return float(
        (
            multipliers * edges.squares / edges.scales
            + problem.penalized_support_function(multipliers, problem.interval)
        ).sum()
    )


def _missing_multipliers(
    problem: "UnfoldingProblem", lowest: "SmallestEigenpairs", variance_per_edge: float
) -> Array:
    """Increase of the multipliers that lifts eigenvalues below one to about one.

    It is distributed over the edges in proportion to their effect on the eigenvalue.
    """
    low = lowest.values < 1
    steps = problem.edge_vectors(lowest.vectors[:, low])
    effects = (variance_per_edge / problem.edges.scales)[:, None] * steps**2
    return np.asarray(effects @ ((1 - lowest.values[low]) / (effects**2).sum(axis=0)))


def raise_weights_locally(
    edges: EdgeLengths,
    multiplicity: Array,
    weights: Array,
    *,
    n_neighbors: int = 12,
    sweeps: int = 8,
    threshold: float = -0.1,
) -> Array:
    """Raise edge weights until their Laplacian is nearly nonnegative on small neighborhoods.

    Each sweep computes the smallest eigenvalue of the Laplacian, relative to the multiplicities,
    restricted to every point and its `n_neighbors` nearest. Where it is below `threshold` and a
    local minimum, the weights are raised along its eigenvector. The threshold is negative because
    constants have eigenvalue zero whatever the weights are.
    """
    members = edges.nearest(n_neighbors)
    root = 1 / np.sqrt(multiplicity)
    for _ in range(sweeps):
        L = sparse.diags_array(root) @ edges.laplacian(weights) @ sparse.diags_array(root)
        candidates = _ends_of_negative_edges(edges, weights)
        rows, values, vectors = _lowest_neighborhoods(
            sparse.csr_array(L), members, candidates, threshold
        )
        if len(rows) == 0:
            break
        V = _columns(vectors * root[members[rows]], members[rows], edges.n)
        effects = sparse.csr_array(edges.incidence @ V)
        effects.data **= 2
        weights = weights + effects @ ((1 - values) / np.asarray((effects**2).sum(axis=0)).ravel())
    return weights


def _ends_of_negative_edges(edges: EdgeLengths, weights: Array) -> IntArray:
    """Points with an edge of negative weight; elsewhere the Laplacian is nonnegative."""
    return np.unique(edges.ends[weights < 0])


def _lowest_neighborhoods(
    L: sparse.csr_array, members: IntArray, rows: IntArray, threshold: float
) -> tuple[IntArray, Array, Array]:
    """Points of `rows` whose neighborhood has an eigenvalue below `threshold`.

    Only points whose eigenvalue is the smallest in their neighborhood are kept. Also returns these
    eigenvalues, and their eigenvectors on the neighborhoods.
    """
    near = members[rows]
    if len(rows) == 0:
        return rows, np.empty(0), np.empty(near.shape)
    k = near.shape[1]
    a, b = np.repeat(near, k, axis=1), np.tile(near, k)
    blocks = np.asarray(L[a.ravel(), b.ravel()]).reshape(-1, k, k)
    empty = near == near[:, :1]
    empty[:, 0] = False
    blocks[empty[:, :, None] | empty[:, None, :]] = 0.0
    blocks[*np.nonzero(empty), np.nonzero(empty)[1]] = 1e9  # far above all other eigenvalues
    values, vectors = np.linalg.eigh(blocks)
    everywhere = np.full(len(members), np.inf)
    everywhere[rows] = values[:, 0]
    chosen = (values[:, 0] < threshold) & (values[:, 0] <= everywhere[near].min(axis=1))
    return rows[chosen], values[chosen, 0], vectors[chosen, :, 0]


def _columns(values: Array, rows: IntArray, n: int) -> sparse.csc_array:
    """Sparse (n, count) matrix; column i has the entries ``values[i]`` in the rows ``rows[i]``."""
    count, k = values.shape
    entries = (values.ravel(), (rows.ravel(), np.repeat(np.arange(count), k)))
    return sparse.csc_array(sparse.coo_array(entries, shape=(n, count)))
