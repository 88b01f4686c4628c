"""Forces on a new point of a map: the kernels they come from, and how repulsion is normalised."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manifoldry.objectives.pair_sums import gaussian_sums, student_sums
from manifoldry.util.typing import Array

_TINY = float(np.finfo(float).tiny)


class Terms(NamedTuple):
    """φ and its first two derivatives by the squared distance; constants stand for arrays."""

    phi: Array
    slope: Any
    bend: Any


class MapKernel(ABC):
    """A similarity κ = exp(−φ(d²)) of places on the map."""

    @abstractmethod
    def terms(self, D: Array) -> Terms:
        """φ, φ′ and φ″ at squared distances `D`."""

    @abstractmethod
    def total(self, Y: Array) -> float:
        """Σ κ over all ordered pairs of a map."""


@dataclass(frozen=True)
class GaussianMap(MapKernel):
    """κ = exp(−d²): SNE, symmetric SNE, elastic embedding."""

    def terms(self, D: Array) -> Terms:
        return Terms(D, 1.0, 0.0)

    def total(self, Y: Array) -> float:
        return float(gaussian_sums(Y).mass.sum())


@dataclass(frozen=True)
class StudentMap(MapKernel):
    """κ = (1 + d²/α)^{−(α+1)/2} with α degrees of freedom: t-SNE."""

    dof: float = 1.0

    def terms(self, D: Array) -> Terms:
        power = (self.dof + 1) / 2
        slope = power / (self.dof + D)
        return Terms(power * np.log1p(D / self.dof), slope, -slope * slope / power)

    def total(self, Y: Array) -> float:
        return float(student_sums(Y, dof=self.dof).mass.sum())


class RowRepulsion(ABC):
    """How the sum S = Σₙ aₙκ(x, xₙ) over the map enters the objective, as a function of log S.

    Logarithms, because S underflows between clusters that lie far apart.
    """

    @abstractmethod
    def of(self, log_sum: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Value and two derivatives; `weight` is the sum of each point's affinities."""


@dataclass(frozen=True)
class OwnNormaliser(RowRepulsion):
    """log S: the Kullback–Leibler divergence of the new point's row alone, as in SNE.

    With the Gaussian kernel the whole objective is convex: its minimiser is the place where the
    mean of the map under κ is the mean under the affinities.
    """

    def of(self, log_sum: Array, weight: Array) -> tuple[Array, Array, Array]:
        return weight * log_sum, weight, np.zeros_like(log_sum)


@dataclass(frozen=True)
class SharedNormaliser(RowRepulsion):
    """(n/2)·log(1 + 2S/Z): the joint divergence of n + 1 points, Z of the first n being frozen.

    It is what the training points themselves minimised: given their rows of n·P they stay where
    they are. A new point's affinities are one-sided, those with which it picks its neighbours,
    so training points that are placed anew move by what the other side adds. Far away S vanishes
    and attraction brings a point back, which the divergence of the row alone does not do.
    """

    n: int
    log_total: float

    @classmethod
    def of_map(cls, Y: Array, kernel: MapKernel) -> "SharedNormaliser":
        """The normaliser of a map, by its definition."""
        total = kernel.total(np.asarray(Y, np.float64))
        return cls(len(Y), float(np.log(max(total, _TINY))))

    def of(self, log_sum: Array, weight: Array) -> tuple[Array, Array, Array]:
        ratio = np.log(2) + log_sum - self.log_total
        whole = np.logaddexp(0.0, ratio)
        share = np.exp(ratio - whole)
        half = self.n / 2
        return half * whole, half * share, half * share * (1 - share)


@dataclass(frozen=True)
class PlainRepulsion(RowRepulsion):
    """strength·S: elastic embedding.

    In units in which the affinities of a point sum to one: with weights W⁺ and W⁻ that sum to one
    over all pairs of n points, strength is λ·n, and the aₙ are the new point's row of W⁻; where
    W⁻ is uniform, λ/(n − 1) and no aₙ.
    """

    strength: float

    def of(self, log_sum: Array, weight: Array) -> tuple[Array, Array, Array]:
        value = self.strength * np.exp(log_sum)
        return value, value, value
