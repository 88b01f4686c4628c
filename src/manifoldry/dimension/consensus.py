"""What estimates of dimension say together: a consensus, a range, and what tells them apart."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifoldry.dimension.distinct_points import DistinctPoints
from manifoldry.dimension.profile import ScaleProfile
from manifoldry.dimension.result import MANY_TIES, Dimension
from manifoldry.util.typing import Array

# Methods that look at small neighborhoods, and can be expected to agree.
LOCAL_METHODS = ("two_nn", "maximum_likelihood", "correlation_dimension", "local_pca")
_DENSITY_WEIGHTED = "correlation_dimension"  # counts pairs, most of which are in the densest part


@dataclass(frozen=True, eq=False)
class Consensus:
    """All estimates of one data set, with what tells them apart."""

    estimates: dict[str, Dimension]
    profile: ScaleProfile
    n_distinct: int
    n_samples: int
    n_connected: int
    local_dimensions: Array  # inverse-averaged dimension around every point; empty where unknown
    tied_fraction: float  # fraction of points whose two nearest neighbors are equally far
    recall: float  # fraction of their neighbors that were found
    n_features: float  # infinite where only a graph was given
    min_decrease: float = 0.15  # relative fall with the scale that is worth a word
    min_variation: float = 1.6  # ratio of local dimensions, 95th to 5th percentile, that is
    edge_bias_threshold: float = 0.08  # by which local PCA exceeds the methods that edges lower
    max_agreement_ratio: float = 1.15  # ratio of estimates up to which there is nothing to explain
    many_ties: float = MANY_TIES

    @classmethod
    def of(
        cls, data: DistinctPoints, estimates: dict[str, Dimension], profile: ScaleProfile
    ) -> "Consensus":
        """Gather what the explanation looks at."""
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
        )

    @cached_property
    def local_estimates(self) -> list[float]:
        """What the methods that look at neighborhoods say."""
        found = [float(self.estimates[name]) for name in LOCAL_METHODS if name in self.estimates]
        return found or [float(next(iter(self.estimates.values())))]

    @property
    def dimension(self) -> int:
        """Beyond the noise, where there is some to be seen, else the middle of the close methods.

        The elbow has a say where it is clear: edges do not lower it.
        """
        if self.dimension_above_noise is not None:
            return max(1, round(self.dimension_above_noise))
        elbow = [self.elbow] if self.elbow is not None and self.n_connected == 1 else []
        return max(1, round(float(np.median([*self.local_estimates, *elbow]))))

    @cached_property
    def local_range(self) -> tuple[float, float] | None:
        """Low and high local dimensions, where these differ by more than edges and chance do."""
        if len(self.local_dimensions) == 0:
            return None
        low, high = (float(value) for value in np.percentile(self.local_dimensions, [5, 95]))
        return (
            (low, high) if high >= self.min_variation * low and round(low) < round(high) else None
        )

    @property
    def range_values(self) -> list[float]:
        """What a range has to cover; where the dimension varies, not the densest part alone."""
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
        """The lower end of the range, a whole number."""
        return max(1, round(min(self.range_values)))

    @property
    def high(self) -> int:
        """The upper end of the range, a whole number."""
        return round(max(self.range_values))

    @cached_property
    def decreases(self) -> bool:
        """Whether the dimension is clearly lower at larger scales than at the smallest."""
        values = self.profile.values
        if len(values) < 3:
            return False
        smallest = min(values, key=float)
        return smallest < (1 - self.min_decrease) * values[0] and smallest.high < values[0].low

    @cached_property
    def decreases_by_noise(self) -> bool:
        """Whether the fall is that of noise: some directions are there, but hardly extend."""
        if not self.decreases or "local_pca" not in self.estimates:
            return self.decreases
        return float(self.estimates["local_pca"]) < 0.95 * float(self.profile.values[0])

    @cached_property
    def dimension_above_noise(self) -> float | None:
        """The dimension beyond the scale of the noise: on the plateau, or of the whole."""
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
        """The scale beyond the noise: that of the plateau, else the last one."""
        first, values = self.profile.plateau, [float(value) for value in self.profile.values]
        return first if first and self._levels_off(values, first) else len(values) - 1

    @staticmethod
    def _levels_off(values: list[float], first: int) -> bool:
        """Whether a plateau is much flatter than the way to it: edges lower all scales alike."""
        triple = values[first : first + 3]
        within = np.log(max(triple) / min(triple)) / 2
        before = np.log(values[0] / np.mean(triple)) / (first + 1)
        return bool(before > 2 * within)

    @property
    def elbow(self) -> int | None:
        """Coordinates that the unrolled map needs, where maps of parts of the points agree."""
        found = self.estimates.get("residual_variance_elbow")
        if found is None or found.value.high - found.value.low > 1:
            return None
        return round(float(found))

    @cached_property
    def edge_bias(self) -> tuple[float, float] | None:
        """What neighbor distances say and what local PCA says, where edges part the two."""
        names = [name for name in ("two_nn", "maximum_likelihood") if name in self.estimates]
        values = self.profile.values
        decline = len(values) > 2 and values[-1] < (1 - self.edge_bias_threshold) * values[0]
        if "local_pca" not in self.estimates or not names or self.decreases_by_noise or not decline:
            return None
        by_distance = float(np.mean([float(self.estimates[name]) for name in names]))
        by_variance = float(self.estimates["local_pca"])
        return (
            (by_distance, by_variance)
            if by_variance > (1 + self.edge_bias_threshold) * by_distance
            else None
        )

    @property
    def max_resolvable(self) -> float:
        """About the largest dimension that ratios of neighbor distances can tell with n points."""
        return 2 * float(np.log10(self.n_distinct))


def smoothed_dimensions(data: DistinctPoints, estimates: dict[str, Dimension]) -> Array:
    """Dimension around every distinct point, inverses averaged with its neighbors'.

    A single neighborhood says little; twenty of them tell apart 2 and 5 dimensions.
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
