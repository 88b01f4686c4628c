"""Estimators that decompose a centred Gram matrix: PCA, classical scaling and kernel PCA."""

from abc import abstractmethod
from typing import Any

import numpy as np

from manifoldry.eigen import SpectralProblem, Spectrum
from manifoldry.extension.affine import AffineMap
from manifoldry.extension.base import Extension
from manifoldry.extension.regression import LocalRegression
from manifoldry.spectral.base import SpectralEmbedder
from manifoldry.spectral.kernel_pose import KernelPose
from manifoldry.spectral.linear_pose import LinearPose
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, Matrix


class GramEmbedder(SpectralEmbedder):
    """Coordinates √ℓ·v from the leading eigenpairs of a centred Gram matrix.

    A subclass says in ``_gram_of`` which matrix that is: of the data themselves, or a kernel.
    """

    # What is decomposed; as large as the data or their Gram matrix, so it goes when `fit` ends.
    _gram: LinearPose | KernelPose

    @abstractmethod
    def _gram_of(self, data: Matrix) -> LinearPose | KernelPose:
        """The centred Gram matrix of the training points."""

    @property
    def _is_precomputed(self) -> bool:
        """Whether the user passes kernel values or distances in place of data."""
        return False

    def _pose(self, data: Matrix) -> SpectralProblem:
        with np.errstate(over="ignore", invalid="ignore"):  # poses look for what these leave
            self._gram = self._gram_of(data)
        self._unit = self._gram.unit
        return self._gram.problem

    def _coordinates(self, data: Matrix, problem: SpectralProblem, spectrum: Spectrum) -> Array:
        if isinstance(self._gram, LinearPose):
            # Through the map itself, so that rounding of a far-off mean shifts both alike.
            return self._gram.extend(spectrum).transform(data)
        return super()._coordinates(data, problem, spectrum)

    def _extend(self, data: Matrix, problem: SpectralProblem, spectrum: Spectrum) -> Extension:
        extension = self._gram.extend(spectrum)
        del self._gram
        if not (isinstance(extension, AffineMap) or self._is_precomputed):
            self._lookup = RowLookup.of(data)
            self._inverse = LocalRegression(self.embedding_, data)
        return extension

    def _loss(self, spectrum: Spectrum) -> float:
        kept, whole = float((np.maximum(spectrum.values, 0) ** 2).sum()), self._gram.squared_norm
        return max(0.0, 1 - kept / whole) if whole > 0 else 0.0

    def _held_out(self, data: Matrix) -> tuple[Array, Array]:
        """The kernel among new points, (n, n), and their coordinates, in the problem's unit."""
        extension: Any = self._extension
        kernel = extension if isinstance(extension, AffineMap) else extension.kernel
        return kernel.among(data), extension.transform(data) / self._unit

    def _kernel_rows(self, data: Matrix) -> Matrix:
        if isinstance(self._extension, AffineMap):
            raise ValueError(
                f"this {type(self).__name__} is a linear map and keeps no data; its kernel is the "
                "inner product of centred rows, (X - mean) @ (X_train - mean).T"
            )
        return super()._kernel_rows(data)

    def _invert(self, Z: Array) -> Array:
        if isinstance(self._extension, AffineMap):
            return self._extension.inverse(Z)
        return super()._invert(Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags
