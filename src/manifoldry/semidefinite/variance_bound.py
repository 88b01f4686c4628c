"""How much variance a map could have at most: the dual of maximum variance unfolding."""

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
    """A number that the variance of no map can exceed, and the multipliers that prove it.

    Let L be the Laplacian of multipliers/scale, times `variance_per_edge`, and λ its smallest eigenvalue beside
    the constants, relative to the masses. Then variance ≤ share·Σ(multipliers·square/scale + h)/λ for
    every map that meets the constraints, if λ > 0 and, where edges may only shrink, no multipliers is
    negative. With slack it is a bound of the variance less the price of what edges give way.
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
        """The best bound near given multipliers.

        Tensions of an unfinished search leave some directions, most of them around few points,
        in which λ is below one or negative. There multipliers is added, in proportion to how much
        every edge does about it, until none is left: for at most so many `rounds`, with `n_eigenpairs`
        eigenvectors in each, until λ is `enough`, from which more hardly lowers the bound.
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
    """Bound of the variance, as a multiple of `variance_per_edge`, if multipliers have λ = 1."""
    edges = problem.edges
    return float(
        (
            multipliers * edges.squares / edges.scales
            + problem.support(multipliers, problem.interval)
        ).sum()
    )


def _missing_multipliers(
    problem: "UnfoldingProblem", lowest: "SmallestEigenpairs", variance_per_edge: float
) -> Array:
    """Tension that lifts eigenvalues below one to one, spread by what every edge does about it."""
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
    """Edge weights whose Laplacian is not negative on functions around single points.

    Cheap, and all over the map at once: in a few `sweeps` weights are raised along the lowest
    eigenvector of the Laplacian in the neighborhood of every point, with `n_neighbors` others, if
    its eigenvalue, relative to the masses, is `threshold` (constants, which no weight lifts, have
    zero) and below those nearby.
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
    """Points with an edge of negative weight: around others there is nothing to mend."""
    return np.unique(edges.ends[weights < 0])


def _lowest_neighborhoods(
    L: sparse.csr_array, members: IntArray, rows: IntArray, threshold: float
) -> tuple[IntArray, Array, Array]:
    """Those of some points whose surroundings are too low, and lower than those of neighbors.

    Also the eigenvalue and its vector on the neighborhood.
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
    blocks[*np.nonzero(empty), np.nonzero(empty)[1]] = 1e9  # far above: nobody takes that place
    values, vectors = np.linalg.eigh(blocks)
    everywhere = np.full(len(members), np.inf)
    everywhere[rows] = values[:, 0]
    chosen = (values[:, 0] < threshold) & (values[:, 0] <= everywhere[near].min(axis=1))
    return rows[chosen], values[chosen, 0], vectors[chosen, :, 0]


def _columns(values: Array, rows: IntArray, n: int) -> sparse.csc_array:
    """A sparse matrix with one column for every row of `values`."""
    count, k = values.shape
    entries = (values.ravel(), (rows.ravel(), np.repeat(np.arange(count), k)))
    return sparse.csc_array(sparse.coo_array(entries, shape=(n, count)))
