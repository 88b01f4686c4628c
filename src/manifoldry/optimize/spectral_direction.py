"""The filter that inverts the attraction's curvature as a whole."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.optimize.definite_inverse import AutoInverse, DefiniteInverse
from manifoldry.optimize.filter import Filter, FilterOperator
from manifoldry.util.arrays import centered, on_host
from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class SpectralDirection(Filter):
    """(4L + μI)⁻¹, with L the Laplacian of the attraction: Newton's step without repulsion.

    Whole regions of the map move at once, which takes fixed points such as :class:`Jacobi` very
    many steps (Vladymyrov and Carreira-Perpiñán, 2012). The matrix does not change, so that it is
    factorized once, or else solved by conjugate gradients; ask the bound filter for its `reason`.

    Components of the graph that nothing holds together, or next to nothing, have no curvature to
    divide by, and μ alone bounds their steps: they cost a few backtracks while they move apart.

    Parameters
    ----------
    n_neighbors : int, default=None
        Keep only the strongest attractions of every point; all by default, since factors of graphs
        that fill in are not made in the first place.
    shift : float, default=1e-6
        μ, as a fraction of four times the mean degree. On the elastic embedding of lines, rolls,
        clusters, separate components and isolated points it is the best compromise
        (docs/studies/spectral_direction.py): 1e-10 spends its first tens of steps on backtracking
        where there are components, and from 1e-4 on they end at up to three times the value.
    inverse : AutoInverse, default=AutoInverse()
        How to solve with the matrix.

    Examples
    --------
    >>> from manifoldry.optimize.spectral_direction import SpectralDirection
    >>> SpectralDirection(n_neighbors=7).shift
    1e-06
    """

    n_neighbors: int | None = None
    shift: float = 1e-6
    inverse: AutoInverse = field(default=AutoInverse())
    newton_like = True

    def __post_init__(self) -> None:
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
        check_positive("shift", self.shift)

    def operator_for(self, objective: Objective) -> FilterOperator:
        W = sparse.csr_array(objective.attraction, dtype=np.float64)
        if self.n_neighbors is not None:
            W = strongest_edges(W, self.n_neighbors)
        degree = np.asarray(W.sum(axis=1)).ravel()
        unit = float(degree.mean()) or 1.0  # in which the matrix has no units
        L = sparse.diags_array(degree / unit) - W / unit
        A = sparse.csr_array(L + self.shift * sparse.eye_array(W.shape[0]))
        return _InverseOperator(self.inverse.invert(A), 4 * unit)

    def cached(self) -> Filter:
        return _CachedFilter(self)


class _CachedFilter(Filter):
    """A filter that is bound once to all objectives in a row whose attraction is the same."""

    newton_like = True

    def __init__(self, filter: SpectralDirection) -> None:
        self.filter = filter
        self.last: tuple[sparse.csr_array, FilterOperator] | None = None

    def operator_for(self, objective: Objective) -> FilterOperator:
        W = objective.attraction
        if self.last is None or self.last[0] is not W:
            self.last = W, self.filter.operator_for(objective)
        return self.last[1]


class _InverseOperator(FilterOperator):
    newton_like = columnwise = True

    def __init__(self, inverse: DefiniteInverse, unit: float) -> None:
        self._inverse, self._unit = inverse, unit
        self.reason = inverse.reason

    def apply(self, G: Array, Y: Array) -> Array:
        return on_host(self._solved, G)

    def _solved(self, G: Array) -> Array:
        # The constant is an eigenvector whose fraction of the gradient is nothing but rounding.
        return centered(self._inverse.solve(centered(G)) / self._unit)


def strongest_edges(W: sparse.csr_array, k: int) -> sparse.csr_array:
    """Symmetric weights without those that are among the `k` largest of neither end."""
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    order = np.lexsort((-W.data, rows))
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - W.indptr[rows]
    kept = place < k
    shorter = (W.data[kept], (rows[kept], W.indices[kept]))
    S = sparse.csr_array(shorter, shape=W.shape)
    return sparse.csr_array(S.maximum(S.T))
