"""Kernels κ(d²) of pairs of points on a map, each said once: by −log κ and its derivatives."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


class Kernel(ABC):
    """A positive function κ = exp(−φ) of the squared distance D = d² on a map.

    Attraction pulls along φ; repulsion, new points, the bifurcation of a collapsed map and the
    search for its scale follow from φ and its derivatives by D. A kernel of one's own defines
    those three, with derivatives that are finite at D = 0, and is summed by numpy; see
    :class:`~manifoldry.objectives.Exact` for those that have compiled loops. Results are arrays of
    the type of `D`, or a number where they are constant.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import StudentKernel
    >>> StudentKernel().derivative(np.array([0.0, 1.0]))
    array([1. , 0.5])
    """

    quadratic: ClassVar[bool] = False
    """Whether φ is proportional to d²: attraction is then a quadratic form of the map."""

    @abstractmethod
    def phi(self, D: Array) -> Array:
        """φ = −log κ."""

    @abstractmethod
    def derivative(self, D: Array) -> Array | float:
        """φ′."""

    @abstractmethod
    def second_derivative(self, D: Array) -> Array | float:
        """φ″."""

    def __call__(self, D: Array) -> Array:
        """κ; said again only where there is something faster than exp(−φ)."""
        return np.exp(-self.phi(D))

    def times_derivative(self, weights: Array, D: Array) -> Array:
        """Weights times φ′; said again only where there is something that rounds less often."""
        return weights * self.derivative(D)

    def curvature(self, D: Array) -> Array | float:
        """The part of κ″/κ = φ′² − φ″ that is not negative."""
        derivative = self.derivative(D)
        return np.maximum(derivative * derivative - self.second_derivative(D), 0.0)

    @property
    def derivative_at_zero(self) -> float:
        """φ′ where points coincide."""
        return float(np.max(self.derivative(np.zeros(1))))

    @property
    def curvature_at_zero(self) -> float:
        """κ″/κ where points coincide, if it is not negative."""
        return float(np.max(self.curvature(np.zeros(1))))


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """κ = exp(−d²): attraction is by springs."""

    quadratic = True

    def phi(self, D: Array) -> Array:
        return D

    def derivative(self, D: Array) -> Array | float:
        return 1.0

    def second_derivative(self, D: Array) -> Array | float:
        return 0.0

    def curvature(self, D: Array) -> Array | float:
        return 1.0


@dataclass(frozen=True)
class StudentKernel(Kernel):
    """κ = (1 + d²/α)^{−(α+1)/2}, with α degrees of freedom: its tails are heavy.

    Parameters
    ----------
    dof : float, default=1.0
        The α.
    """

    dof: float = 1.0

    def __post_init__(self) -> None:
        check_positive("dof", self.dof)

    @property
    def power(self) -> float:
        """(α + 1)/2."""
        return (self.dof + 1) / 2

    def phi(self, D: Array) -> Array:
        return self.power * np.log1p(D / self.dof)

    def derivative(self, D: Array) -> Array | float:
        return self.power / (self.dof + D)

    def second_derivative(self, D: Array) -> Array | float:
        derivative = self.derivative(D)
        return -derivative * derivative / self.power

    def times_derivative(self, weights: Array, D: Array) -> Array:
        factor = self.power / self.dof
        return (weights if factor == 1 else weights * factor) / self._base(D)

    def __call__(self, D: Array) -> Array:
        return np.asarray(self._base(D) ** -self.power)

    def _base(self, D: Array) -> Array:
        """1 + d²/α, without the pass over all pairs that a division by one would be."""
        return 1 + (D if self.dof == 1 else D / self.dof)


@dataclass(frozen=True)
class ComplementKernel(Kernel):
    """ψ = −log(1 − κ/(1 + ε)): the potential by which cross-entropies repel, as that of UMAP.

    Parameters
    ----------
    kernel : Kernel
        κ, at most one.
    epsilon : float, default=1e-3
        ε: points that coincide repel each other with −log ε or so, not infinitely; UMAP's own.
    """

    kernel: Kernel
    epsilon: float = 1e-3

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)

    def phi(self, D: Array) -> Array:
        return self.kernel.phi(D) + np.log1p(self.epsilon) + np.log(self._ratio(D)[0])

    def derivative(self, D: Array) -> Array | float:
        ratio, rest = self._ratio(D)
        return self.kernel.derivative(D) * ratio / rest

    def second_derivative(self, D: Array) -> Array | float:
        ratio, rest = self._ratio(D)
        derivative = self.kernel.derivative(D)
        return (
            ratio
            / rest
            * (self.kernel.second_derivative(D) + derivative * derivative * (ratio - 1) / rest)
        )

    def _ratio(self, D: Array) -> tuple[Array, Array]:
        """q/ψ, one where both vanish, and 1 − q, with q = κ/(1 + ε)."""
        q = self.kernel(D) / (1 + self.epsilon)
        psi = -np.log1p(-q)
        return np.divide(q, psi, out=np.ones_like(q), where=psi > 0), 1 - q
