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
    """Base class of out-of-sample extensions, which compute the coordinates of new points.

    A fitted estimator has one in ``extension_``. A spectral method returns its own from
    :meth:`manifoldry.spectral.Posed.extend`. A subclass defines :meth:`transform` and, if the
    embedding may have several connected components, :meth:`component_coordinates` and
    :meth:`place`.

    See Also
    --------
    KernelExtension : extensions by a kernel.
    Nystrom : the formula for kernel methods.
    LaplacianExtension : the formula for graph Laplacians.
    Layout : position and scale of connected components.

    Examples
    --------
    New points take the coordinates of the nearest training point:

    >>> import numpy as np
    >>> from manifoldry.extension import Extension
    >>> class Nearest(Extension):
    ...     def __init__(self, X, Y):
    ...         self.X, self.Y = X, Y
    ...     def transform(self, X):
    ...         return self.Y[np.abs(X - self.X.T).argmin(axis=1)]
    >>> extension = Nearest(np.array([[0.0], [1.0]]), np.array([[5.0], [7.0]]))
    >>> extension.transform(np.array([[0.9]]))
    array([[7.]])
    """

    continuous_at_training: ClassVar[bool] = True
    """Whether coordinates near a training point tend to those that the formula gives it."""

    @abstractmethod
    def transform(self, X: Matrix) -> Array:
        """Compute the coordinates of new points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        array of shape (n_new, n_components)
            Their coordinates.
        """

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        """Compute the coordinates of new points within their connected component.

        Define it, and `place`, if the embedding may have several components.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        Y : array of shape (n_new, n_components)
            Their coordinates before they are moved and scaled.
        component : array of shape (n_new,)
            The label of the component of each point.
        """
        return self.transform(X), np.zeros(X.shape[0], dtype=np.intp)

    def place(self, Y: Array, component: IntArray) -> Array:
        """Convert coordinates within components to coordinates of the embedding.

        Parameters
        ----------
        Y : array of shape (n_new, n_components)
            Coordinates within components.
        component : array of shape (n_new,)
            The label of the component of each point.

        Returns
        -------
        array of shape (n_new, n_components)
            Coordinates in the embedding.
        """
        return Y

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        """Return the kernel whose eigenvectors are the coordinates.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            New points.
        known : array of shape (n_new,)
            Index of the training point identical to each row, or -1.

        Returns
        -------
        array or sparse array of shape (n_new, n_train)
            The kernel between `X` and the training points.
        """
        raise ValueError(
            f"{type(self).__name__} defines no equivalent kernel; extensions that have one are "
            "subclasses of manifoldry.extension.KernelExtension"
        )


class KernelExtension(Extension):
    """Base class of extensions by an equivalent kernel, of which the coordinates are eigenvectors.

    A subclass defines :meth:`rows`, :attr:`numbers_per_row` and ``transform``. Estimators with such
    an extension have ``equivalent_kernel``.

    See Also
    --------
    Nystrom : for kernel methods.
    LaplacianExtension : for graph Laplacians.
    manifoldry.spectral.SpectralEmbedder.equivalent_kernel : the kernel of a fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import KernelPCA
    >>> from manifoldry.extension import KernelExtension
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> model = KernelPCA(kernel="rbf").fit(X)
    >>> isinstance(model.extension_, KernelExtension)
    True
    >>> model.extension_.matrix(X[:4]).shape
    (4, 30)
    """

    @abstractmethod
    def rows(self, X: Matrix) -> Matrix:
        """Return the kernel between new points and training points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        array or sparse array of shape (n_new, n_train)
            The rows of the equivalent kernel.
        """

    @property
    @abstractmethod
    def numbers_per_row(self) -> int:
        """Number of values that one new point needs in memory."""

    def matrix(self, X: Matrix) -> Matrix:
        """Return the kernel between new points and training points, computed in blocks.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        array or sparse array of shape (n_new, n_train)
            The rows of the equivalent kernel.
        """
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

    Parameters
    ----------
    kernel : EquivalentKernel
        An object whose ``rows(X)`` is the kernel between new points and training points, and whose
        ``n_train`` is the number of training points.
    dual : array of shape (n_train, n_components)
        The dual vectors.
    unit : float, default=1.0
        Unit of length: the kernel is in units of unit².

    See Also
    --------
    LaplacianExtension : for graph Laplacians.
    manifoldry.spectral.KernelGram : makes it from a kernel.

    Examples
    --------
    Eigenvectors of the linear kernel, evaluated at training points and at a new one:

    >>> import numpy as np
    >>> from manifoldry.extension import Nystrom
    >>> class Linear:
    ...     def __init__(self, X):
    ...         self.X, self.n_train = X, len(X)
    ...     def rows(self, X):
    ...         return X @ self.X.T
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> kernel = Linear(X)
    >>> values, vectors = np.linalg.eigh(kernel.rows(X))
    >>> extension = Nystrom(kernel, vectors[:, -2:] / values[-2:])
    >>> bool(np.allclose(extension.transform(X), vectors[:, -2:]))
    True
    >>> extension.transform(np.zeros((1, 3)))
    array([[0., 0.]])
    """

    kernel: EquivalentKernel
    dual: Array
    unit: float = 1.0

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
        """Return the kernel at pairs of new points, if it is known; for dual vectors v/√ℓ.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        KernelPairs
            The kernel, and what the coordinates predict for it.
        """
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
