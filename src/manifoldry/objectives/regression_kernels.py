"""Kernels of regression on an embedding."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from manifoldry.device.vectors import centered
from manifoldry.objectives.base import check_embedding
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array


class RegressionWeights(NamedTuple):
    """Weights of kernel regression and their derivatives, (n_targets, n_sources)."""

    weights: Array
    """κ(d²)/Σκ(d²), which sum to one over a row."""
    negative_derivative: Array
    """−κ′(d²)/Σκ(d²)."""
    log_kernel_sum: Array
    """log Σκ(d²), (n_targets,)."""


class RegressionKernel(ABC):
    """A decreasing function κ of the squared distance t = d² in the embedding, with κ(0) = 1.

    Its width is one: the scale of the embedding takes the role of a bandwidth.
    """

    name: ClassVar[str]

    @abstractmethod
    def value(self, t: Array) -> Array:
        """κ(t)."""

    @abstractmethod
    def negative_derivative(self, t: Array) -> Array:
        """−κ′(t)."""

    @abstractmethod
    def second_derivative(self, t: Array) -> Array:
        """κ″(t)."""

    def reach(self, negligible: float) -> float:
        """Squared distance r with κ(t + r) ≤ negligible·κ(t) for all t; infinite if unknown."""
        return np.inf

    def weights(self, D: Array) -> RegressionWeights:
        """Regression weights at squared distances `D`; infinite distances have weight zero."""
        K = self.value(D)
        total = K.sum(axis=1)
        K /= total[:, None]
        derivative = self.negative_derivative(D)
        derivative /= total[:, None]
        return RegressionWeights(K, derivative, np.log(total))

    def normalized_second_derivative(self, D: Array, log_kernel_sum: Array) -> Array:
        """κ″(d²)/Σκ(d²), given log Σκ."""
        K: Array = self.second_derivative(D) / np.exp(log_kernel_sum)[:, None]
        return K


@dataclass(frozen=True)
class GaussianRegressionKernel(RegressionKernel):
    """κ = exp(−t)."""

    name = "gaussian"

    def value(self, t: Array) -> Array:
        return np.exp(-t)

    negative_derivative = second_derivative = value

    def reach(self, negligible: float) -> float:
        return float(-np.log(negligible))

    def weights(self, D: Array) -> RegressionWeights:
        # Relative to the nearest source: far from all sources the sum would underflow.
        nearest = D.min(axis=1)
        K = nearest[:, None] - D
        np.exp(K, out=K)
        total = K.sum(axis=1)
        K /= total[:, None]
        return RegressionWeights(K, K, np.log(total) - nearest)

    def normalized_second_derivative(self, D: Array, log_kernel_sum: Array) -> Array:
        return np.exp(-D - log_kernel_sum[:, None])


@dataclass(frozen=True)
class StudentRegressionKernel(RegressionKernel):
    """κ = 1/(1 + t); its heavy tails let outliers return to the other points."""

    name = "student"

    def value(self, t: Array) -> Array:
        return 1 / (1 + t)

    def negative_derivative(self, t: Array) -> Array:
        return 1 / (1 + t) ** 2

    def second_derivative(self, t: Array) -> Array:
        return 2 / ((1 + t) ** 2 * (1 + t))


@dataclass(frozen=True)
class CompactRegressionKernel(RegressionKernel):
    """A kernel that is zero for t ≥ 1, that is, beyond distance one.

    The regression adds a small multiple of the Gaussian, so that points without neighbors within
    distance one still have a fitted value, that of the nearest point, and a nonzero gradient.

    Parameters
    ----------
    tail : float, default=1e-6
        Factor of the Gaussian. The transition to the Gaussian has a width of √tail; 1e-12 would
        make it too steep.
    """

    tail: float = 1e-6

    def reach(self, negligible: float) -> float:
        # Beyond distance one only the Gaussian is left, and κ is not less than it anywhere.
        return max(1.0, float(-np.log(negligible)))

    def weights(self, D: Array) -> RegressionWeights:
        nearest = D.min(axis=1)
        isolated = nearest >= 1  # only the Gaussian is left, taken relative to the nearest
        tail = np.where(isolated, nearest, np.log(self.tail))[:, None] - D
        np.exp(tail, out=tail)
        K, derivative = self.value(D), self.negative_derivative(D)
        K += tail
        derivative += tail
        total = K.sum(axis=1)
        K /= total[:, None]
        derivative /= total[:, None]
        return RegressionWeights(
            K, derivative, np.log(total) + np.where(isolated, np.log(self.tail) - nearest, 0.0)
        )

    def normalized_second_derivative(self, D: Array, log_kernel_sum: Array) -> Array:
        tail = np.exp(np.log(self.tail) - D - log_kernel_sum[:, None])
        # With a point within distance one the sum is at least tail/e; otherwise κ″ is zero.
        total = np.exp(np.maximum(log_kernel_sum, np.log(self.tail) - 1))
        K: Array = self.second_derivative(D) / total[:, None] + tail
        return K


@dataclass(frozen=True)
class QuarticKernel(CompactRegressionKernel):
    """κ = (1 − t)² within distance one; its derivative is continuous."""

    name = "quartic"

    def value(self, t: Array) -> Array:
        return np.maximum(1 - t, 0.0) ** 2

    def negative_derivative(self, t: Array) -> Array:
        return 2 * np.maximum(1 - t, 0.0)

    def second_derivative(self, t: Array) -> Array:
        return np.where(t < 1, 2.0, 0.0)


@dataclass(frozen=True)
class TriweightKernel(CompactRegressionKernel):
    """κ = (1 − t)³ within distance one; its second derivative is continuous."""

    name = "triweight"

    def value(self, t: Array) -> Array:
        left = np.maximum(1 - t, 0.0)
        return left * left * left  # numpy's third power is ten times slower

    def negative_derivative(self, t: Array) -> Array:
        return 3 * np.maximum(1 - t, 0.0) ** 2

    def second_derivative(self, t: Array) -> Array:
        return 6 * np.maximum(1 - t, 0.0)


KERNELS: dict[str, RegressionKernel] = {
    kernel.name: kernel
    for kernel in (
        GaussianRegressionKernel(),
        StudentRegressionKernel(),
        QuarticKernel(),
        TriweightKernel(),
    )
}


def as_kernel(kernel: str | RegressionKernel) -> RegressionKernel:
    """Return the kernel itself, or the one of that name.

    Examples
    --------
    >>> import numpy as np
    >>> as_kernel("quartic").weights(np.array([[0.0, 0.5, 9.0]])).weights.round(2)
    array([[0.8, 0.2, 0. ]])
    """
    if isinstance(kernel, RegressionKernel):
        return kernel
    return KERNELS[check_option("kernel", kernel, tuple(KERNELS))]


class CompiledConstants(NamedTuple):
    """Constants of a kernel in compiled loops."""

    power: int
    """Of 1 − t in a compact kernel; 0 for the Gaussian, -1 for Student's."""
    tail: float = 0.0
    """Factor of the Gaussian in a compact kernel."""


def compiled_constants(kernel: str | RegressionKernel) -> CompiledConstants | None:
    """Return the constants of a kernel that has compiled loops, else None."""
    kernel = as_kernel(kernel)
    kind = type(kernel)  # a subclass may have another formula
    if kind is GaussianRegressionKernel:
        return CompiledConstants(0)
    if kind is StudentRegressionKernel:
        return CompiledConstants(-1)
    if isinstance(kernel, CompactRegressionKernel) and kind in (QuarticKernel, TriweightKernel):
        return CompiledConstants(2 if kind is QuarticKernel else 3, kernel.tail)
    return None


def centered_embedding(Y: Array, n: int) -> Array:
    """Centered embedding in double precision."""
    Y = check_embedding(Y, n).astype(np.float64, copy=False)
    return centered(Y)
