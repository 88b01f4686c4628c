"""The eigenproblem that PCA, Euclidean scaling and linear kernel PCA have in common."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.eigen import Gram, SpectralProblem, Spectrum
from manifoldry.extension.affine import AffineMap
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_memory

# Sparse data are centred by subtracting moments, which loses this share's digits of the spread.
_SPREAD = 1e-4


@dataclass(frozen=True, eq=False)
class LinearPose:
    """The Gram matrix of centred data, in units in which nothing over- or underflows."""

    X: Matrix
    frame: Frame
    problem: SpectralProblem
    inertia: float  # sum of squared distances from the mean, in units of the frame

    @classmethod
    def of(cls, X: Matrix) -> "LinearPose":
        """Centre and scale `X`, and pose the problem on its factor: nothing n × n is formed."""
        if sparse.issparse(X):
            return cls._of_sparse(X)
        plan_memory(36.0 * X.shape[0] * X.shape[1], "centring the data", "use fewer rows")
        frame = Frame.of(X)
        check_range(frame.unit)
        F = frame.apply(X).astype(np.float64)
        F -= F.mean(axis=0)  # what rounding left of the mean
        problem = SpectralProblem(
            Gram(F),
            "largest",
            deflate=np.ones(len(F)),
            bounds=(0.0, np.inf),
            scale="sqrt_eigenvalue",
        )
        return cls(X, frame, problem, float((F**2).sum()))

    @classmethod
    def _of_sparse(cls, X: Matrix) -> "LinearPose":
        frame = Frame.of(X)
        check_range(frame.unit)
        F = frame.apply(X).astype(np.float64)
        whole = float((F.data**2).sum())
        inertia = whole - X.shape[0] * float((_column_means(F) ** 2).sum())
        if inertia < _SPREAD * whole:
            plan_memory(24.0 * X.shape[0] * X.shape[1], "centring the data", "shift them first")
            return cls.of(X.toarray())
        # Centring would fill the matrix in; keeping eigenvectors orthogonal to 1 is the same.
        problem = SpectralProblem(
            Gram(F),
            "largest",
            constraint=np.ones(X.shape[0]),
            bounds=(0.0, np.inf),
            scale="sqrt_eigenvalue",
        )
        return cls(X, frame, problem, inertia)

    @property
    def unit(self) -> float:
        """Length in which the problem is posed."""
        return self.frame.unit

    def extend(self, spectrum: Spectrum) -> AffineMap:
        """The affine map that gives the training points their coordinates."""
        return AffineMap.of(self.X, self.frame, spectrum)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the Gram matrix, from the smaller of its two sides."""
        F = self.problem.operator.factor
        if sparse.issparse(F):
            small = _centered_product(F)
        else:
            small = F.T @ F if F.shape[1] <= F.shape[0] else F @ F.T
        return float((small**2).sum())


def _centered_product(F: Matrix) -> Array:
    """The smaller of FᵀHF and HFFᵀH, H being the centring; F stays sparse."""
    if F.shape[1] <= F.shape[0]:
        mean = _column_means(F)
        return np.asarray((F.T @ F).toarray() - F.shape[0] * np.outer(mean, mean))
    K = (F @ F.T).toarray()
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())


def _column_means(F: Matrix) -> Array:
    return np.asarray(F.mean(axis=0)).ravel()
