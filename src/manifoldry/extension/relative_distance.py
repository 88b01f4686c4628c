"""Distance of rows from reference rows, in units in which those are about 1 from each other."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.exceptions import NoveltyWarning, is_ignored, warn
from manifoldry.extension.far_rows import (
    FAR_REFERENCES,
    MOST_REFERENCES,
    OFF_THE_MAP,
    UNLIKE_THE_DATA,
    FarText,
    differ,
    far_warning,
)
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.precomputed import DenseDistances
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import largest_modulus, spread_rows, streaming_blocks

_NEAREST = 3  # the distance of a row is its mean distance to this many references
_MOST_BY_CALLS = 300  # references if the metric is a function that is called for each pair
_LOCAL = 10  # number of references around a row that determine the local spacing
_MOST_FOR_A_WARNING = 300  # references of positions, so that the first call takes 1 ms only
_OVERFLOW = 1e100  # rows larger than the references by this factor are infinitely far


class Unit(NamedTuple):
    """What relative distances are divided by, computed from the distances among the references."""

    spacing: Array  # mean distance of each reference to its nearest others
    median: float  # of the spacings
    typical: float  # median over the references of the ratios of `_ratios`
    far: float  # the ratio that 1 % of the references exceed

    @classmethod
    def of(cls, index: NeighborIndex, points: Matrix) -> "Unit | None":
        """Compute the unit from all references as queries; None if they all coincide."""
        n = index.n_reference
        if n == 1:
            return None
        neighbors, distances = index.nearest_excluding(points, min(_LOCAL, n - 1), np.arange(n))
        positive = distances[distances > 0]
        if len(positive) == 0:
            return None
        spacing = distances[:, :_NEAREST].mean(axis=1)
        median = float(np.median(spacing) or np.median(positive))
        ratios = _ratios(spacing / median, neighbors, distances / median)
        typical = float(np.median(ratios) or ratios.max())
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

    The references are 1000 rows, evenly spaced, or 300 if the metric is a function. Identical rows
    count once, and a row identical to them has distance 0. If all rows are identical, there is no
    unit, and every other row is infinitely far.

    Parameters
    ----------
    references : NeighborIndex
        Neighbor search among the references, which may repeat each other.
    limit : float, default=inf
        Rows with larger values are infinitely far, because their distances may overflow.
    columns : array, default=None
        If rows are distances to all points, the columns of the references.

    Attributes
    ----------
    index : NeighborIndex
        Neighbor search among the references, each once.
    repeated : array of bool
        Which of these stand for several identical rows.
    unit : Unit or None
        What distances are divided by; None if all references coincide. Computed at the first use
        or before pickling, because searching the neighbors of 1000 references can take longer than
        a fit of PCA.

    See Also
    --------
    manifoldry.exceptions.NoveltyWarning : the warning about rows that are far.
    manifoldry.assess : reports how many new rows are unlike the data.

    Examples
    --------
    Two points among the references, and one far from all of them:

    >>> import numpy as np
    >>> from manifoldry.extension import RelativeDistance
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> distance = RelativeDistance.of_points(X)
    >>> distance.of(np.array([[0.0, 0.0], [1.0, 1.0], [20.0, 20.0]])).round(1)
    array([ 0.6,  1.1, 41.7])
    """

    references: NeighborIndex
    limit: float = np.inf
    columns: IntArray | None = None

    @property
    def index(self) -> NeighborIndex:
        """Neighbor search among the references, each once."""
        return self._distinct[0]

    @property
    def repeated(self) -> NDArray[np.bool_]:
        """Which of these stand for several identical rows."""
        return self._distinct[1]

    @cached_property
    def _distinct(self) -> tuple[NeighborIndex, NDArray[np.bool_]]:
        distinct, repeated = _distinct(self.references.first_identical())
        if len(distinct) == self.references.n_reference:
            return self.references, repeated
        return self.references.restrict(distinct), repeated

    @cached_property
    def unit(self) -> Unit | None:
        """What distances are divided by; None if all references coincide."""
        return Unit.of(self.index, self.index.points)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the fields and what a loaded model then need not, or cannot, compute."""
        return {**state_of_fields(self), "unit": self.unit, "_distinct": self._distinct}

    @classmethod
    def of_points(
        cls, X: Matrix, metric: Any = "euclidean", *options: Any, most: int = MOST_REFERENCES
    ) -> "RelativeDistance":
        """Measure distances from rows of `X`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The data.
        metric : str or callable, default="euclidean"
            The metric.
        *options : tuple
            Further arguments of :func:`~manifoldry.neighbors.choose_index`: metric_params and
            n_jobs.
        most : int, default=1000
            Largest number of references; if there are more rows, they are evenly spaced.

        Returns
        -------
        RelativeDistance
            The distance.
        """
        n, most = X.shape[0], _MOST_BY_CALLS if callable(metric) else most
        references = X if n <= most else X[spread_rows(n, most)]
        return cls.of_index(choose_index(references, metric, *options))

    @classmethod
    def of_index(cls, index: NeighborIndex) -> "RelativeDistance":
        """Measure distances from the points of an index.

        Parameters
        ----------
        index : NeighborIndex
            The index.

        Returns
        -------
        RelativeDistance
            The distance.
        """
        if index.n_reference > MOST_REFERENCES:
            index = index.restrict(spread_rows(index.n_reference, MOST_REFERENCES))
        points: Any = index.points
        return cls(index, _OVERFLOW * largest_modulus(points))

    @classmethod
    def of_distances(cls, D: Array) -> "RelativeDistance":
        """Measure distances from points of which only the distances are known.

        Parameters
        ----------
        D : array of shape (n_samples, n_samples)
            Distances among the points.

        Returns
        -------
        RelativeDistance
            The distance; its :meth:`of` takes rows of distances to these points.
        """
        columns = spread_rows(len(D), MOST_REFERENCES)
        among = D[np.ix_(columns, columns)]
        np.fill_diagonal(among, 0)
        index: NeighborIndex = DenseDistances(len(among))
        distinct, repeated = _distinct(index.identical(among))
        index, among = index.restrict(distinct), among[np.ix_(distinct, distinct)]
        distance = cls(index, columns=columns[distinct])
        # Now, so that the model need not keep the distances among the references.
        vars(distance).update(unit=Unit.of(index, among), _distinct=(index, repeated))
        return distance

    def of(self, X: Matrix) -> Array:
        """Return the relative distance of each row: about 1 among the references, above 2 far away.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The rows.

        Returns
        -------
        array of shape (n_new,)
            Their relative distances.
        """
        parts = [self._of_block(X[block]) for block in streaming_blocks(X)]
        return np.concatenate([np.empty(0), *parts])

    def _of_block(self, X: Matrix) -> Array:
        rows = self.index.as_queries(X if self.columns is None else X[:, self.columns])
        same = self.index.identical(rows)
        found = np.where((same >= 0) & self.repeated[same], 0.0, np.inf)
        if self.unit is not None:
            new = np.flatnonzero((found > 0) & self._in_range(rows))
            k = min(_LOCAL, self.index.n_reference - 1)
            found[new] = self.unit.relative(*self.index.nearest(rows[new], k))
        return found

    def _in_range(self, rows: Matrix) -> Any:
        """Whether the distances of each row to the references cannot overflow."""
        if largest_modulus(rows) <= self.limit:
            return True
        largest = abs(rows).max(axis=1)
        return np.ravel(largest.toarray() if sparse.issparse(largest) else largest) <= self.limit

    def warn_if_far(
        self,
        X: Matrix,
        distances: Array | None = None,
        most: int = 300,
        text: FarText = UNLIKE_THE_DATA,
    ) -> None:
        """Warn if many rows of `X` are far, or any is very far.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The rows.
        distances : array of shape (n_new,), default=None
            Their relative distances. Without them `most` rows, evenly spaced, are measured, and
            none if the warning is ignored.
        most : int, default=300
            Number of rows that are measured.
        text : FarText
            The words of the warning.
        """
        if is_ignored(NoveltyWarning):
            return
        if distances is None:
            distances = self.of(X[spread_rows(X.shape[0], most)])
        n = self.index.n_reference
        if differ(distances, n):
            warn(far_warning(distances, X.shape[0], n, text), NoveltyWarning)


@dataclass(frozen=True)
class UnknownDistance:
    """Stands for a :class:`RelativeDistance` that cannot be computed."""

    reason: str

    def of(self, X: Matrix) -> Array:
        """Raise a ValueError with the reason."""
        raise ValueError(f"novelty is unknown: {self.reason}")

    def warn_if_far(self, X: Matrix, distances: Array | None = None) -> None:
        """Do nothing."""


DataDistance = RelativeDistance | UnknownDistance


@dataclass(frozen=True, eq=False)
class DistanceOnMap:
    """Distance of positions from the points of an embedding, measured at the first use.

    Parameters
    ----------
    Y : array of shape (n_samples, n_components)
        The embedding; NaN in rows that were not embedded.
    """

    Y: Array

    __getstate__ = state_of_fields

    def of(self, Z: Array, *, requested: bool) -> Array | None:
        """Warn if positions `Z` are off the map; return their distances if requested."""
        if requested:
            from_map, distances = self._exact, self._exact.of(Z)
        elif is_ignored(NoveltyWarning):
            return None
        else:
            from_map, distances = self._rough, None
        from_map.warn_if_far(Z, distances, text=OFF_THE_MAP)
        return distances

    @cached_property
    def _exact(self) -> RelativeDistance:
        return RelativeDistance.of_points(self._embedded)

    @cached_property
    def _rough(self) -> RelativeDistance:
        return RelativeDistance.of_points(self._embedded, most=_MOST_FOR_A_WARNING)

    @property
    def _embedded(self) -> Array:
        return self.Y[np.isfinite(self.Y).all(axis=1)]


def distance_from(X: Matrix, metric: Any, *options: Any) -> DataDistance:
    """Return what measures distances from the rows of `X`; a metric of None is unknown."""
    if metric is not None:
        return RelativeDistance.of_points(X, metric, *options)
    return UnknownDistance(
        "it is measured for kernel='rbf', 'linear' and 'laplacian' only, which are functions of a "
        "metric; pass one of them"
    )


def distance_by_estimator(X: Matrix, estimator: Any) -> DataDistance:
    """Return what measures distances from `X` in the metric of an estimator, or Euclidean."""
    metric = getattr(estimator, "metric", "euclidean")
    return distance_from(X, metric, getattr(estimator, "metric_params", None))


def _distinct(first: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Distinct rows and which are repeated, given the first row identical to each."""
    distinct, counts = np.unique(first, return_counts=True)
    return distinct, counts > 1


def _ratios(spacing: Array, neighbors: IntArray, distances: Array) -> Array:
    """Distance of each row over the root of the local spacing, in units of the median spacing."""
    local = np.maximum(spacing[neighbors].mean(axis=1), 0.01)  # it is tiny in a tight cluster
    return distances[:, :_NEAREST].mean(axis=1) / np.sqrt(local)


def upper_quantile(values: Array) -> float:
    """The value that 1 % exceed; beyond the largest one if there are fewer than 100.

    Then the largest excess over the median is extrapolated by an exponential tail.
    """
    n, median = len(values), float(np.median(values))
    rank = int(FAR_REFERENCES * (n + 1))
    if rank >= 1:
        return float(np.sort(values)[-rank])
    factor = np.log(0.5 / FAR_REFERENCES) / np.log(0.5 * (n + 1)) if n > 2 else np.inf
    return median + (float(values.max()) - median) * min(factor, 10.0)
