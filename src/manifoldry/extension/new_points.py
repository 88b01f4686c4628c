"""New points on the map of an iterative method: each finds its place while the map stands still."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.extension.base import EquivalentKernel, Extension, warn_if_not_converged
from manifoldry.extension.new_point_objective import NewPointObjective, minimize_each
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.objectives.pairwise import NewPointTerms
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import canonical, row_blocks


class NewPointSolution(NamedTuple):
    """Places of new points, with evidence."""

    positions: Array  # (n_new, d)
    values: Array  # (n_new,): the objective there
    gradients: Array  # (n_new, d): its gradient, zero but for rounding
    converged: NDArray[np.bool_]
    start: IntArray  # 0: best from the mean of its neighbors' places; j: from that of the j-th;
    # beyond n_starts: from outside the map
    n_iter: IntArray


@dataclass(frozen=True, eq=False)
class NewPointOptimizer:
    """Minimize the objective of each new point by itself, the training map held fixed.

    The search starts from the affinity-weighted mean of the neighbors' places and from the
    places of the nearest neighbors; the best end is kept. A row of the result does not depend
    on the other rows.

    Parameters
    ----------
    Y : array of shape (n_train, d)
        The map.
    problem : NewPointTerms
        What a point more minimizes there, as the objective of the map says it.
    n_starts : int, default=1
        Nearest neighbors whose places are tried.
    outside : bool, default=False
        Try places beyond the map's sides too. Where repulsion does not saturate, as that of
        the elastic embedding, it is a wall between a point's neighbors and the free space
        outside, where points unlike all others belong.
    gap : float, default=1.0
        From the map to places outside: the width of the kernel.
    axes : int, default=2
        Longest axes of the map along which places outside are looked for.

    Examples
    --------
    A new point like the first two of four, by symmetric SNE's objective:

    >>> import numpy as np
    >>> from manifoldry.objectives import symmetric_sne
    >>> Y = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> objective = symmetric_sne((1 - np.eye(4)) / 12)
    >>> optimizer = NewPointOptimizer(Y, objective.for_new_points(Y))
    >>> optimizer.minimize(np.array([[0.5, 0.5, 0.0, 0.0]])).positions.round(2)
    array([[0.33]])
    """

    Y: Array
    problem: NewPointTerms
    n_starts: int = 1
    outside: bool = False
    gap: float = 1.0
    axes: int = 2

    def minimize(self, P: Matrix, repulsion_weights: Array | None = None) -> NewPointSolution:
        """Places of new points with affinities `P`, (n_new, n_train), which sum to about one.

        `repulsion_weights`, (n_new, n_train), are the weights of repulsion; one by default.
        """
        P = canonical(sparse.csr_array(P, dtype=np.float64))
        self._check(P, repulsion_weights)
        Y = self._positions
        objective = NewPointObjective(Y, P, self.problem, repulsion_weights, self._index)
        starts, scale = self._starts(objective)
        n_starts, n, d = starts.shape
        rows = np.tile(np.arange(n), n_starts)
        ends = minimize_each(objective, starts.reshape(-1, d), rows, scale[rows])
        best = first_minimum(ends.values.reshape(n_starts, n))
        chosen = best * n + np.arange(n)
        return NewPointSolution(
            ends.positions[chosen],
            ends.values[chosen],
            ends.gradients[chosen],
            ends.converged[chosen],
            best,
            ends.n_iter[chosen],
        )

    @cached_property
    def _positions(self) -> Array:
        return np.asarray(self.Y, dtype=np.float64)

    @cached_property
    def _index(self) -> NeighborIndex:
        return choose_index(self._positions)

    def _check(self, P: sparse.csr_array, repulsion_weights: Array | None) -> None:
        if P.shape[1] != len(self.Y):
            raise ValueError(
                f"affinities have {P.shape[1]} columns where the map has {len(self.Y)} points; "
                "pass one column for each"
            )
        for what, A in (("affinities", P.data), ("weights of repulsion", repulsion_weights)):
            if A is not None and not (np.isfinite(A).all() and (A >= 0).all()):
                raise ValueError(
                    f"{what} of new points must be finite and not negative; their smallest and "
                    f"largest are {A.min()} and {A.max()}; check the scale of X"
                )
        alone = int((P.sum(axis=1) == 0).sum())
        if alone:
            raise ValueError(
                f"{alone} of the rows have no affinity to any training point, so they cannot be "
                "placed; raise perplexity or n_neighbors, or leave them out"
            )

    def _starts(self, objective: NewPointObjective) -> tuple[Array, Array]:
        """The neighbors' weighted mean, the places of the nearest, and others if asked for.

        Of shape (number of starts, n_new, d). And how far the neighbors are spread; kernels have a
        length of one, but t-SNE's maps of few points may grow to thousands, where only the ratios
        of distances matter.
        """
        indices, P = objective.neighbors
        P = P / objective.total_affinity[:, None]
        Y = objective.Y[indices]  # (n_new, k, d)
        mean = np.einsum("nk,nkd->nd", P, Y)
        spread = np.sqrt(np.einsum("nk,nkd->n", P, (Y - mean[:, None]) ** 2))
        nearest = np.argsort(-P, axis=1, kind="stable")[:, : self.n_starts]
        places = np.take_along_axis(Y, nearest[:, :, None], axis=1)
        known = np.take_along_axis(P, nearest, axis=1) > 0  # a row may have fewer neighbors
        places = np.where(known[:, :, None], places, mean[:, None])
        beyond = self._beyond(mean) if self.outside else []
        starts = np.stack([mean, *places.transpose(1, 0, 2), *beyond])
        return starts, np.maximum(spread, 1.0)

    def _beyond(self, Z: Array) -> list[Array]:
        """The places `Z` moved out of the map, to either side along its longest axes."""
        Y = self._positions
        axes = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[2][: self.axes]
        along = [(axis, np.einsum("nd,d->n", Y, axis)) for axis in axes]
        sides = [(axis, b) for axis, y in along for b in (y.min() - self.gap, y.max() + self.gap)]
        return [Z + (b - np.einsum("nd,d->n", Z, axis))[:, None] * axis for axis, b in sides]


@dataclass(frozen=True, eq=False)
class OptimizedExtension(Extension):
    """Coordinates of new points on a frozen map, a block of them at a time.

    Parameters
    ----------
    optimizer : NewPointOptimizer
        Where they are placed.
    affinity : EquivalentKernel
        Its ``rows(X)`` are the affinities of new points.
    repulsion : Repulsion, default=None
        Its ``rows(X)`` are the weights of repulsion, dense; one by default.
    numbers_per_row : int, default=4096
        Numbers that a new point may well keep in memory for its neighbors.
    """

    optimizer: NewPointOptimizer
    affinity: EquivalentKernel
    repulsion: Repulsion | None = None
    numbers_per_row: int = 4096

    def transform(self, X: Matrix) -> Array:
        numbers = self.numbers_per_row if self.repulsion is None else len(self.optimizer.Y)
        blocks = row_blocks(X.shape[0], numbers)
        placed = [self._minimize(X[block]) for block in blocks]
        warn_if_not_converged(
            np.concatenate([np.empty(0, bool), *(part.converged for part in placed)])
        )
        none = np.empty((0, self.optimizer.Y.shape[1]))
        return np.concatenate([none, *(part.positions for part in placed)])

    def _minimize(self, X: Matrix) -> NewPointSolution:
        repulsion_weights = None if self.repulsion is None else self.repulsion.rows(X)
        return self.optimizer.minimize(self.affinity.rows(X), repulsion_weights)


def first_minimum(values: Array, tie: float = 1e-9) -> IntArray:
    """Row of the smallest value in every column; a later one only if it is smaller for certain.

    That is by more than the fraction `tie`: else rounding could choose among equals.
    """
    best = np.zeros(values.shape[1], dtype=np.intp)
    columns = np.arange(values.shape[1])
    for row in range(1, len(values)):
        current = values[best, columns]
        best[values[row] < current - tie * (1 + np.abs(current))] = row
    return best
