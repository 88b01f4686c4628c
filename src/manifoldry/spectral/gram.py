"""Estimators that decompose a centred Gram matrix: classical scaling and kernel PCA."""

from abc import abstractmethod
from typing import Any

import numpy as np

from manifoldry._rows import RowLookup
from manifoldry._typing import Array, Matrix
from manifoldry._validation import plan_memory
from manifoldry.eigen import SpectralProblem, Spectrum
from manifoldry.extension.affine import AffineMap
from manifoldry.extension.base import Extension, Nystrom
from manifoldry.extension.kernels import Centered, RawKernel, dual_vectors
from manifoldry.extension.regression import LocalRegression
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.linear import LinearPose


class GramEmbedder(SpectralEmbedder):
    """Coordinates √ℓ·v from the leading eigenpairs of a centred Gram matrix.

    A subclass says whether its Gram matrix is that of the data themselves (``_is_linear``), and
    otherwise provides the kernel in ``_kernel_matrix``.
    """

    @property
    @abstractmethod
    def _is_linear(self) -> bool:
        """Whether the kernel is the inner product of the centred data."""

    @property
    @abstractmethod
    def _is_precomputed(self) -> bool:
        """Whether the user passes kernel values or distances in place of data."""

    @abstractmethod
    def _kernel_matrix(self, data: Matrix) -> tuple[RawKernel, Array]:
        """The uncentred kernel as a function of new points, and on the training points."""

    def _pose(self, data: Matrix) -> SpectralProblem:
        if self._is_linear:
            self._linear = LinearPose.of(data)
            self._unit, self._whole = self._linear.frame.unit, self._linear.squared_norm
            return self._linear.problem
        n = data.shape[0]
        plan_memory(24.0 * n * n, f"the Gram matrix of {n} points", "use fewer points")
        self._unit = 1.0
        raw, K = self._kernel_matrix(data)
        if not np.isfinite(K).all():
            raise ValueError(
                "the Gram matrix has NaN or infinite entries; rescale the data or change the kernel"
            )
        self._centered, K = Centered.of(raw, (K + K.T) / 2)
        self._whole = float((K**2).sum())
        return SpectralProblem(K, "largest", deflate=np.ones(n), scale="sqrt_eigenvalue")

    def _extend(self, data: Matrix, problem: SpectralProblem, spectrum: Spectrum) -> Extension:
        self._lookup = self._inverse = None
        if self._is_linear:
            extension = self._linear.extend(spectrum)
            del self._linear  # the data are not needed any more
            return extension
        if not self._is_precomputed:
            self._lookup = RowLookup.of(data)
            self._inverse = LocalRegression(self.embedding_, data)
        return Nystrom(self._centered, dual_vectors(spectrum) * self._unit)

    def _loss(self, spectrum: Spectrum) -> float:
        kept = float((np.maximum(spectrum.values, 0) ** 2).sum())
        return max(0.0, 1 - kept / self._whole) if self._whole > 0 else 0.0

    def _invert(self, Z: Array) -> Array:
        if isinstance(self._extension, AffineMap):
            return self._extension.inverse(Z)
        return super()._invert(Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags
