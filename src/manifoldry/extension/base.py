"""Maps from new data to coordinates, and back."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.exceptions import ExtensionWarning
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_memory, row_blocks
from manifoldry.util.warn import warn


class EquivalentKernel(Protocol):
    """The kernel whose eigenvectors a method computes, as a function of new points."""

    @property
    def n_train(self) -> int:
        """Number of training points."""
        ...

    def rows(self, X: Matrix) -> Matrix:
        """Kernel between new points and training points, (n_new, n_train)."""
        ...


class Inverse(Protocol):
    """A way back from map positions to data."""

    def predict(self, Z: Array) -> Array:
        """Data at map positions `Z`, (n_new, n_features)."""
        ...


class Extension(ABC):
    """Coordinates of new points, from what a fitted model keeps."""

    @abstractmethod
    def transform(self, X: Matrix) -> Array:
        """Coordinates of new points, (n_new, n_components)."""

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        """Coordinates of new points in their own component of the map, and which component that is."""
        return self.transform(X), np.zeros(X.shape[0], dtype=np.intp)

    def place(self, Y: Array, component: IntArray) -> Array:
        """Coordinates on the map of coordinates within components."""
        return Y

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        """The kernel whose eigenvectors the coordinates are, from `X` to training points.

        `known` says which rows are training points, and is -1 for others.
        """
        raise ValueError(
            "these coordinates are not the eigenvectors of a kernel of pairs of points"
        )


class KernelExtension(Extension):
    """An extension through an equivalent kernel, whose rows others can use too."""

    @abstractmethod
    def rows(self, X: Matrix) -> Matrix:
        """Rows of the equivalent kernel, (n_new, n_train)."""

    @property
    @abstractmethod
    def numbers_per_row(self) -> int:
        """Numbers that one new point keeps in memory at a time."""

    def matrix(self, X: Matrix) -> Matrix:
        """The same for any number of points, a block of them at a time."""
        n, first = X.shape[0], self.rows(X[:1])
        entries = first.nnz if sparse.issparse(first) else first.shape[1]
        what = f"the kernel between {n} and {first.shape[1]} points"
        plan_memory(24.0 * n * entries, what, "pass fewer rows at a time")
        parts = [self.rows(X[block]) for block in row_blocks(n, self.numbers_per_row)]
        return sparse.vstack(parts, "csr") if sparse.issparse(first) else np.concatenate(parts)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        return self.matrix(X)


@dataclass(frozen=True, eq=False)
class Nystrom(KernelExtension):
    """Nyström's formula: coordinates are kernel rows times fixed dual vectors.

    For an eigenvector v of the Gram matrix with eigenvalue ℓ, the value at a new point x is
    Σᵢ K(x, xᵢ) vᵢ / ℓ, which at training points returns v itself. `dual` holds v/ℓ, or v/√ℓ
    where coordinates are √ℓ·v.
    """

    kernel: EquivalentKernel
    dual: Array  # (n_train, n_components)
    unit: float = 1.0  # length whose square the kernel is in

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

    def among(self, X: Matrix) -> Array:
        """The kernel of new points with each other, (n_new, n_new), where it has such values."""
        kernel: Any = self.kernel
        return np.asarray(kernel.among(X))


def warn_if_not_converged(settled: NDArray[np.bool_]) -> None:
    """Say so where searches for places of new points ended before they came to rest."""
    count = int((~settled).sum())
    if count:
        warn(
            f"the places of {count} of {len(settled)} new points had not settled when the "
            "search ended; they are the best found",
            ExtensionWarning,
        )


def with_training_rows(rows: Matrix, known: IntArray, K: Matrix) -> sparse.csr_array:
    """Kernel rows, but for those `known` to be training points the ones of the matrix `K`."""
    old = np.flatnonzero(known >= 0)
    which = sparse.csr_array((np.ones(len(old)), (old, known[old])), shape=(len(known), K.shape[0]))
    return sparse.csr_array(sparse.diags_array((known < 0).astype(float)) @ rows + which @ K)
