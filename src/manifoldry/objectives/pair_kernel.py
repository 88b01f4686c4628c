"""Kernels κ(d²) of pairs of embedded points, defined by −log κ and its derivatives."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array

MAX_COMPILED_DIMENSION = 3  # largest number of coordinates with compiled loops


class Kernel(ABC):
    """A positive function κ = exp(−φ) of the squared distance D = d² in the embedding.

    A subclass defines φ and its first two derivatives with respect to D, which must be finite at
    D = 0. Its sums are computed by numpy; :class:`GaussianKernel` and :class:`StudentKernel` also
    have compiled loops, see :class:`~manifoldry.objectives.Exact`. Methods return arrays of the
    dtype of `D`, or a float if the result is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import StudentKernel
    >>> StudentKernel().derivative(np.array([0.0, 1.0]))
    array([1. , 0.5])
    """

    quadratic: ClassVar[bool] = False
    """Whether φ is proportional to d²; the attraction is then a quadratic form in Y."""

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
        """κ; overridden where there is a faster formula than exp(−φ)."""
        return np.exp(-self.phi(D))

    def times_derivative(self, weights: Array, D: Array) -> Array:
        """Weights times φ′; overridden where there is a formula with fewer roundings."""
        return weights * self.derivative(D)

    def curvature(self, D: Array) -> Array | float:
        """max(κ″/κ, 0), where κ″/κ = φ′² − φ″."""
        derivative = self.derivative(D)
        return np.maximum(derivative * derivative - self.second_derivative(D), 0.0)

    @property
    def derivative_at_zero(self) -> float:
        """φ′ at D = 0."""
        return float(np.max(self.derivative(np.zeros(1))))

    @property
    def curvature_at_zero(self) -> float:
        """max(κ″/κ, 0) at D = 0."""
        return float(np.max(self.curvature(np.zeros(1))))


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """κ = exp(−d²), for which the attraction is quadratic."""

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
    """κ = (1 + d²/α)^{−(α+1)/2}, the heavy-tailed kernel of t-SNE.

    Parameters
    ----------
    dof : float, default=1.0
        Degrees of freedom α.
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
        """1 + d²/α; the division is skipped for α = 1."""
        return 1 + (D if self.dof == 1 else D / self.dof)


@dataclass(frozen=True)
class ComplementKernel(Kernel):
    """ψ = −log(1 − κ/(1 + ε)), the repulsive potential of a cross-entropy such as UMAP's.

    Parameters
    ----------
    kernel : Kernel
        κ, at most one.
    epsilon : float, default=1e-3
        ε, which keeps ψ finite at d = 0, where it is about −log ε. The default is UMAP's.
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
        """q/ψ (one where both are zero) and 1 − q, with q = κ/(1 + ε)."""
        q = self.kernel(D) / (1 + self.epsilon)
        psi = -np.log1p(-q)
        return np.divide(q, psi, out=np.ones_like(q), where=psi > 0), 1 - q


class KernelConstants(NamedTuple):
    """Constants of the compiled loops: κ = (1 + rate·D)^−power; both None for the Gaussian."""

    rate: float | None = None
    power: float | None = None


def kernel_constants(kernel: Kernel) -> KernelConstants | None:
    """Return the constants of a kernel that has compiled loops, else None."""
    if type(kernel) is GaussianKernel:  # a subclass may have another formula
        return KernelConstants()
    if type(kernel) is StudentKernel:
        # With one degree of freedom no power is needed.
        return KernelConstants(1 / kernel.dof, None if kernel.dof == 1 else kernel.power)
    return None
