"""Distance of rows from reference rows, in units in which those are about 1 from each other."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from manifoldry.exceptions import NoveltyWarning, warn
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.precomputed import DenseDistances
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import spread_rows

FAR = 2.0
"""A row is far if its relative distance is above this, as is that of 1 % of the references."""

_FAR_REFERENCES = 0.01  # fraction of the references, each measured without itself, that are far
_NEAREST = 3  # the distance of a row is its mean distance to this many references
_MOST = 5000  # references: a model keeps them, and every new row is compared with them
_LOCAL = 10  # number of references around a row that determine the local spacing


class Unit(NamedTuple):
    """What relative distances are divided by, computed from the distances among the references."""

    spacing: Array  # mean distance of each reference to its nearest others
    median: float  # of the spacings
    typical: float  # median over the references of the ratios of `_ratios`
    far: float  # the ratio that 1 % of the references exceed

    @classmethod
    def of(cls, neighbors: IntArray, distances: Array) -> "Unit":
        """Compute the unit from the nearest other references of each reference, (n, k)."""
        spacing = distances[:, :_NEAREST].mean(axis=1)
        positive = distances[distances > 0]
        median = float(np.median(spacing)) or (float(np.median(positive)) if len(positive) else 1.0)
        ratios = _ratios(spacing / median, neighbors, distances / median)
        typical = float(np.median(ratios)) or 1.0
        # On a regular grid all ratios are equal.
        return cls(spacing, median, typical, max(upper_quantile(ratios), 1.1 * typical))

    def relative(self, neighbors: IntArray, distances: Array) -> Array:
        """Relative distances of rows, given their nearest references."""
        unit = self.median
        ratio = _ratios(self.spacing / unit, neighbors, distances / unit) / self.typical
        return np.where(ratio <= 1, ratio, 1 + (ratio - 1) / (self.far / self.typical - 1))


@dataclass(frozen=True, eq=False)
class RelativeDistance:
    """Distance of rows from reference rows, relative to the distances among these.

    The mean distance of a row to its three nearest references is divided by the geometric mean of
    two spacings: the median of the same distance over all references, each measured without
    itself, and its mean over the ten references nearest to the row. The result is scaled so that
    the median of the references is 1 and that 1 % of them exceed 2; it is linear below 1 and
    above. ``docs/studies/novelty.py`` compares this definition with others.

    Parameters
    ----------
    index : NeighborIndex
        Neighbor search among the references.
    known_unit : Unit or None
        None to compute the unit from the references of the index, when first needed.
    """

    index: NeighborIndex
    known_unit: Unit | None = None

    @classmethod
    def of_points(cls, X: Matrix, *metric: Any) -> "RelativeDistance":
        """Distances from the rows of `X`, or 5000 of them, evenly spaced, if there are more.

        `metric` holds the metric, its parameters and the number of threads; Euclidean by default.
        """
        n = X.shape[0]
        return cls(choose_index(X if n <= _MOST else X[spread_rows(n, _MOST)], *metric))

    @classmethod
    def of_training_data(cls, X: Matrix, estimator: Any) -> "RelativeDistance":
        """Distances from the rows of `X` in the metric of an estimator, by default Euclidean."""
        metric = getattr(estimator, "metric", "euclidean")
        return cls.of_points(X, metric, getattr(estimator, "metric_params", None))

    @classmethod
    def of_index(cls, index: NeighborIndex) -> "RelativeDistance":
        """Distances from the points of an index, or 5000 of them, evenly spaced, if more."""
        n = index.n_reference
        return cls(index if n <= _MOST else index.restrict(spread_rows(n, _MOST)))

    @classmethod
    def of_distances(cls, D: Array) -> "RelativeDistance":
        """Distances from points with distances `D` among them; rows are distances to them."""
        index = DenseDistances(len(D))
        return cls(index, _unit_of(index, D))

    @cached_property
    def unit(self) -> Unit:
        """What the distances are divided by."""
        return self.known_unit or _unit_of(self.index, self.index.points)

    def of(self, X: Matrix) -> Array:
        """Relative distance of each row of `X`: about 1 among the references, above 2 far."""
        k = _count_neighbors(self.index)
        return self.unit.relative(*self.index.nearest(self.index.as_queries(X), k))

    def warn_if_far(self, X: Matrix, most: int = 1000) -> None:
        """Warn if many rows of `X` are far; of `most` rows, evenly spaced, if there are more."""
        compared = spread_rows(X.shape[0], most)
        try:
            far = int((self.of(X[compared]) > FAR).sum())
        except ValueError:  # distances overflow, although the method may place the rows
            far = len(compared)
        if not are_many(far, len(compared), self.index.n_reference):
            return
        count = f"{far} of {len(compared)}"
        if len(compared) < X.shape[0]:
            count = f"about {far / len(compared):.0%} of {X.shape[0]}"
        warn(
            f"{count} rows are unlike the data that the model was fitted on: farther from them "
            "than 99 % of the training rows are from each other. Their coordinates are not "
            "reliable; novelty(X) gives the distance of each row",
            NoveltyWarning,
        )


def _ratios(spacing: Array, neighbors: IntArray, distances: Array) -> Array:
    """Distance of each row over the root of the local spacing, in units of the median spacing."""
    local = np.maximum(spacing[neighbors].mean(axis=1), 0.01)  # it is zero among duplicates
    return distances[:, :_NEAREST].mean(axis=1) / np.sqrt(local)


def are_many(
    far: int, total: int, n_training: int, *, least: float = 0.05, level: float = 0.01
) -> bool:
    """Whether so many far rows are unlikely if they have the distribution of the training rows.

    They must be at least the fraction `least` of all rows, and the probability of as many must be
    at most `level`. Their number has a beta-binomial distribution, which allows for the error of
    estimating which distance 1 % of the training rows exceed.
    """
    if far < max(1, least * total):
        return False
    n = min(n_training, _MOST) + 1
    a, b, count = _FAR_REFERENCES * n, (1 - _FAR_REFERENCES) * n, np.arange(far, total + 1)
    log_choices = -np.log(total + 1) - betaln(count + 1, total - count + 1)
    log_probability = log_choices + betaln(count + a, total - count + b) - betaln(a, b)
    # For a single far row the two are equal but for rounding.
    return bool(np.exp(log_probability).sum() <= level * (1 + 1e-9))


def _unit_of(index: NeighborIndex, rows: Any) -> Unit:
    found = index.reference_neighbors(rows, _count_neighbors(index))
    return Unit.of(found.indices, found.distances)


def _count_neighbors(index: NeighborIndex) -> int:
    return min(_LOCAL, index.n_reference - 1)


def upper_quantile(values: Array) -> float:
    """The value that 1 % exceed; beyond the largest one if there are fewer than 100.

    Then the largest excess over the median is extrapolated by an exponential tail.
    """
    n, median = len(values), float(np.median(values))
    rank = int(_FAR_REFERENCES * (n + 1))
    if rank >= 1:
        return float(np.sort(values)[-rank])
    factor = np.log(0.5 / _FAR_REFERENCES) / np.log(0.5 * (n + 1)) if n > 2 else np.inf
    return median + (float(values.max()) - median) * min(factor, 10.0)
