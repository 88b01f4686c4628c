"""The eigenproblem that PCA, Euclidean scaling and linear kernel PCA have in common."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry._typing import Matrix
from manifoldry.eigen import Gram, SpectralProblem, Spectrum
from manifoldry.extension.affine import AffineMap
from manifoldry.neighbors.distances import Frame

# Beyond these magnitudes eigenvalues, being squares, leave the range of double precision.
_TINY, _HUGE = 1e-153, 1e153


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
        frame = Frame.of(X)
        if not _TINY < frame.unit < _HUGE:
            raise ValueError(
                f"the data have a spread of about {frame.unit:.0e}, whose square leaves the range "
                "of double precision; multiply X by a constant first"
            )
        F = frame.apply(X).astype(np.float64)
        ones = np.ones(X.shape[0])
        if sparse.issparse(X):
            # Centring would fill the matrix in; keeping eigenvectors orthogonal to 1 is the same.
            mean = np.asarray(F.mean(axis=0)).ravel()
            inertia = float((F.data**2).sum() - X.shape[0] * (mean**2).sum())
            problem = SpectralProblem(
                Gram(F), "largest", constraint=ones, bounds=(0.0, np.inf), scale="sqrt_eigenvalue"
            )
        else:
            F -= F.mean(axis=0)  # what rounding left of the mean
            inertia = float((F**2).sum())
            problem = SpectralProblem(
                Gram(F), "largest", deflate=ones, bounds=(0.0, np.inf), scale="sqrt_eigenvalue"
            )
        return cls(X, frame, problem, max(inertia, 0.0))

    def extend(self, spectrum: Spectrum) -> AffineMap:
        """The affine map that gives the training points their coordinates."""
        return AffineMap.of(self.X, self.frame, spectrum)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the Gram matrix, from the smaller of its two sides."""
        F = self.problem.operator.factor
        if sparse.issparse(F):
            F = sparse.csr_array(F)
            mean = np.asarray(F.mean(axis=0)).ravel()
            small = (F.T @ F).toarray() - F.shape[0] * np.outer(mean, mean)
        else:
            small = F.T @ F if F.shape[1] <= F.shape[0] else F @ F.T
        return float((small**2).sum())
