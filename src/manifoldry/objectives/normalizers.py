"""How repulsion is normalized: functions R of all points' sums, on a map and for a new point."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion, as_repulsion
from manifoldry.util.checks import check_nonnegative, check_positive
from manifoldry.util.typing import Array, IntArray, Matrix


@dataclass(frozen=True, eq=False)
class NormalizerValue:
    """R at a map: how much it repels itself, and what that owes to every point's kernel_sums."""

    value: float
    log_rates: Array | float
    """log ∂R/∂mᵢ, of every point or of all."""
    underflowed: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Rows whose kernel_sums underflows and is known by its logarithm only."""

    @property
    def rates(self) -> Array | float:
        """∂R/∂mᵢ; zero for rows that are underflowed, whose part is added apart."""
        if np.ndim(self.log_rates) == 0:
            return float(np.exp(self.log_rates))
        near = np.array(self.log_rates)
        near[self.underflowed] = -np.inf
        return np.exp(near)

    def symmetric_sum(self, unweighted: Array, weighted: Callable[[Array], Array]) -> Array:
        """Σⱼ (rᵢ + rⱼ)·(…), from sums with unit charges and, where rates differ, with charges r."""
        rates = self.rates
        if not isinstance(rates, np.ndarray):
            return 2 * rates * unweighted
        return rates[:, None] * unweighted + weighted(rates)


class RowTerm(NamedTuple):
    """What repulsion adds to the objective of a new point, by log S; and two derivatives."""

    value: Array
    derivative: Array
    second_derivative: Array


class Normalizer(ABC):
    """A function R of the masses mᵢ = Σⱼ wᵢⱼ·ψ(dᵢⱼ²), ψ being the repulsive potential.

    The same object says how a new point is repelled: S = Σⱼ aⱼ·ψ(‖x − yⱼ‖²) is its sum over the
    map, known by its logarithm, because it underflows between clusters that lie underflowed apart.
    """

    shared: ClassVar[bool] = False
    """Whether a new point is normalized together with the map, whose R counts then."""

    def on(self, n: int) -> Self:
        """The normalizer of n points."""
        return self

    def repulsion(self, n: int) -> Repulsion:
        """The weights w of the pairs in the masses; one each by default."""
        return UniformRepulsion(n, float(n * (n - 1)))

    @abstractmethod
    def evaluate(
        self, kernel_sums: Array, log_kernel_sums: Callable[[IntArray], Array]
    ) -> NormalizerValue:
        """R of the masses; `log_kernel_sums` gives the logarithms of those rows that underflow."""

    @abstractmethod
    def row(self, log_sum: Array, affinity: Array, n: int, normalizer_value: float) -> RowTerm:
        """What a new point adds to R, times n/2: twice of every pair, or n times of its row alone.

        `affinity` is the sum of its affinities, about one, `n` the number of points on the map,
        `normalizer_value` its R, known where it is :attr:`shared`.
        """

    @property
    def new_point_weights(self) -> Repulsion | None:
        """Whose ``rows(X)`` are the weights a of new points with data X; None for one each."""
        return None

    def without_cache(self) -> Self:
        """The same, without what is large and can be computed again."""
        return self


@dataclass(frozen=True)
class Joint(Normalizer):
    """R = log Σᵢ mᵢ: all pairs are normalized together, as in symmetric SNE and t-SNE.

    A new point adds log(1 + 2S/Z), the joint divergence of n + 1 points, Z of the first n
    being frozen. It is what the training points themselves minimized: given their rows of n·P they
    stay where they are. A new point's affinities are one-sided, those with which it picks its
    neighbors, so training points that are placed anew move by what the other side adds. Far
    away S vanishes and attraction brings a point back, which the divergence of the row alone does
    not do.

    Parameters
    ----------
    underflow : float, default=1e-25
        Sums below this have lost digits in single precision, or all of them: they are taken in
        logarithms.
    """

    underflow: float = 1e-25

    shared = True

    def evaluate(
        self, kernel_sums: Array, log_kernel_sums: Callable[[IntArray], Array]
    ) -> NormalizerValue:
        total = float(kernel_sums.sum())
        if not total < self.underflow:
            return NormalizerValue(float(np.log(total)), -float(np.log(total)))
        everyone = np.arange(len(kernel_sums))
        value = float(logsumexp(log_kernel_sums(everyone)))
        return NormalizerValue(value, np.full(len(kernel_sums), -value), everyone)

    def row(self, log_sum: Array, affinity: Array, n: int, normalizer_value: float) -> RowTerm:
        ratio = np.log(2) + log_sum - normalizer_value
        whole = np.logaddexp(0.0, ratio)
        fraction = np.exp(ratio - whole)
        return RowTerm(n / 2 * whole, n / 2 * fraction, n / 2 * fraction * (1 - fraction))


@dataclass(frozen=True)
class PerPoint(Normalizer):
    """R = fraction·Σᵢ log(self_weight + mᵢ): each point's row is normalized by itself, as in SNE.

    A new point adds fraction·log(self_weight + S), the divergence of its row alone. With the Gaussian kernel
    its whole objective is convex: the minimizer is the place where the mean of the map under κ
    is the mean under the affinities.

    Parameters
    ----------
    fraction : float, default=1.0
        Part of a point in the whole; 1/n for means over points.
    self_weight : float, default=0.0
        What a point counts among its own neighbors.
    underflow : float, default=1e-25
        As of :class:`Joint`, for sums over a row.
    """

    fraction: float = 1.0
    self_weight: float = 0.0
    underflow: float = 1e-25

    def __post_init__(self) -> None:
        check_positive("fraction", self.fraction)
        check_nonnegative("self_weight", self.self_weight)

    def evaluate(
        self, kernel_sums: Array, log_kernel_sums: Callable[[IntArray], Array]
    ) -> NormalizerValue:
        kernel_sums = np.asarray(kernel_sums) + self.self_weight
        underflowed = np.flatnonzero(kernel_sums < self.underflow)
        log_sums = np.log(np.maximum(kernel_sums, self.underflow))
        log_sums[underflowed] = log_kernel_sums(underflowed)
        return NormalizerValue(
            self.fraction * float(log_sums.sum()), np.log(self.fraction) - log_sums, underflowed
        )

    def row(self, log_sum: Array, affinity: Array, n: int, normalizer_value: float) -> RowTerm:
        weight = n * self.fraction * affinity
        if self.self_weight == 0:
            return RowTerm(weight * log_sum, weight, np.zeros_like(log_sum))
        whole = np.logaddexp(np.log(self.self_weight), log_sum)
        part = np.exp(log_sum - whole)
        return RowTerm(weight * whole, weight * part, weight * part * (1 - part))


@dataclass(frozen=True, eq=False)
class Unnormalized(Normalizer):
    """R = Σᵢ mᵢ: every pair adds its weight times its potential, as in the elastic embedding.

    A new point adds 2·S, aⱼ being its own weights with the points of the map.

    Parameters
    ----------
    weights : Repulsion, array of shape (n, n) or "uniform", default="uniform"
        The w; a matrix is scaled to sum to one.
    """

    weights: Repulsion | Matrix | str = "uniform"

    def on(self, n: int) -> Self:
        return replace(self, weights=as_repulsion(self.weights, n))

    def repulsion(self, n: int) -> Repulsion:
        return as_repulsion(self.weights, n)

    def evaluate(
        self, kernel_sums: Array, log_kernel_sums: Callable[[IntArray], Array]
    ) -> NormalizerValue:
        return NormalizerValue(float(kernel_sums.sum()), 0.0)

    def row(self, log_sum: Array, affinity: Array, n: int, normalizer_value: float) -> RowTerm:
        each = self.repulsion(n).scale if self.new_point_weights is None else 1.0
        value = n * each * np.exp(log_sum)
        return RowTerm(value, value, value)

    @property
    def new_point_weights(self) -> Repulsion | None:
        if isinstance(self.weights, UniformRepulsion) or not isinstance(self.weights, Repulsion):
            return None
        return self.weights

    def without_cache(self) -> Self:
        if not isinstance(self.weights, Repulsion):
            return self
        return replace(self, weights=self.weights.without_cache())
