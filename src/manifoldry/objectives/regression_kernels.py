"""Kernels of regression on a map, as functions of the squared distance."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.spatial.distance import cdist

from manifoldry.objectives.base import check_map
from manifoldry.util.checks import check_option
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks


class Fractions(NamedTuple):
    """What each source has in a target's regression; targets are rows, (n_targets, n_sources)."""

    fraction: Array
    """κ(d²)/Σκ(d²): the weights, which sum to one over a row."""
    slope: Array
    """−κ′(d²)/Σκ(d²)."""
    log_mass: Array
    """log Σκ(d²), (n_targets,)."""


class RegressionKernel(ABC):
    """A decreasing function κ of the squared distance t = d² on a map, with κ(0) = 1.

    Its width is one: the scale of the map takes the part of a bandwidth.
    """

    name: ClassVar[str]

    @abstractmethod
    def value(self, t: Array) -> Array:
        """κ(t)."""

    @abstractmethod
    def slope(self, t: Array) -> Array:
        """−κ′(t)."""

    @abstractmethod
    def bend(self, t: Array) -> Array:
        """κ″(t)."""

    def fractions(self, D: Array) -> Fractions:
        """Weights at squared distances `D`, whose infinite entries do not count."""
        K = self.value(D)
        mass = K.sum(axis=1)
        K /= mass[:, None]
        slope = self.slope(D)
        slope /= mass[:, None]
        return Fractions(K, slope, np.log(mass))

    def bends(self, D: Array, log_mass: Array) -> Array:
        """κ″(d²)/Σκ(d²), given log Σκ."""
        return np.asarray(self.bend(D) / np.exp(log_mass)[:, None])


@dataclass(frozen=True)
class GaussianRegression(RegressionKernel):
    """κ = exp(−t): smooth, and every point counts, if ever so little."""

    name = "gaussian"

    def value(self, t: Array) -> Array:
        return np.asarray(np.exp(-t))

    slope = bend = value

    def fractions(self, D: Array) -> Fractions:
        # Relative to the nearest source: far from all of them the mass would underflow.
        nearest = D.min(axis=1)
        K = nearest[:, None] - D
        np.exp(K, out=K)
        mass = K.sum(axis=1)
        K /= mass[:, None]
        return Fractions(K, K, np.log(mass) - nearest)

    def bends(self, D: Array, log_mass: Array) -> Array:
        return np.asarray(np.exp(-D - log_mass[:, None]))


@dataclass(frozen=True)
class StudentRegression(RegressionKernel):
    """κ = 1/(1 + t): far points keep a say, so outliers find their way back."""

    name = "student"

    def value(self, t: Array) -> Array:
        return np.asarray(1 / (1 + t))

    def slope(self, t: Array) -> Array:
        return np.asarray(1 / (1 + t) ** 2)

    def bend(self, t: Array) -> Array:
        return np.asarray(2 / ((1 + t) ** 2 * (1 + t)))


@dataclass(frozen=True)
class Compact(RegressionKernel):
    """A kernel that is zero for t ≥ 1: only points within distance one count.

    Regression adds a little of a Gaussian, for points that have none within reach.

    Parameters
    ----------
    tail : float, default=1e-6
        How much: a point without neighbors in reach still has a fitted value, that of the nearest
        point, and a gradient that leads back. The kernel turns to the Gaussian over a width of
        √tail; 1e-12 would make that a cliff.
    """

    tail: float = 1e-6

    def fractions(self, D: Array) -> Fractions:
        nearest = D.min(axis=1)
        lonely = nearest >= 1  # only the tail is left, relative to the nearest as for the Gaussian
        tail = np.where(lonely, nearest, np.log(self.tail))[:, None] - D
        np.exp(tail, out=tail)
        K, slope = self.value(D), self.slope(D)
        K += tail
        slope += tail
        mass = K.sum(axis=1)
        K /= mass[:, None]
        slope /= mass[:, None]
        return Fractions(
            K, slope, np.log(mass) + np.where(lonely, np.log(self.tail) - nearest, 0.0)
        )

    def bends(self, D: Array, log_mass: Array) -> Array:
        tail = np.exp(np.log(self.tail) - D - log_mass[:, None])
        # Where a point is in reach the mass is at least ε/e; elsewhere the bend itself is zero.
        mass = np.exp(np.maximum(log_mass, np.log(self.tail) - 1))
        return np.asarray(self.bend(D) / mass[:, None] + tail)


@dataclass(frozen=True)
class Quartic(Compact):
    """κ = (1 − t)² within distance one: the gradient is continuous."""

    name = "quartic"

    def value(self, t: Array) -> Array:
        return np.asarray(np.maximum(1 - t, 0.0) ** 2)

    def slope(self, t: Array) -> Array:
        return np.asarray(2 * np.maximum(1 - t, 0.0))

    def bend(self, t: Array) -> Array:
        return np.where(t < 1, 2.0, 0.0)


@dataclass(frozen=True)
class Triweight(Compact):
    """κ = (1 − t)³ within distance one: the curvature is continuous too."""

    name = "triweight"

    def value(self, t: Array) -> Array:
        left = np.maximum(1 - t, 0.0)
        return np.asarray(left * left * left)  # numpy's third power is ten times slower

    def slope(self, t: Array) -> Array:
        return np.asarray(3 * np.maximum(1 - t, 0.0) ** 2)

    def bend(self, t: Array) -> Array:
        return np.asarray(6 * np.maximum(1 - t, 0.0))


KERNELS: dict[str, RegressionKernel] = {
    kernel.name: kernel
    for kernel in (GaussianRegression(), StudentRegression(), Quartic(), Triweight())
}


def as_kernel(kernel: str | RegressionKernel) -> RegressionKernel:
    """The kernel itself, or the one of that name.

    Examples
    --------
    >>> import numpy as np
    >>> as_kernel("quartic").fractions(np.array([[0.0, 0.5, 9.0]])).fraction.round(2)
    array([[0.8, 0.2, 0. ]])
    """
    if isinstance(kernel, RegressionKernel):
        return kernel
    return KERNELS[check_option("kernel", kernel, tuple(KERNELS))]


Result = TypeVar("Result")


def over_pairs(
    work: Callable[[slice, Array], Result],
    Y: Array,
    leave_one_out: bool = True,
    *,
    arrays: int = 5,  # of the size of a block, alive at a time
    budget: int = 2**21,  # numbers in them: 16 MiB a thread, of which the cache holds most
) -> list[Result]:
    """Results of `work` for all blocks of rows, and their squared distances to all points.

    The distance to a row that is left out is infinite. Blocks do not depend on the number of
    threads, so neither do sums of the results.
    """
    n = len(Y)

    def at(block: slice) -> Result:
        D = cdist(Y[block], Y, "sqeuclidean")
        if leave_one_out:
            D[np.arange(len(D)), np.arange(n)[block]] = np.inf
        return work(block, D)

    blocks = row_blocks(n, arrays * n, budget)
    with one_blas_thread() if len(blocks) > 1 else nullcontext():
        return map_threads(at, blocks)


def gradient_part(C: Array, Y: Array, block: slice) -> Array:
    """Gradient (n, d) of a function whose derivative by a block's squared distances is `C`.

    With T the derivative by all of them, the sum over blocks is 2·lap(T + Tᵀ)·Y.
    """
    G = 2 * (C.sum(axis=0)[:, None] * Y - C.T @ Y[block])
    G[block] += 2 * (C.sum(axis=1)[:, None] * Y[block] - C @ Y)
    return np.asarray(G)


def centered_map(Y: Array, n: int) -> Array:
    """The map in double precision around its mean, where differences keep their digits."""
    Y = check_map(Y, n).astype(np.float64, copy=False)
    return np.asarray(Y - Y.mean(axis=0))
