"""The consensus of all dimension estimates, its range, and reasons why estimates differ."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.dimension.distinct_points import DimensionInput
from manifoldry.dimension.profile import ScaleProfile
from manifoldry.dimension.result import MANY_TIES, Dimension
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import power_of_two_scale

# Methods that use small neighborhoods, whose estimates should agree.
LOCAL_METHODS = ("two_nn", "maximum_likelihood", "correlation_dimension", "local_pca")
_DENSITY_WEIGHTED = "correlation_dimension"  # counts pairs, most of which are in dense regions


@dataclass(frozen=True, eq=False)
class Consensus:
    """All estimates of one data set, and the quantities that explain their differences.

    Parameters
    ----------
    estimates : dict of str to Dimension
        The estimate of each method.
    profile : ScaleProfile
        The dimension at increasing scales.
    n_distinct, n_samples : int
        Number of distinct points and of samples.
    n_connected : int
        Number of connected components of the neighbor graph.
    local_dimensions : array of shape (n_known,)
        Smoothed dimension around each distinct point; empty if unknown.
    tied_fraction : float
        Fraction of points whose two nearest neighbors are equally distant.
    recall : float
        Fraction of the true neighbors that the neighbor search found.
    n_features : float
        Number of features; infinite if only a graph was given.
    column_fractions : array of shape (n_features,)
        Fraction of the variance in each feature; empty if only a graph was given.
    min_decrease : float
        Smallest relative decrease of the dimension with the scale that is reported.
    min_variation : float
        Smallest ratio of local dimensions, 95th to 5th percentile, that is reported.
    min_boundary_bias : float
        Smallest relative excess of local PCA over neighbor distances that is reported.
    max_agreement_ratio : float
        Largest ratio of estimates that counts as agreement.
    many_ties : float
        Largest `tied_fraction` that is not reported.
    max_column_fraction : float
        Largest fraction of the variance in one of several features that is not reported.
    min_half_fraction : float
        Smallest fraction of the variance, in the half of the features that vary least, that is not
        reported. It is 0.07 or more for images, words and cells, and below 2e-5 for tables of
        measurements in different units.
    """

    estimates: dict[str, Dimension]
    profile: ScaleProfile
    n_distinct: int
    n_samples: int
    n_connected: int
    local_dimensions: Array
    tied_fraction: float
    recall: float
    n_features: float
    column_fractions: Array
    min_decrease: float = 0.15
    min_variation: float = 1.6
    min_boundary_bias: float = 0.08
    max_agreement_ratio: float = 1.15
    many_ties: float = MANY_TIES
    max_column_fraction: float = 0.9
    min_half_fraction: float = 1e-3

    @classmethod
    def of(
        cls, data: DimensionInput, estimates: dict[str, Dimension], profile: ScaleProfile
    ) -> "Consensus":
        """Compute the diagnostics from the data and the estimates."""
        distances = data.nearest(2)[1]
        return cls(
            estimates,
            profile,
            data.n,
            data.n_samples,
            data.graph.components()[0],
            smoothed_dimensions(data, estimates),
            float((distances[:, 0] == distances[:, 1]).mean()),
            data.graph.recall,
            np.inf if data.points is None else data.points.shape[1],
            np.array([]) if data.points is None else column_fractions(data.points),
        )

    @property
    def dominant_column(self) -> int | None:
        """Index of the feature that has nearly all the variance of several; None if none has."""
        varying = np.count_nonzero(self.column_fractions)
        if varying < 2 or self.column_fractions.max() <= self.max_column_fraction:
            return None
        return int(self.column_fractions.argmax())

    @property
    def half_fraction(self) -> float:
        """Fraction of the variance in the half of the varying features that vary least."""
        return half_fraction(self.column_fractions)

    @property
    def has_uneven_columns(self) -> bool:
        """Whether some features have so little variance that the estimates ignore them."""
        return self.dominant_column is not None or self.half_fraction < self.min_half_fraction

    @cached_property
    def local_estimates(self) -> list[float]:
        """Values of the methods that use small neighborhoods."""
        found = [float(self.estimates[name]) for name in LOCAL_METHODS if name in self.estimates]
        return found or [float(next(iter(self.estimates.values())))]

    @property
    def dimension(self) -> int:
        """The dimension above the noise scale if there is noise, else the median of local methods.

        The elbow of the residual variance is included if it is clear: it has no boundary bias.
        """
        if self.dimension_above_noise is not None:
            return max(1, round(self.dimension_above_noise))
        elbow = [self.elbow] if self.elbow is not None and self.n_connected == 1 else []
        return max(1, round(float(np.median([*self.local_estimates, *elbow]))))

    @cached_property
    def local_range(self) -> tuple[float, float] | None:
        """5th and 95th percentile of the local dimensions, or None if they are close."""
        if len(self.local_dimensions) == 0:
            return None
        low, high = (float(value) for value in np.percentile(self.local_dimensions, [5, 95]))
        varies = high >= self.min_variation * low and round(low) < round(high)
        return (low, high) if varies else None

    @property
    def range_values(self) -> list[float]:
        """Values that the range covers."""
        if self.local_range is None:
            return [self.dimension, *self.local_estimates]
        even_methods = [
            float(self.estimates[m])
            for m in LOCAL_METHODS
            if m in self.estimates and m != _DENSITY_WEIGHTED
        ]
        return [self.dimension, *self.local_range, *even_methods]

    @property
    def low(self) -> int:
        """Lower end of the range."""
        return max(1, round(min(self.range_values)))

    @property
    def high(self) -> int:
        """Upper end of the range."""
        return round(max(self.range_values))

    @cached_property
    def decreases(self) -> bool:
        """Whether the dimension is significantly lower at larger scales than at the smallest."""
        values = self.profile.values
        if len(values) < 3:
            return False
        smallest = min(values, key=float)
        return smallest < (1 - self.min_decrease) * values[0] and smallest.high < values[0].low

    @cached_property
    def decreases_by_noise(self) -> bool:
        """Whether noise explains the decrease: local PCA finds directions of small variance."""
        if not self.decreases or "local_pca" not in self.estimates:
            return self.decreases
        return float(self.estimates["local_pca"]) < 0.95 * float(self.profile.values[0])

    @cached_property
    def dimension_above_noise(self) -> float | None:
        """Mean dimension at scales above the noise; None without noise or without such scales."""
        if not self.decreases_by_noise:
            return None
        values = [float(value) for value in self.profile.values]
        start = self.noise_scale
        if start == len(values) - 1 and self.elbow != round(values[-1]):
            return None
        plateau_mean = float(np.mean(values[start : start + 3]))
        return plateau_mean if plateau_mean < (1 - self.min_decrease) * values[0] else None

    @property
    def noise_scale(self) -> int:
        """Index of the first scale above the noise: start of the plateau, else the last scale."""
        first, values = self.profile.plateau, [float(value) for value in self.profile.values]
        return first if first and self._levels_off(values, first) else len(values) - 1

    @staticmethod
    def _levels_off(values: list[float], first: int) -> bool:
        """Whether the plateau is much flatter than the decrease before it; boundary bias is not."""
        triple = values[first : first + 3]
        within = np.log(max(triple) / min(triple)) / 2
        before = np.log(values[0] / np.mean(triple)) / (first + 1)
        return bool(before > 2 * within)

    @property
    def elbow(self) -> int | None:
        """Elbow of the residual variance, or None if subsets of the points disagree."""
        found = self.estimates.get("residual_variance_elbow")
        if found is None or found.value.high - found.value.low > 1:
            return None
        return round(float(found))

    @cached_property
    def boundary_bias(self) -> tuple[float, float] | None:
        """Dimension by neighbor distances and by local PCA, if the boundary explains the gap."""
        names = [name for name in ("two_nn", "maximum_likelihood") if name in self.estimates]
        values = self.profile.values
        decline = len(values) > 2 and values[-1] < (1 - self.min_boundary_bias) * values[0]
        if "local_pca" not in self.estimates or not names or self.decreases_by_noise or not decline:
            return None
        by_distance = float(np.mean([float(self.estimates[name]) for name in names]))
        by_variance = float(self.estimates["local_pca"])
        biased = by_variance > (1 + self.min_boundary_bias) * by_distance
        return (by_distance, by_variance) if biased else None

    @property
    def max_resolvable(self) -> float:
        """Approximate largest dimension that neighbor distances of n points resolve, 2·log₁₀ n."""
        return 2 * float(np.log10(self.n_distinct))


def smoothed_dimensions(data: DimensionInput, estimates: dict[str, Dimension]) -> Array:
    """Dimension around each distinct point, its inverse averaged over the point and its neighbors.

    The dimension at a single point is too noisy; the average over twenty separates 2 from 5.
    """
    found = next(
        (estimates[m].per_point for m in ("local_pca", "maximum_likelihood") if m in estimates),
        None,
    )
    if found is None:
        return np.empty(0)
    k = data.resolve_neighbors(None)
    inverse = 1 / found[data.first_sample]
    members = np.column_stack([np.arange(data.n), data.nearest(k)[0]])
    known = (members >= 0) & np.isfinite(inverse)[members]
    total = np.where(known, inverse[members], 0.0).sum(axis=1)
    return known.sum(axis=1)[total > 0] / total[total > 0]


def half_fraction(fractions: Array) -> float:
    """Sum of the smaller half of the positive fractions, 1 if there are fewer than two."""
    varying = np.sort(fractions[fractions > 0])
    return float(varying[: len(varying) // 2].sum()) if len(varying) > 1 else 1.0


def column_fractions(X: Matrix) -> Array:
    """Fraction of the total variance in each column of `X`."""
    X = X / power_of_two_scale(X)
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    if sparse.issparse(X):
        variances = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
    else:
        variances = X.var(axis=0, dtype=np.float64)
    return _fractions(mean, variances)


def known_column_fractions(X: Array, most: int = 10_000) -> Array:
    """Fraction of the variance of the known values in each column of dense data.

    Values that are missing (NaN) are left out. Of more than about `most` rows, every k-th is used.
    """
    X = X[:: max(1, len(X) // most)]
    known = np.isfinite(X)
    X = np.where(known, X, 0.0)
    X = X / power_of_two_scale(X)
    count = np.maximum(known.sum(axis=0), 1)
    mean = X.sum(axis=0, dtype=np.float64) / count
    squares = np.where(known, X - mean, 0.0) ** 2
    return _fractions(mean, squares.sum(axis=0) / count)


def _fractions(mean: Array, variances: Array) -> Array:
    """The variances as fractions of their sum."""
    # What is left of a constant column after rounding is not variance.
    variances = np.where(variances > 1e-14 * mean**2, variances, 0.0)
    return np.asarray(variances / (variances.sum() or 1.0))
