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
class Level:
    """R at a map: how much it repels itself, and what that owes to every point's mass."""

    value: float
    log_rates: Array | float
    """log ∂R/∂mᵢ, of every point or of all."""
    far: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Rows whose mass underflows and is known by its logarithm only."""

    @property
    def rates(self) -> Array | float:
        """∂R/∂mᵢ; zero for rows that are far, whose part is added apart."""
        if np.ndim(self.log_rates) == 0:
            return float(np.exp(self.log_rates))
        near = np.array(self.log_rates)
        near[self.far] = -np.inf
        return np.exp(near)

    def both_ways(self, own: Array, charged: Callable[[Array], Array]) -> Array:
        """Σⱼ (rᵢ + rⱼ)·(…), from sums with unit charges and, where rates differ, with charges r."""
        rates = self.rates
        if not isinstance(rates, np.ndarray):
            return 2 * rates * own
        return rates[:, None] * own + charged(rates)


class RowTerm(NamedTuple):
    """What repulsion adds to the objective of a new point, by log S; and two derivatives."""

    value: Array
    slope: Array
    bend: Array


class Normalizer(ABC):
    """A function R of the masses mᵢ = Σⱼ wᵢⱼ·ψ(dᵢⱼ²), ψ being the repulsive potential.

    The same object says how a new point is repelled: S = Σⱼ aⱼ·ψ(‖x − yⱼ‖²) is its sum over the
    map, known by its logarithm, because it underflows between clusters that lie far apart.
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
    def level(self, mass: Array, log_masses: Callable[[IntArray], Array]) -> Level:
        """R of the masses; `log_masses` gives the logarithms of those rows that underflow."""

    @abstractmethod
    def row(self, log_sum: Array, affinity: Array, n: int, level: float) -> RowTerm:
        """What a new point adds to R, times n/2: twice of every pair, or n times of its row alone.

        `affinity` is the sum of its affinities, about one, `n` the number of points on the map,
        `level` its R, known where it is :attr:`shared`.
        """

    @property
    def charges(self) -> Repulsion | None:
        """Whose ``rows(X)`` are the weights a of new points with data X; None for one each."""
        return None

    def released(self) -> Self:
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

    def level(self, mass: Array, log_masses: Callable[[IntArray], Array]) -> Level:
        total = float(mass.sum())
        if not total < self.underflow:
            return Level(float(np.log(total)), -float(np.log(total)))
        everyone = np.arange(len(mass))
        value = float(logsumexp(log_masses(everyone)))
        return Level(value, np.full(len(mass), -value), everyone)

    def row(self, log_sum: Array, affinity: Array, n: int, level: float) -> RowTerm:
        ratio = np.log(2) + log_sum - level
        whole = np.logaddexp(0.0, ratio)
        fraction = np.exp(ratio - whole)
        return RowTerm(n / 2 * whole, n / 2 * fraction, n / 2 * fraction * (1 - fraction))


@dataclass(frozen=True)
class PerPoint(Normalizer):
    """R = share·Σᵢ log(own + mᵢ): each point's row is normalized by itself, as in SNE.

    A new point adds share·log(own + S), the divergence of its row alone. With the Gaussian kernel
    its whole objective is convex: the minimizer is the place where the mean of the map under κ
    is the mean under the affinities.

    Parameters
    ----------
    fraction : float, default=1.0
        Part of a point in the whole; 1/n for means over points.
    own : float, default=0.0
        What a point counts among its own neighbors.
    underflow : float, default=1e-25
        As of :class:`Joint`, for sums over a row.
    """

    fraction: float = 1.0
    own: float = 0.0
    underflow: float = 1e-25

    def __post_init__(self) -> None:
        check_positive("fraction", self.fraction)
        check_nonnegative("own", self.own)

    def level(self, mass: Array, log_masses: Callable[[IntArray], Array]) -> Level:
        mass = np.asarray(mass) + self.own
        far = np.flatnonzero(mass < self.underflow)
        log_mass = np.log(np.maximum(mass, self.underflow))
        log_mass[far] = log_masses(far)
        return Level(self.fraction * float(log_mass.sum()), np.log(self.fraction) - log_mass, far)

    def row(self, log_sum: Array, affinity: Array, n: int, level: float) -> RowTerm:
        weight = n * self.fraction * affinity
        if self.own == 0:
            return RowTerm(weight * log_sum, weight, np.zeros_like(log_sum))
        whole = np.logaddexp(np.log(self.own), log_sum)
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

    def level(self, mass: Array, log_masses: Callable[[IntArray], Array]) -> Level:
        return Level(float(mass.sum()), 0.0)

    def row(self, log_sum: Array, affinity: Array, n: int, level: float) -> RowTerm:
        each = self.repulsion(n).scale if self.charges is None else 1.0
        value = n * each * np.exp(log_sum)
        return RowTerm(value, value, value)

    @property
    def charges(self) -> Repulsion | None:
        if isinstance(self.weights, UniformRepulsion) or not isinstance(self.weights, Repulsion):
            return None
        return self.weights

    def released(self) -> Self:
        if not isinstance(self.weights, Repulsion):
            return self
        return replace(self, weights=self.weights.released())
