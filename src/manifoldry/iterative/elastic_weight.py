"""Choice of the weight of repulsion by the error of predicting the data from the embedding."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.device import Device, current_device
from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.neighbors.distances import Frame
from manifoldry.optimize.homotopy import HomotopyRun
from manifoldry.optimize.optimizer import Solution
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks, spread_rows


@dataclass
class WeightSearch:
    """Minimize at increasing weights; choose the smallest that predicts the data well enough.

    Each point is predicted from the others, weighted by the kernel of the elastic embedding,
    exp(−‖yᵢ − yⱼ‖²). The error decreases as the embedding unfolds, and increases again when the
    distances between points are so large that each has few others within the kernel's width.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The data, scaled so that squares neither overflow nor underflow.
    homotopy : HomotopyRun
        The homotopy over the weight.
    """

    X: Matrix
    homotopy: HomotopyRun
    solutions: list[Solution] = field(default_factory=list)
    errors: list[tuple[float, float]] = field(default_factory=list)
    """Mean squared error and its standard error at every weight."""
    ratio: float = 10**0.25  # of consecutive weights; twice the step ends in poorer minima
    # The search ends at the latest at `max_weight_ratio` times the first weight, and not before
    # `min_weight_ratio` times it, because distant clusters unfold late.
    max_weight_ratio: float = 1e7
    min_weight_ratio: float = 1e5
    patience: int = 4  # number of weights without improvement before the search ends
    margin: float = 2.0  # number of standard errors within which an error counts as the best
    trimmed: float = 0.01  # fraction of points with the largest errors that is left out
    sample: int = 1000  # number of points whose prediction error is computed
    # Number of points above which those in one cell of a grid are merged to predict others, and
    # the width of the cells. Errors then differ by less than a fifth of their standard error.
    merge_above: int = 5000
    merge_width: float = 0.2

    def run(self, first: float) -> tuple[float, Solution]:
        """The chosen weight and its minimizer, starting with weight `first`."""
        weights = [first]
        while True:
            solution = self.homotopy.advance(weights[-1])
            if solution.interrupted:
                return weights[-1], solution
            try:
                self.errors.append(self._error(solution.embedding))
            except KeyboardInterrupt:
                return weights[-1], solution.as_interrupted()
            self.solutions.append(solution)
            since = len(weights) - 1 - int(np.argmin([mean for mean, _ in self.errors]))
            enough = since >= self.patience and weights[-1] >= self.min_weight_ratio * first
            if enough or weights[-1] > self.max_weight_ratio * first:
                break
            weights.append(self.ratio * weights[-1])
        chosen = weights[self.choice]
        if chosen == weights[-1]:
            warn(
                f"the prediction error still decreases at weight={chosen:.3g}, the largest one "
                "tried; pass a weight, or scale outliers down",
                ConvergenceWarning,
            )
        return chosen, self.homotopy.minimize(chosen, self.solutions[self.choice].embedding)

    @classmethod
    def expected_searches(cls) -> int:
        """Number of searches if the best weight is the first at which the search may end."""
        increases = np.log(cls.min_weight_ratio) / np.log(cls.ratio)
        return int(np.ceil(increases)) + cls.patience + 2  # the first and the last

    @property
    def choice(self) -> int:
        """Index of the smallest weight whose error is within the margin of the smallest error."""
        means, spreads = np.array(self.errors).T
        best = int(np.argmin(means))
        return int(np.flatnonzero(means <= means[best] + self.margin * spreads[best])[0])

    def _error(self, Y: Array) -> tuple[float, float]:
        rows = spread_rows(len(Y), self.sample)
        sources = _Sources.of(Y, self.X, self.merge_width if len(Y) > self.merge_above else None)
        rows = rows[np.argsort(Y[rows, 0], kind="stable")]  # neighbors have the same sources
        blocks = row_blocks(len(rows), len(sources.counts) + 2 * self.X.shape[1], 2**22)
        errors = np.concatenate([self._errors(Y, rows[block], sources) for block in blocks])
        # The errors of outliers, which cannot be predicted, would dominate the mean.
        errors = np.sort(errors)[: len(errors) - int(np.ceil(self.trimmed * len(errors)))]
        return float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))

    def _errors(self, Y: Array, rows: IntArray, sources: "_Sources") -> Array:
        true = self.X[rows].toarray() if sparse.issparse(self.X) else self.X[rows]
        predicted = sources.predict_without(Y[rows], true, sources.labels[rows])
        return np.square(true - predicted).sum(axis=1)


class _Sources(NamedTuple):
    """The points from which others are predicted, those in one cell of a grid merged."""

    positions: Array
    """Their mean positions in the embedding, (n_cells, d)."""
    counts: Array
    """Number of points in each cell."""
    sums: Matrix
    """Sums of their data, (n_cells, n_features)."""
    labels: IntArray
    """The cell of each point."""
    edges: Array | None = None
    """Lower ends of the cells along the first axis, sorted; None if no points are merged."""

    @classmethod
    def of(cls, Y: Array, X: Matrix, width: float | None) -> "_Sources":
        """Merge the points in cells of the given width; None does not merge any."""
        n = len(Y)
        if width is None:
            return cls(Y, np.ones(n), X, np.arange(n))
        low = Y.min(axis=0)
        cells = ((Y - low) / width).astype(np.int64)
        labels = cells[:, 0]
        for column in (*cells.T[1:], np.zeros(n, np.int64)):  # the zeros serve one dimension
            labels = np.unique(labels * (column.max() + 1) + column, return_inverse=True)[1]
        counts = np.bincount(labels).astype(float)
        edges = np.empty(len(counts))
        edges[labels] = low[0] + width * cells[:, 0]
        members = sparse.csr_array((np.ones(n), (labels, np.arange(n))), shape=(len(counts), n))
        if (device := _device_for(X)) is not None:
            there = device.product(device.rows(members), device.array(X))
            sums = device.host(there)
            device.hold(sums, there)
        else:
            sums = members @ X
        return cls(members @ Y / counts[:, None], counts, sums, labels, edges)

    def predict_without(self, Y: Array, X: Array, labels: IntArray) -> Array:
        """The data at the positions `Y`, predicted without the points X there, in cells `labels`.

        The weight of a source is its kernel exp(−d²). Merged sources more than five from all of `Y`
        along the first axis are left out, unless the others are more than two from a position.
        """
        near = everywhere = slice(0, len(self.counts))
        if self.edges is not None:
            ends = Y[:, 0].min() - 5.0, Y[:, 0].max() + 5.0
            near = slice(*np.searchsorted(self.edges, ends).tolist())
        predicted, nearest = self._predict(near, Y, X, labels)
        far = nearest > 4
        if near != everywhere and far.any():
            predicted[far] = self._predict(everywhere, Y[far], X[far], labels[far])[0]
        return predicted

    def _predict(self, near: slice, Y: Array, X: Array, labels: IntArray) -> tuple[Array, Array]:
        """The prediction from some sources, and the squared distance of the nearest one."""
        if (device := _device_for(self.sums)) is not None:
            return self._predict_on(device, near, Y, X, labels)
        D = cdist(Y, self.positions[near], "sqeuclidean")
        own = np.arange(len(Y)), labels - near.start
        alone = self.counts[labels] == 1
        D[own] = np.where(alone, np.inf, D[own])
        # Relative to the nearest source: far from all sources the sum would underflow.
        nearest = D.min(axis=1)
        with np.errstate(invalid="ignore"):  # there may be no other source
            K = np.exp(nearest[:, None] - D)
        mine = K[own]
        total = K @ self.counts[near] - mine
        return (K @ self.sums[near] - mine[:, None] * X) / total[:, None], nearest

    def _predict_on(
        self, device: Device, near: slice, Y: Array, X: Array, labels: IntArray
    ) -> tuple[Array, Array]:
        """The same as `_predict`, on a device."""
        xp = device.xp
        here, true, own = (device.array(part, keep=False) for part in (Y, X, labels - near.start))
        positions, counts, sums = (
            device.array(part)[near] for part in (self.positions, self.counts, self.sums)
        )
        D, rows = device.squared_distances(here, positions), xp.arange(len(Y))
        D[rows, own] = xp.where(counts[own] == 1, np.inf, D[rows, own])
        nearest = D.min(axis=1)
        with np.errstate(invalid="ignore"):
            K = xp.exp(nearest[:, None] - D)
        mine = K[rows, own]
        total = K @ counts - mine
        predicted = (K @ sums - mine[:, None] * true) / total[:, None]
        return device.host(predicted), device.host(nearest)


def _device_for(X: Matrix) -> Device | None:
    """The device on which data are predicted; None for the CPU."""
    device = current_device()
    if device is not None and sparse.issparse(X):
        device.runs_on_host("the choice of the weight", "the data are sparse; pass X.toarray()")
        return None
    return device


def scaled_data(points: Matrix) -> Matrix:
    """The data, centered unless sparse, and scaled so that squares stay in range."""
    return Frame.of(points).apply(points)
