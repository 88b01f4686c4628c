"""Estimators on a neighbour graph: reading it, and embedding its components."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.base.piecewise import PiecewiseEmbedder
from manifoldry.eigen import SpectralProblem, Spectrum
from manifoldry.exceptions import RankWarning
from manifoldry.neighbors.disconnected import GRAPH, VANISHING_WEIGHTS, Cause
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.warn import warn

# Coupling below this share of both ends' diagonal entries is lost in the operator's rounding.
_NEGLIGIBLE = 1e-14


class GraphEmbedder(PiecewiseEmbedder, SpectralEmbedder):
    """Base of the estimators that see the data only through their neighbour graph.

    Attributes
    ----------
    search_ : str
        How neighbours were found, and why so; how many of them, where not all.
    """

    # What falls apart where the graph does not.
    _weak_link: Cause = VANISHING_WEIGHTS

    def _cause(self, labels: IntArray) -> Cause:
        """What fell apart: the graph itself, or only the weights on it."""
        # A weight or two may vanish in any graph: what made most of the pieces is the cause.
        if labels.max() + 1 > 2 * self._n_graph_components - 1:
            return self._weak_link
        has_radius = "radius" in self.get_params(deep=False)
        return GRAPH if has_radius else GRAPH._replace(remedy="raise n_neighbors")

    def _solve(self, problem: SpectralProblem) -> Spectrum:
        """Solve for every piece by itself.

        The result is the spectrum of the largest, with the eigenvectors of all among its vectors;
        the eigenvalues of all, (n_pieces, n_components), are kept for the extension.
        """
        labels = coupled_components(problem.operator)
        if labels.max() == problem.n - 1:
            raise ValueError(no_neighbors(problem.n))
        pieces = self._policy.pieces(labels, self._cause(labels))
        self._label(pieces, problem.n)
        if len(pieces[0]) == problem.n:
            spectrum = super()._solve(problem)
            self._piece_values = spectrum.values[None, :]
            return spectrum
        return self._solve_pieces(problem, pieces)

    def _solve_pieces(self, problem: SpectralProblem, pieces: list[IntArray]) -> Spectrum:
        if len(pieces[0]) <= self.n_components_:
            warn(
                f"the largest component has {len(pieces[0])} points and so "
                f"{len(pieces[0]) - 1} coordinates; the others of n_components="
                f"{self.n_components_} are zero. Raise n_neighbors to connect the components",
                RankWarning,
            )
        vectors = np.zeros((problem.n, self.n_components_))
        self._piece_values = np.zeros((len(pieces), self.n_components_))
        for number, rows in reversed(list(enumerate(pieces))):  # the largest piece comes last
            k = min(self.n_components_, len(rows) - 1)
            if k > 0:
                spectrum = self._pairs(problem.restrict(rows), k)
                vectors[rows, :k], self._piece_values[number, :k] = (
                    spectrum.vectors,
                    spectrum.values,
                )
        padding = (0, self.n_components_ - spectrum.k)
        return replace(
            spectrum,
            vectors=vectors,
            values=self._piece_values[0],
            residuals=np.pad(spectrum.residuals, padding),
            gaps=np.pad(spectrum.gaps, padding),
        )

    def _coordinates(self, data: Any, problem: SpectralProblem, spectrum: Spectrum) -> Array:
        return self._lay_out(data, super()._coordinates(data, problem, spectrum))


def with_training_rows(rows: Any, known: IntArray, K: Any) -> sparse.csr_array:
    """Kernel rows, but for those `known` to be training points the ones of the matrix `K`."""
    old = np.flatnonzero(known >= 0)
    which = sparse.csr_array((np.ones(len(old)), (old, known[old])), shape=(len(known), K.shape[0]))
    return sparse.csr_array(sparse.diags_array((known < 0).astype(float)) @ rows + which @ K)


def no_neighbors(n: int) -> str:
    """What to say of a graph without an edge."""
    return (
        f"no two of the {n} points are joined by a positive weight; raise radius or n_neighbors, "
        "or lower gamma"
    )


def all_coincide(n: int, raises: str = "n_neighbors") -> str:
    """What to say of a graph all of whose edges have no length; what `raises` adds neighbours."""
    return (
        f"each of the {n} rows coincides with all its neighbours, so the graph says nothing about "
        f"their places; drop duplicated rows or raise {raises}"
    )


def coupled_components(A: Any) -> IntArray:
    """Component of every row of a symmetric operator; couplings lost in rounding do not count."""
    if isinstance(A, np.ndarray):
        return _dense_components(A)
    A = sparse.coo_array(A)
    diagonal = np.abs(A.diagonal())
    strong = np.abs(A.data) > _NEGLIGIBLE * np.sqrt(diagonal[A.row] * diagonal[A.col])
    pattern = sparse.coo_array((A.data[strong], (A.row[strong], A.col[strong])), shape=A.shape)
    labels: IntArray = connected_components(pattern, directed=False)[1]
    return labels


def _dense_components(A: Array) -> IntArray:
    """The same for a dense operator, in which mostly everything is coupled with everything."""
    reached = np.zeros(len(A), dtype=bool)
    root = np.sqrt(np.abs(A.diagonal()))
    front = np.array([0])
    while len(front):
        reached[front] = True
        strong = np.abs(A[front]) > _NEGLIGIBLE * root[front, None] * root
        front = np.flatnonzero(strong.any(axis=0) & ~reached)
    if reached.all():
        return np.zeros(len(A), dtype=np.intp)
    return coupled_components(sparse.coo_array(A))
