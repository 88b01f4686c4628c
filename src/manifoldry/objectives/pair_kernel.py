"""Kernels κ(d²) of pairs of embedded points, defined by −log κ and its derivatives."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array

MAX_COMPILED_DIMENSION = 3  # largest number of coordinates with compiled loops


class Kernel(ABC):
    """Base class of positive functions κ = exp(−φ) of the squared distance D = d² in the embedding.

    A subclass defines φ and its first two derivatives with respect to D, which must be finite at
    D = 0. Its sums are computed by numpy; :class:`GaussianKernel` and :class:`StudentKernel` also
    have compiled loops, see :class:`~manifoldry.objectives.Exact`. Methods return arrays of the
    dtype of `D`, or a float if the result is constant.

    See Also
    --------
    GaussianKernel, StudentKernel, ComplementKernel : the kernels of this package.
    Pairwise : takes a kernel.

    Examples
    --------
    A kernel that is Gaussian nearby and exponential far away, κ = exp(1 − √(1 + d²)):

    >>> import numpy as np
    >>> from manifoldry.objectives import Kernel
    >>> class Charbonnier(Kernel):
    ...     def phi(self, D):
    ...         return np.sqrt(1 + D) - 1
    ...     def derivative(self, D):
    ...         return 0.5 / np.sqrt(1 + D)
    ...     def second_derivative(self, D):
    ...         return -0.25 / (1 + D) ** 1.5
    >>> Charbonnier()(np.array([0.0, 1.0, 9.0])).round(3)
    array([1.   , 0.661, 0.115])
    """

    quadratic: ClassVar[bool] = False
    """Whether φ is proportional to d²; the attraction is then a quadratic form in Y."""

    @abstractmethod
    def phi(self, D: Array) -> Array:
        """Return φ = −log κ.

        Parameters
        ----------
        D : array
            Squared distances.

        Returns
        -------
        array
            Values of φ.
        """

    @abstractmethod
    def derivative(self, D: Array) -> Array | float:
        """Return φ′, the derivative of φ by D.

        Parameters
        ----------
        D : array
            Squared distances.

        Returns
        -------
        array or float
            Values of φ′.
        """

    @abstractmethod
    def second_derivative(self, D: Array) -> Array | float:
        """Return φ″, the second derivative of φ by D.

        Parameters
        ----------
        D : array
            Squared distances.

        Returns
        -------
        array or float
            Values of φ″.
        """

    def __call__(self, D: Array) -> Array:
        """κ; overridden where there is a faster formula than exp(−φ)."""
        return np.exp(-self.phi(D))

    def times_derivative(self, weights: Array, D: Array) -> Array:
        """Return weights times φ′; overridden where there is a formula with fewer roundings.

        Parameters
        ----------
        weights : array
            The weights.
        D : array
            Squared distances.

        Returns
        -------
        array
            The products.
        """
        return weights * self.derivative(D)

    def curvature(self, D: Array) -> Array | float:
        """Return max(κ″/κ, 0), where κ″/κ = φ′² − φ″.

        Parameters
        ----------
        D : array
            Squared distances.

        Returns
        -------
        array or float
            The values.
        """
        derivative = self.derivative(D)
        return np.maximum(derivative * derivative - self.second_derivative(D), 0.0)

    @property
    def derivative_at_zero(self) -> float:
        """Value of φ′ at D = 0."""
        return float(np.max(self.derivative(np.zeros(1))))

    @property
    def curvature_at_zero(self) -> float:
        """Value of max(κ″/κ, 0) at D = 0."""
        return float(np.max(self.curvature(np.zeros(1))))


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """Gaussian kernel κ = exp(−d²), for which the attraction is quadratic.

    It is the kernel of SNE, symmetric SNE and the elastic embedding.

    See Also
    --------
    StudentKernel : a kernel with heavier tails.
    Kernel : base class, for kernels of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import GaussianKernel
    >>> GaussianKernel()(np.array([0.0, 1.0, 9.0])).round(4)  # at distances 0, 1 and 3
    array([1.000e+00, 3.679e-01, 1.000e-04])
    """

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
    """Student's t kernel κ = (1 + d²/α)^{−(α+1)/2}, the heavy-tailed kernel of t-SNE.

    Parameters
    ----------
    dof : float, default=1.0
        Degrees of freedom α.

    See Also
    --------
    GaussianKernel : a kernel with light tails.
    Kernel : base class, for kernels of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import StudentKernel
    >>> StudentKernel()(np.array([0.0, 1.0, 9.0])).round(4)  # at distances 0, 1 and 3
    array([1. , 0.5, 0.1])
    """

    dof: float = 1.0

    def __post_init__(self) -> None:
        check_positive("dof", self.dof)

    @property
    def power(self) -> float:
        """The exponent (α + 1)/2."""
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
        return self._base(D) ** -self.power

    def _base(self, D: Array) -> Array:
        """1 + d²/α; the division is skipped for α = 1."""
        return 1 + (D if self.dof == 1 else D / self.dof)


@dataclass(frozen=True)
class ComplementKernel(Kernel):
    """Repulsive potential ψ = −log(1 − κ/(1 + ε)) of a cross-entropy such as UMAP's.

    Pass it to :class:`Pairwise` as ``potential``.

    Parameters
    ----------
    kernel : Kernel
        The kernel κ, which is at most one.
    epsilon : float, default=1e-3
        The constant ε, which keeps ψ finite at d = 0, where it is about −log ε. The default is
        UMAP's.

    See Also
    --------
    StudentKernel, GaussianKernel : kernels κ.
    Pairwise : the objective.

    Examples
    --------
    The cross-entropy of one pair of points at distance 1, where κ = 1/2: the attraction and the
    repulsion are both about log 2.

    >>> import numpy as np
    >>> from manifoldry.objectives import ComplementKernel, Pairwise, StudentKernel, Unnormalized
    >>> W, kernel = np.array([[0, 0.5], [0.5, 0]]), StudentKernel()
    >>> objective = Pairwise(W, kernel, Unnormalized(), potential=ComplementKernel(kernel))
    >>> round(objective.value(np.array([[0.0], [1.0]])), 3)
    1.385
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
        return np.where(psi > 0, q / np.where(psi > 0, psi, 1), 1), 1 - q


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
