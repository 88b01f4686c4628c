"""Kernel regression for data in units of their own."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.extension.base import Extension
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.projection import OrthogonalProjection
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_memory


@dataclass(frozen=True, eq=False)
class FramedProjection(Extension):
    """Orthogonal projection of data in their own units."""

    frame: Frame
    projection: OrthogonalProjection

    def transform(self, X: Matrix) -> Array:
        return self.projection.transform(_dense(self.frame.apply(X)))


@dataclass(frozen=True, eq=False)
class FramedRegression:
    """The data at map positions, in their own units."""

    frame: Frame
    surface: KernelRegressionMap

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        return self.frame.origin + self.frame.unit * self.surface.predict(Z)

    def jacobian(self, Z: Array) -> Array:
        """Derivatives of the data by the map positions, (n_new, n_features, n_components)."""
        return self.frame.unit * self.surface.jacobian(Z)


def in_frame(points: Matrix) -> tuple[Frame, Array]:
    """The data as a dense array, in units in which squares neither overflow nor vanish."""
    if sparse.issparse(points):
        plan_memory(8.0 * np.prod(points.shape), "sparse data as a dense array", "use fewer rows")
    frame = Frame.of(points)
    check_range(frame.unit)
    return frame, _dense(frame.apply(points))


def _dense(X: Matrix) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
