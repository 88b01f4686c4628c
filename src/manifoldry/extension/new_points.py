"""Extension of iterative methods: minimize the objective of each new point separately."""

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
    """Coordinates of new points, and the convergence of their searches."""

    positions: Array  # (n_new, d)
    values: Array  # (n_new,): objective at the positions
    gradients: Array  # (n_new, d): gradient at the positions
    converged: NDArray[np.bool_]
    # Start of the best search: 0 for the weighted mean of the neighbors, j ≤ n_starts for the j-th
    # neighbor, beyond n_starts for positions outside the embedding.
    start: IntArray
    n_iter: IntArray


@dataclass(frozen=True, eq=False)
class NewPointOptimizer:
    """Minimize the objective of each new point separately, with the training embedding fixed.

    Searches start from the affinity-weighted mean of the neighbors' positions and from the
    positions of the nearest neighbors; the best result is kept. A row of the result does not
    depend on the other rows.

    Parameters
    ----------
    Y : array of shape (n_train, d)
        The training embedding.
    problem : NewPointTerms
        Objective of a new point.
    n_starts : int, default=1
        Number of nearest neighbors whose positions are used as starts.
    outside : bool, default=False
        Whether to start from positions outside the embedding too. With the unnormalized repulsion
        of the elastic embedding, new points unlike all others belong there, but the repulsion is a
        barrier that searches from the neighbors cannot cross.
    gap : float, default=1.0
        Distance of these positions from the embedding; the width of the kernel is one.
    axes : int, default=2
        Number of principal axes along which these positions are chosen.

    Examples
    --------
    A new point with affinities to the first two of four points, for symmetric SNE:

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
        """Coordinates of new points with affinities `P`, (n_new, n_train).

        Rows of `P` sum to about one; `repulsion_weights`, (n_new, n_train), are one by default.
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
                f"affinities have {P.shape[1]} columns and the embedding has {len(self.Y)} points; "
                "pass one column for each point"
            )
        for what, A in (("affinities", P.data), ("repulsion weights", repulsion_weights)):
            if A is not None and not (np.isfinite(A).all() and (A >= 0).all()):
                raise ValueError(
                    f"{what} of new points are between {A.min()} and {A.max()} and must be finite "
                    "and not negative; check the scale of X"
                )
        isolated = int((P.sum(axis=1) == 0).sum())
        if isolated:
            raise ValueError(
                f"{isolated} rows have no affinity to any training point, so they have no "
                "coordinates; increase perplexity or n_neighbors, or remove these rows"
            )

    def _starts(self, objective: NewPointObjective) -> tuple[Array, Array]:
        """Initial positions (number of starts, n_new, d), and the length scale of each search.

        The scale is the spread of the neighbors, at least the kernel width one. Embeddings by t-SNE
        of few points may be thousands of kernel widths large.
        """
        indices, P = objective.neighbors
        P = P / objective.total_affinity[:, None]
        Y = objective.Y[indices]  # (n_new, k, d)
        mean = np.einsum("nk,nkd->nd", P, Y)
        spread = np.sqrt(np.einsum("nk,nkd->n", P, (Y - mean[:, None]) ** 2))
        nearest = np.argsort(-P, axis=1, kind="stable")[:, : self.n_starts]
        positions = np.take_along_axis(Y, nearest[:, :, None], axis=1)
        known = np.take_along_axis(P, nearest, axis=1) > 0  # a row may have fewer neighbors
        positions = np.where(known[:, :, None], positions, mean[:, None])
        beyond = self._beyond(mean) if self.outside else []
        starts = np.stack([mean, *positions.transpose(1, 0, 2), *beyond])
        return starts, np.maximum(spread, 1.0)

    def _beyond(self, Z: Array) -> list[Array]:
        """Positions `Z` moved out of the embedding along its principal axes, in both directions."""
        Y = self._positions
        axes = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[2][: self.axes]
        along = [(axis, np.einsum("nd,d->n", Y, axis)) for axis in axes]
        sides = [(axis, b) for axis, y in along for b in (y.min() - self.gap, y.max() + self.gap)]
        return [Z + (b - np.einsum("nd,d->n", Z, axis))[:, None] * axis for axis, b in sides]


@dataclass(frozen=True, eq=False)
class OptimizedExtension(Extension):
    """Coordinates of new points by minimizing their objectives, in blocks of rows.

    Parameters
    ----------
    optimizer : NewPointOptimizer
        Minimizes the objectives, given affinities.
    affinity : EquivalentKernel
        Its ``rows(X)`` are the affinities of new points.
    repulsion : Repulsion, default=None
        Its ``rows(X)`` are the repulsion weights, dense; one by default.
    numbers_per_row : int, default=4096
        Estimated number of values that a new point needs in memory for its neighbors.
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
    """Row of the smallest value in every column; the first one if values are equal up to `tie`.

    The relative tolerance `tie` keeps rounding from choosing among equal values.
    """
    best = np.zeros(values.shape[1], dtype=np.intp)
    columns = np.arange(values.shape[1])
    for row in range(1, len(values)):
        current = values[best, columns]
        best[values[row] < current - tie * (1 + np.abs(current))] = row
    return best
