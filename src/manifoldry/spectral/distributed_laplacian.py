"""The Laplacian of a graph whose rows are on workers, on its largest connected component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from manifoldry.distributed.blocks import largest_entry, row_numbers, taken
from manifoldry.distributed.components import DistributedComponents
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.distributed.options import current_options
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.eigen.distributed import DistributedLobpcg, DistributedProblem, DistributedSpectrum
from manifoldry.extension.laplacian import Normalization
from manifoldry.neighbors.disconnected import GRAPH, DisconnectedPolicy, Disconnection
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.spectral.posed import (
    NEGLIGIBLE,
    VANISHING,
    all_coincide_message,
    no_neighbors_message,
)
from manifoldry.util.typing import Array, IntArray, Matrix


class WeightsInParts(NamedTuple):
    """Symmetric weights between the rows of a graph, and fitted attributes by name."""

    matrix: DistributedMatrix
    attributes: dict[str, Any]


@dataclass(frozen=True, eq=False)
class DistributedLaplacian:
    """The Laplacian of the weights of a graph in parts.

    Parameters
    ----------
    problem : DistributedProblem
        Its eigenproblem on the rows of the largest connected component, without the constant
        solution.
    degree : list of Delayed
        Degrees of these rows, (rows of a part,).
    inside : list of Delayed or None
        For each part, which of its rows are in that component; None if all are.

    See Also
    --------
    manifoldry.LaplacianEigenmaps : its eigenvectors.
    manifoldry.eigen.DistributedLobpcg : computes them.
    """

    problem: DistributedProblem
    degree: list[Any]
    inside: list[Any] | None

    @classmethod
    def of(
        cls,
        weights: DistributedMatrix,
        graph: DistributedGraph,
        normalization: Normalization,
        policy: DisconnectedPolicy,
        zero_weight_cause: Disconnection,
    ) -> DistributedLaplacian:
        """Return the Laplacian on the largest component; the policy says so if there are others.

        Parameters
        ----------
        weights : DistributedMatrix
            Symmetric weights between all rows.
        graph : DistributedGraph
            The graph of the weights.
        normalization : {"rw", "sym", "none"}
            Which Laplacian.
        policy : DisconnectedPolicy
            What to do if there are several components.
        zero_weight_cause : Disconnection
            What the message says if weights of edges vanish.

        Returns
        -------
        DistributedLaplacian
            The Laplacian.
        """
        bounds, degree = graph.order.bounds, persist(map(delayed(_row_sums), weights.blocks))
        largest = max(compute([delayed(_largest)(part) for part in degree], "degrees"))
        least = 0.0 if normalization == "sym" else VANISHING * largest
        found = _strong_components(weights, degree, least)
        if found.count == graph.n_samples:
            raise ValueError(no_neighbors_message(found.count))
        inside = None
        if found.count > 1:
            policy.check_largest(found.sizes, found.count, _cause(found, graph, zero_weight_cause))
            inside, kept = found.inside, delayed(taken)
            weights, bounds = _restricted(weights, bounds, inside)
            degree = persist(kept(*each) for each in zip(degree, inside, strict=True))
        problem = _problem(weights, bounds, degree, normalization, largest)
        return cls(problem, degree, inside)

    @property
    def n(self) -> int:
        """Number of rows of the component."""
        return self.problem.n

    def volume(self) -> float:
        """Return the sum of all degrees."""
        return float(sum(compute([delayed(_sum)(part) for part in self.degree], "degrees")))

    def solve(self, k: int, rng: np.random.Generator, eigen_solver: Any) -> DistributedSpectrum:
        """Return the k smallest eigenvalues after zero, and their eigenvectors.

        Parameters
        ----------
        k : int
            Number of eigenpairs.
        rng : numpy.random.Generator
            Source of start vectors.
        eigen_solver : DistributedLobpcg, "auto" or None
            The solver.

        Returns
        -------
        DistributedSpectrum
            The eigenpairs.
        """
        if k >= self.n:
            raise ValueError(
                f"n_components={k} must be less than the {self.n} points of the largest connected "
                f"component; pass n_components={self.n - 1} or fewer, or raise n_neighbors"
            )
        solver = DistributedLobpcg() if eigen_solver in (None, "auto") else eigen_solver
        found: DistributedSpectrum = solver.solve(
            self.problem, k, rng, verbose=current_options().verbose
        )
        return found

    def on_all_rows(self, parts: Sequence[Any]) -> list[Any]:
        """Return values of the rows of the component as those of all rows, NaN at the others.

        Parameters
        ----------
        parts : list of Delayed
            Arrays of shape (rows of a part in the component, any number).

        Returns
        -------
        list of Delayed
            Arrays of shape (rows of a part, any number).
        """
        if self.inside is None:
            return list(parts)
        spread = delayed(_spread)
        return [spread(part, inside) for part, inside in zip(parts, self.inside, strict=True)]


def longest_edge(edges: Sequence[Any], n: int) -> float:
    """Return the largest length of edges in parts; ValueError if all edges have length zero."""
    longest = largest_entry(edges, "lengths of edges")
    if longest == 0:
        raise ValueError(all_coincide_message(n))
    return longest


def _strong_components(
    weights: DistributedMatrix, degree: Sequence[Any], least: float
) -> DistributedComponents:
    """Components of the weights that are not negligible, nor at most `least`."""
    keep = delayed(partial(_strong, least=least))
    ends = zip(weights.blocks, weights.exchange.gathered(degree), strict=True)
    blocks = persist(keep(block, degrees) for block, degrees in ends)
    return DistributedComponents.of(DistributedMatrix(blocks, weights.exchange))


def _problem(
    weights: DistributedMatrix,
    bounds: IntArray,
    degree: list[Any],
    normalization: Normalization,
    largest_degree: float,
) -> DistributedProblem:
    """The eigenproblem in standard form, without its constant solution."""
    plain = normalization == "none"
    form, constant = delayed(_unnormalized if plain else _normalized), _ones if plain else _root
    ends = zip(weights.blocks, weights.exchange.gathered(degree), strict=True)
    blocks = persist(form(block, degrees) for block, degrees in ends)
    return DistributedProblem(
        DistributedMatrix(blocks, weights.exchange),
        bounds,
        2 * largest_degree if plain else 2.0,
        deflate=persist(map(delayed(constant), degree)),
        mass=degree if normalization == "rw" else None,
    )


def _cause(
    found: DistributedComponents, graph: DistributedGraph, zero_weight_cause: Disconnection
) -> Disconnection:
    """The graph, or the weights if most of the components are connected in the graph."""
    edges = DistributedMatrix.of(graph.edges, graph.order.bounds)
    of_graph = DistributedComponents.of(edges).count
    weak = found.count > 2 * of_graph - 1
    return zero_weight_cause if weak else GRAPH._replace(remedy="raise n_neighbors")


def _restricted(
    matrix: DistributedMatrix, bounds: IntArray, inside: Sequence[Any]
) -> tuple[DistributedMatrix, IntArray]:
    """The matrix on some rows, which get consecutive positions, and their bounds."""
    counts = compute([delayed(np.count_nonzero)(part) for part in inside], "connected components")
    kept = np.cumsum([0, *counts])
    positions = persist(
        delayed(_positions)(part, int(start)) for part, start in zip(inside, kept[:-1], strict=True)
    )
    ends = zip(matrix.blocks, matrix.exchange.gathered(positions), strict=True)
    blocks = persist(delayed(_between)(block, known, int(kept[-1])) for block, known in ends)
    return DistributedMatrix.of(blocks, kept), kept


def _row_sums(block: Matrix) -> Array:
    return np.asarray(block.sum(axis=1)).ravel()


def _largest(values: Array) -> float:
    return float(values.max(initial=0.0))


def _sum(values: Array) -> float:
    return float(values.sum())


def _ones(values: Array) -> Array:
    return np.ones((len(values), 1))


def _root(values: Array) -> Array:
    return np.sqrt(values)[:, None]


def _strong(block: Matrix, degree: Array, *, least: float) -> Matrix:
    """The entries that connect their rows, by the rule of `coupled_components`."""
    root, rows = np.sqrt(degree), row_numbers(block)
    strong = block.data > NEGLIGIBLE * root[rows] * root[block.indices]
    strong &= block.data > least
    return _entries(block, rows, strong)


def _entries(block: Matrix, rows: IntArray, kept: Array) -> Matrix:
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=block.shape[0]))])
    return sparse.csr_array((block.data[kept], block.indices[kept], indptr), shape=block.shape)


def _positions(inside: Array, start: int) -> IntArray:
    """New positions of the rows that are kept; -1 for others."""
    return np.where(inside, start + np.cumsum(inside) - 1, -1)


def _between(block: Matrix, positions: IntArray, n: int) -> Matrix:
    """The entries between rows that are kept, with columns at their new positions."""
    own = positions[: block.shape[0]] >= 0
    rows, columns = row_numbers(block), positions[block.indices]
    kept = own[rows] & (columns >= 0)
    counts = np.bincount(rows[kept], minlength=block.shape[0])[own]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    shape = (int(np.count_nonzero(own)), n)
    return sparse.csr_array((block.data[kept], columns[kept], indptr), shape=shape)


def _unnormalized(block: Matrix, degree: Array) -> Matrix:
    """D − W."""
    n = block.shape[0]
    return sparse.csr_array(sparse.diags_array(degree[:n], shape=block.shape) - block)


def _normalized(block: Matrix, degree: Array) -> Matrix:
    """D^-½ (D − W) D^-½; the product of both roots is the same number on both sides."""
    L, s = _unnormalized(block, degree), 1 / np.sqrt(degree)
    L.data *= s[row_numbers(L)] * s[L.indices]
    return L


def _spread(values: Array, inside: Array) -> Array:
    out = np.full((len(inside), *values.shape[1:]), np.nan)
    out[inside] = values
    return out
