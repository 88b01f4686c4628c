"""Extension of iterative methods: minimize the objective of each new point separately."""

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import ConvexHull, QhullError

from manifoldry.device import current_device
from manifoldry.exceptions import ExtensionWarning, warn_about_rows
from manifoldry.extension.affinity_rows import AffinityRows
from manifoldry.extension.base import Extension, warn_if_not_converged
from manifoldry.extension.new_point_objective import Minima, NewPointObjective, minimize_each
from manifoldry.extension.on_device import BUDGET, copied_to, fill
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.pairwise import NewPointTerms
from manifoldry.objectives.position_sums import ExactPositionSums, NewWeights, PositionSums
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import canonical, row_blocks


class NewPointSolution(NamedTuple):
    """Coordinates of new points, and the convergence of their searches."""

    positions: Array  # (n_new, d)
    values: Array  # (n_new,): objective at the positions
    gradients: Array  # (n_new, d): gradient at the positions
    converged: NDArray[np.bool_]
    # Start of the best search: 0 for the weighted mean of the neighbors, j ≤ n_starts for the j-th
    # neighbor, beyond n_starts for positions outside the embedding, the best first.
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
    n_outside : int, default=3
        Number of these positions, the best of those tried.
    gap : float, default=1.0
        Least distance of these positions from the embedding; the width of the kernel is one.
    axes : int, default=3
        Number of principal axes among which directions are chosen.
    barrier : float, default=1e12
        Repulsion, relative to the sum of the affinities, above which no search starts inside.
    farthest : float, default=1e6
        Largest distance from the embedding, about which rounding errors become as large as the
        width of the kernel.
    reach : float, default=2.0
        Largest distance from the center of the embedding, in units of its radius or of the width
        of the kernel, if that is larger. It applies to objectives that may have no minimizer: see
        :attr:`~manifoldry.objectives.Normalizer.holds_new_points`.

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
    n_outside: int = 3
    gap: float = 1.0
    axes: int = 3
    barrier: float = 1e12
    farthest: float = 1e6
    reach: float = 2.0

    __getstate__ = state_of_fields

    def minimize(
        self, P: Matrix, repulsion_weights: NewWeights = None, log_scale: Array | None = None
    ) -> NewPointSolution:
        """Coordinates of new points with affinities `P`, (n_new, n_train).

        Affinities in proportion to those of training points, whose rows sum to one on average, are
        the rows of `P` times the exponentials of `log_scale`, (n_new,), which is zero by default;
        `repulsion_weights`, (n_new, n_train) or factored, are one by default.
        """
        P = canonical(sparse.csr_array(P, dtype=np.float64))
        self._check(P, repulsion_weights)
        if log_scale is not None:
            log_scale = self._near_enough(log_scale)
        Y = self._positions
        objective = NewPointObjective(
            Y, P, self.problem, repulsion_weights, log_scale, self._sums()
        )
        starts, scale, centers = self._starts(objective)
        ends = self._search(objective, starts, scale, centers)
        n = P.shape[0]
        best = first_minimum(ends.values.reshape(-1, n))
        chosen = best * n + np.arange(n)
        solution = NewPointSolution(
            ends.positions[chosen],
            ends.values[chosen],
            ends.gradients[chosen],
            ends.converged[chosen],
            best,
            ends.n_iter[chosen],
        )
        if self.problem.normalizer.holds_new_points:
            return solution
        return self._within_reach(objective, solution, starts[0])

    def _search(
        self, objective: NewPointObjective, starts: Array, scale: Array, centers: Array
    ) -> Minima:
        """Search from all starts; values are infinite for searches that were left out.

        Searches from outside the embedding are left out if the attraction alone exceeds, half way
        from the neighbors' mean to the start, the best value found before. This is a heuristic:
        positions that far out in this direction are unlikely to be better, but a search that starts
        there may end elsewhere, and rarely in a lower minimum that is then missed (1 % of digits).
        """
        n_starts, n, d = starts.shape
        rows = np.tile(np.arange(n), n_starts)
        Z = starts.reshape(-1, d)
        ends = Minima.empty(len(rows), d)
        n_outside = self.n_outside if self.outside else 0
        inside = np.arange(len(rows) - n_outside * n)

        device = current_device()
        there = objective if device is None else objective.on(device)

        def search(which: IntArray) -> None:
            parts = Z[which], rows[which], scale.ravel()[which], centers.reshape(-1, d)[which]
            fill(ends, which, minimize_each(there, *copied_to(device, *parts)))

        search(inside)
        rest = np.arange(len(inside), len(rows))
        if len(rest):
            best, mean = ends.values.reshape(n_starts, n).min(axis=0), centers.reshape(-1, d)
            lowest = objective.attraction((mean[rest] + Z[rest]) / 2, rows[rest])
            rest = rest[lowest < best[rows[rest]]]
        if len(rest):
            search(rest)
        return ends

    def _within_reach(
        self, objective: NewPointObjective, solution: NewPointSolution, inside: Array
    ) -> NewPointSolution:
        """Move positions out of reach back along the line to points `inside` the embedding."""
        center = self._positions.mean(axis=0)
        radius = np.linalg.norm(self._positions - center, axis=1).max()
        reach = self.reach * max(radius, 1.0)
        far = np.flatnonzero(~(np.linalg.norm(solution.positions - center, axis=1) <= reach))
        if not len(far):
            return solution
        warn_about_rows(
            len(far),
            len(solution.positions),
            "the places of {count} new points are not determined by their neighbor probabilities, "
            "which are concentrated on training points at the rim of the embedding; they are "
            f"placed {self.reach:g} times its radius from its center; pass a perplexity in place "
            "of gamma, or a larger perplexity",
            ExtensionWarning,
        )
        origin, line = inside[far] - center, solution.positions[far] - inside[far]
        length = np.linalg.norm(line, axis=1, keepdims=True)
        line = np.where(length > 0, line / length, 0.0)
        # The positive root t of ‖origin + t·line‖ = reach.
        along = np.einsum("nd,nd->n", origin, line)
        t = -along + np.sqrt(along**2 + reach**2 - np.einsum("nd,nd->n", origin, origin))
        parts = {name: part.copy() for name, part in solution._asdict().items()}
        parts["positions"][far] = inside[far] + t[:, None] * line
        there = objective.at(parts["positions"][far], far)
        parts["values"][far], parts["gradients"][far] = there.value, there.gradient
        parts["converged"][far] = True
        return NewPointSolution(**parts)

    @cached_property
    def _positions(self) -> Array:
        return np.asarray(self.Y, dtype=np.float64)

    def _sums(self) -> PositionSums:
        """Sums over the training points: on a device exact ones."""
        if current_device() is not None:
            return ExactPositionSums(self.problem.potential, self._positions)
        return self._position_sums

    @cached_property
    def _position_sums(self) -> PositionSums:
        return self.problem.position_sums(self._positions)

    def _check(self, P: sparse.csr_array, repulsion_weights: NewWeights) -> None:
        if P.shape[1] != len(self.Y):
            raise ValueError(
                f"affinities have {P.shape[1]} columns and the embedding has {len(self.Y)} points; "
                "pass one column for each point"
            )
        if isinstance(repulsion_weights, FactoredWeights):
            repulsion_weights = repulsion_weights.row_sums
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
                "coordinates: a graph of a given radius leaves them without neighbors, or d² "
                "overflows; pass a graph with n_neighbors, rescale X, or remove these rows"
            )

    def _near_enough(self, log_scale: Array) -> Array:
        """Logarithms of the scales, limited to what positions up to `farthest` need."""
        least = -(self.farthest**2)
        warn_about_rows(
            int((log_scale < least).sum()),
            len(log_scale),
            "{count} of {total} new points are so far from the training data that their distance "
            f"from the embedding is limited to {self.farthest:g}; check that their units are those "
            "of the training data",
            ExtensionWarning,
        )
        return np.maximum(log_scale, least)

    def _starts(self, objective: NewPointObjective) -> tuple[Array, Array, Array]:
        """Initial positions (number of starts, n_new, d), and the scales and centers of the steps.

        The scale is the spread of the neighbors, at least the kernel width one. Embeddings by t-SNE
        of few points may be thousands of kernel widths large.
        """
        indices, P = objective.neighbors
        mean, spread = objective.means, np.sqrt(objective.spreads / objective.total_affinity)
        nearest = np.argsort(-P, axis=1, kind="stable")[:, : self.n_starts]
        positions = objective.Y[np.take_along_axis(indices, nearest, axis=1)]
        known = np.take_along_axis(P, nearest, axis=1) > 0  # a row may have fewer neighbors
        positions = np.where(known[:, :, None], positions, mean[:, None])
        starts = np.stack([mean, *positions.transpose(1, 0, 2)])
        scale = np.broadcast_to(np.maximum(spread, 1.0), starts.shape[:2])
        if not self.outside:
            return starts, scale, np.full_like(starts, np.nan)
        beyond, distance = self._beyond(objective, mean)
        repelled = self._repelled(objective, starts)[..., None]
        starts = np.concatenate([np.where(repelled, beyond[0], starts), beyond])
        centers = np.broadcast_to(mean, beyond.shape)
        centers = np.concatenate([np.where(repelled, mean, np.nan), centers])
        far = np.broadcast_to(np.maximum(scale[0], distance), beyond.shape[:2])
        return starts, np.concatenate([scale, far]), centers

    def _repelled(self, objective: NewPointObjective, starts: Array) -> NDArray[np.bool_]:
        """Whether repulsion is so strong that a search would only move away, in tiny steps."""
        n_starts, n, d = starts.shape
        rows = np.tile(np.arange(n), n_starts)
        values = objective.at(starts.reshape(-1, d), rows).value
        return ~(values < self.barrier * objective.total_affinity[rows]).reshape(n_starts, n)

    def _beyond(self, objective: NewPointObjective, Z: Array) -> tuple[Array, Array]:
        """The best positions outside the embedding, (n_outside, n_new, d), and how far outside.

        From the means `Z` of the neighbors, each direction is followed to a distance from the
        embedding at which the sum of all repulsions is at most that of all attractions.
        """
        rim, (n, d) = self._rim, Z.shape
        distance = self._balance(objective)
        own, fixed = self._radial(Z), self._directions
        sides = np.vstack(
            [
                np.broadcast_to((fixed @ rim.T).max(axis=1)[:, None], (len(fixed), n)),
                (own @ rim.T).max(axis=1),
            ]
        )
        directions = np.concatenate(
            [np.broadcast_to(fixed[:, None], (len(fixed), n, d)), own[None]]
        )
        along = sides - np.einsum("mnd,nd->mn", directions, Z) + distance
        positions = Z + along[..., None] * directions
        rows = np.tile(np.arange(n), len(positions))
        values = objective.at(positions.reshape(-1, d), rows).value.reshape(len(positions), n)
        best = np.argsort(values, axis=0, kind="stable")[: self.n_outside]
        return np.take_along_axis(positions, best[..., None], axis=0), distance

    def _balance(self, objective: NewPointObjective) -> Array:
        """Distance from all points at which repulsion is at most as strong as attraction."""
        attraction, weights = objective.total_affinity, objective.repulsion_weights
        total: Array | int = len(self.Y)
        if isinstance(weights, FactoredWeights):
            total = weights.row_sums
        elif weights is not None:
            total = weights.sum(axis=1)
        with np.errstate(divide="ignore"):  # no repulsion
            unit = self.problem.repulsion(np.zeros(len(attraction)), attraction).value
            excess = np.log(unit) + np.log(total) - np.log(attraction)
        if objective.log_scale is not None:
            excess = excess - objective.log_scale
        return np.sqrt(np.maximum(excess, self.gap**2))

    @cached_property
    def _rim(self) -> Array:
        """Points that include the farthest in every direction: the vertices of the convex hull."""
        Y = self._positions
        try:
            return Y[ConvexHull(Y).vertices] if 2 <= Y.shape[1] <= 3 else Y
        except QhullError:  # the points lie on a line or plane, or are too few
            return Y

    @cached_property
    def _directions(self) -> Array:
        """Principal axes and the diagonals between them, both ways."""
        Y = self._positions
        axes = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[2][: self.axes]
        pairs = [(a + s * b) / np.sqrt(2) for a, b in combinations(axes, 2) for s in (1, -1)]
        return np.array([s * u for u in (*axes, *pairs) for s in (1, -1)])

    def _radial(self, Z: Array) -> Array:
        """Directions from the center of the embedding, (n_new, d)."""
        away = Z - self._positions.mean(axis=0)
        length = np.linalg.norm(away, axis=1, keepdims=True)
        return np.where(length > 0, away / np.where(length > 0, length, 1.0), self._directions[0])


@dataclass(frozen=True, eq=False)
class OptimizedExtension(Extension):
    """Coordinates of new points by minimizing their objectives, in blocks of rows.

    Parameters
    ----------
    optimizer : NewPointOptimizer
        Minimizes the objectives, given affinities.
    affinity : AffinityRows
        Its ``rows(X)`` are the affinities of new points.
    repulsion : Repulsion, default=None
        Its ``of_new_points(X)`` are the repulsion weights, dense or factored; one by default.
    numbers_per_row : int, default=4096
        Estimated number of values that a new point needs in memory for its neighbors.
    """

    optimizer: NewPointOptimizer
    affinity: AffinityRows
    repulsion: Repulsion | None = None
    numbers_per_row: int = 4096

    def transform(self, X: Matrix) -> Array:
        dense = self.repulsion is not None and self.repulsion.factors is None
        numbers = len(self.optimizer.Y) if dense else self.numbers_per_row
        budget = {} if current_device() is None else {"budget": BUDGET}
        blocks = row_blocks(X.shape[0], numbers, **budget)
        found = [self._minimize(X[block]) for block in blocks]
        warn_if_not_converged(
            np.concatenate([np.empty(0, bool), *(part.converged for part in found)])
        )
        none = np.empty((0, self.optimizer.Y.shape[1]))
        return np.concatenate([none, *(part.positions for part in found)])

    def _minimize(self, X: Matrix) -> NewPointSolution:
        repulsion_weights = None if self.repulsion is None else self.repulsion.of_new_points(X)
        P, log_scale = self.affinity.rows(X)
        return self.optimizer.minimize(P, repulsion_weights, log_scale)


def first_minimum(values: Array, tie: float = 1e-9) -> IntArray:
    """Row of the smallest value in every column; the first one if values are equal up to `tie`.

    The relative tolerance `tie` keeps rounding from choosing among equal values.
    """
    best = np.zeros(values.shape[1], dtype=np.intp)
    columns = np.arange(values.shape[1])
    for row in range(1, len(values)):
        current = values[best, columns]
        with np.errstate(invalid="ignore"):
            lower = values[row] < current - tie * (1 + np.abs(current))
        best[lower | (np.isfinite(values[row]) & ~np.isfinite(current))] = row
    return best
