"""Kernels κ(d²) of pairs of points on a map: what attracts is −log κ, what repels is κ."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from manifoldry.objectives.pair_sums import (
    PairSums,
    gaussian_moments,
    gaussian_sums,
    student_moments,
    student_sums,
)
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


class PairKernel(ABC):
    """A kernel with κ′ = −slope·κ·pull and κ″ = bend·κ·pull², derivatives being by d²."""

    @property
    @abstractmethod
    def slope(self) -> float:
        """−κ′/κ where points coincide."""

    @property
    @abstractmethod
    def bend(self) -> float:
        """κ″/κ where points coincide."""

    @abstractmethod
    def log(self, D: Array) -> Array:
        """Log κ of squared distances."""

    @abstractmethod
    def pull(self, D: Array) -> Array:
        """How much weaker a pair pulls than it would if it coincided; one at d² = 0."""

    @abstractmethod
    def sums(self, Y: Array, charges: Array | None = None) -> PairSums:
        """Σⱼ aⱼ·κ, and Σⱼ aⱼ·κ·pull·(yᵢ − yⱼ)."""

    @abstractmethod
    def moments(self, Y: Array, charges: Array | None = None) -> Array:
        """Σⱼ aⱼ·κ·pull²·(yᵢ − yⱼ)², coordinate by coordinate."""


@dataclass(frozen=True)
class GaussianKernel(PairKernel):
    """κ = exp(−d²)."""

    @property
    def slope(self) -> float:
        return 1.0

    @property
    def bend(self) -> float:
        return 1.0

    def log(self, D: Array) -> Array:
        return -D

    def pull(self, D: Array) -> Array:
        return np.ones_like(D)

    def sums(self, Y: Array, charges: Array | None = None) -> PairSums:
        return gaussian_sums(Y, charges=charges)

    def moments(self, Y: Array, charges: Array | None = None) -> Array:
        return gaussian_moments(Y, charges=charges)


@dataclass(frozen=True)
class StudentKernel(PairKernel):
    """κ = (1 + d²/α)^{−(α+1)/2}, with α degrees of freedom."""

    dof: float = 1.0

    def __post_init__(self) -> None:
        check_positive("dof", self.dof)

    @property
    def slope(self) -> float:
        return (self.dof + 1) / (2 * self.dof)

    @property
    def bend(self) -> float:
        return self.slope * (self.slope + 1 / self.dof)

    def log(self, D: Array) -> Array:
        return -self.dof * self.slope * np.log1p(D / self.dof)

    def pull(self, D: Array) -> Array:
        return 1 / (1 + D / self.dof)

    def sums(self, Y: Array, charges: Array | None = None) -> PairSums:
        return student_sums(Y, charges=charges, dof=self.dof)

    def moments(self, Y: Array, charges: Array | None = None) -> Array:
        return student_moments(Y, charges=charges, dof=self.dof)
