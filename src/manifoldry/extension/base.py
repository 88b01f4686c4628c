"""Base classes of out-of-sample extensions and inverses, and the Nyström formula."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.exceptions import ExtensionWarning, warn_about_rows
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_matrix, row_blocks


class EquivalentKernel(Protocol):
    """The kernel whose eigenvectors a spectral method computes, evaluated at new points."""

    @property
    def n_train(self) -> int:
        """Number of training points."""
        ...

    def rows(self, X: Matrix) -> Matrix:
        """Kernel between new points and training points, (n_new, n_train)."""
        ...


class Inverse(Protocol):
    """Map from coordinates to data."""

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        ...


class Extension(ABC):
    """Out-of-sample extension: coordinates of new points."""

    continuous_at_training: ClassVar[bool] = True
    """Whether coordinates near a training point tend to those that the formula gives it."""

    @abstractmethod
    def transform(self, X: Matrix) -> Array:
        """Coordinates of new points, (n_new, n_components)."""

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        """Coordinates of new points within their connected component, and its label.

        Define it, and `place`, if the embedding may have several components.
        """
        return self.transform(X), np.zeros(X.shape[0], dtype=np.intp)

    def place(self, Y: Array, component: IntArray) -> Array:
        """Convert coordinates within components to coordinates of the embedding."""
        return Y

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        """Kernel whose eigenvectors are the coordinates, between `X` and the training points.

        `known` is the index of the training point identical to each row, or -1.
        """
        raise ValueError(
            f"{type(self).__name__} defines no equivalent kernel; extensions that have one are "
            "subclasses of manifoldry.extension.KernelExtension"
        )


class KernelExtension(Extension):
    """An extension by an equivalent kernel."""

    @abstractmethod
    def rows(self, X: Matrix) -> Matrix:
        """Rows of the equivalent kernel, (n_new, n_train)."""

    @property
    @abstractmethod
    def numbers_per_row(self) -> int:
        """Number of values that one new point needs in memory."""

    def matrix(self, X: Matrix) -> Matrix:
        """Rows of the equivalent kernel for any number of points, computed in blocks."""
        n, first = X.shape[0], self.rows(X[:1])
        entries = first.nnz if sparse.issparse(first) else first.shape[1]
        what = f"the kernel between {n} and {first.shape[1]} points"
        plan_matrix((n, entries), 24, what, "pass fewer rows at a time")
        parts = [self.rows(X[block]) for block in row_blocks(n, self.numbers_per_row)]
        return sparse.vstack(parts, "csr") if sparse.issparse(first) else np.concatenate(parts)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.matrix(X)


@dataclass(frozen=True, eq=False)
class Nystrom(KernelExtension):
    """Nyström's formula: coordinates are kernel rows times dual vectors.

    For an eigenvector v of the Gram matrix with eigenvalue ℓ, the value at a new point x is
    Σᵢ K(x, xᵢ) vᵢ / ℓ, which equals v at training points. `dual` is v/ℓ, or v/√ℓ if the
    coordinates are √ℓ·v.
    """

    kernel: EquivalentKernel
    dual: Array  # (n_train, n_components)
    unit: float = 1.0  # the kernel is in units of unit²

    def rows(self, X: Matrix) -> Matrix:
        return self.kernel.rows(X)

    @property
    def numbers_per_row(self) -> int:
        return self.kernel.n_train

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.dual.shape[1]))
        for block in row_blocks(X.shape[0], self.numbers_per_row):
            out[block] = self.kernel.rows(X[block]) @ self.dual
        return out

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.matrix(X) * self.unit**2

    def kernel_pairs(self, X: Matrix) -> KernelPairs:
        """The kernel at pairs of new points, if it is known; for dual vectors v/√ℓ."""
        kernel: Any = self.kernel
        inverse = self.kernel.n_train * np.square(self.dual / self.unit).sum(axis=0)  # n/ℓ
        mean_squares = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=inverse > 0)
        Z = self.transform(X) / self.unit
        return KernelPairs.of_coordinates(np.asarray(kernel.among(X)), Z, mean_squares, self.unit)


def warn_if_not_converged(converged: NDArray[np.bool_]) -> None:
    """Warn if the searches for the coordinates of some new points did not converge."""
    warn_about_rows(
        int((~converged).sum()),
        len(converged),
        "the coordinates of {count} of {total} new points did not converge; they are the best "
        "found",
        ExtensionWarning,
    )


def with_training_rows(rows: Matrix, known: IntArray, K: Matrix) -> sparse.csr_array:
    """Replace the kernel rows of points `known` to be training points by rows of `K`."""
    old = np.flatnonzero(known >= 0)
    which = sparse.csr_array((np.ones(len(old)), (old, known[old])), shape=(len(known), K.shape[0]))
    return sparse.csr_array(sparse.diags_array((known < 0).astype(float)) @ rows + which @ K)
