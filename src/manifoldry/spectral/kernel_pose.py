"""The eigenproblem of a kernel matrix, centred in feature space."""

from dataclasses import dataclass

import numpy as np

from manifoldry.affinity.dense import Centered, RawKernel
from manifoldry.eigen import SpectralProblem, Spectrum
from manifoldry.extension.base import Nystrom
from manifoldry.util.typing import Array
from manifoldry.util.validation import largest_modulus, plan_memory, square_tiles


@dataclass(frozen=True, eq=False)
class KernelPose:
    """A centred kernel matrix, and the kernel as a function of new points."""

    kernel: Centered
    problem: SpectralProblem
    unit: float  # length in which the kernel is computed: its entries carry the square

    @classmethod
    def of(cls, raw: RawKernel, K: Array, unit: float = 1.0) -> "KernelPose":
        """Centre `K`, the values of the kernel `raw` on the training points, in place."""
        largest = largest_modulus(K)
        if not np.isfinite(largest):
            raise ValueError(
                "the Gram matrix has NaN or infinite entries; rescale the data or change the kernel"
            )
        rounding = 8 * np.finfo(np.float64).eps * largest
        _symmetrise(K)
        kernel, K = Centered.of(raw, K)
        if largest_modulus(K) <= rounding:
            K[:] = 0.0  # all points are one in feature space; the rest is no direction
        problem = SpectralProblem(K, "largest", deflate=np.ones(len(K)), scale="sqrt_eigenvalue")
        return cls(kernel, problem, unit)

    def extend(self, spectrum: Spectrum) -> Nystrom:
        """Nyström's formula, which gives the training points their coordinates."""
        return Nystrom(self.kernel, spectrum.dual_vectors * self.unit)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the centred kernel matrix."""
        return float(np.vdot(self.problem.operator, self.problem.operator))


def _symmetrise(K: Array) -> None:
    """Replace K by the mean of itself and its transpose."""
    for rows, columns in square_tiles(len(K)):
        mean = (K[rows, columns] + K[columns, rows].T) / 2
        K[rows, columns], K[columns, rows] = mean, mean.T


def plan_gram(n: int, copies: float = 4.5, remedy: str = "use fewer points") -> None:
    """Refuse up front a Gram matrix, with the copies its decomposition makes, that cannot fit."""
    plan_memory(8.0 * copies * n * n, f"the Gram matrix of {n} points", remedy)
