"""Sparse matrices stored in an order in which neighbors are near in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.util.threads import run_on_rows
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class LocalMatrix:
    """A symmetric matrix of a graph, with the rows and columns of neighbors close together.

    A product with the matrix reads the entries of a vector that belong to the neighbors of a point.
    If points are in random order and the vector is larger than the cache, it waits for memory at
    nearly every entry. Here the points are sorted by cells of the graph, so that consecutive rows
    read the same few cells. Within a row the entries keep their order: a product has the same
    bits as with the original matrix.

    Parameters
    ----------
    matrix : sparse array of shape (n, n)
        The matrix, rows and columns sorted.
    order : array of shape (n,) or None
        Number of each sorted point; None if the matrix is as given.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> A = sparse.csr_array(np.array([[0.0, 0, 1], [0, 0, 2], [1, 2, 0]]))
    >>> local = LocalMatrix.of(A, min_points=2)
    >>> local.restored(local.matrix @ local.sorted(np.ones(3)))
    array([1., 2., 3.])
    """

    matrix: sparse.csr_array
    order: IntArray | None = None

    @classmethod
    def of(
        cls,
        A: sparse.csr_array,
        dtype: Any = None,
        min_points: int = 150_000,
        cell: int = 500,
    ) -> "LocalMatrix":
        """Sort the points of a matrix of at least `min_points`, by cells of about `cell` points.

        Smaller matrices, whose vectors fit into the cache, are left as they are.
        """
        dtype = A.dtype if dtype is None else np.dtype(dtype)
        if A.shape[0] < min_points:
            data = A.data.astype(dtype, copy=False)
            return cls(sparse.csr_array((data, A.indices, A.indptr), shape=A.shape))
        order = _by_cells(A, max(1, A.shape[0] // cell))
        return cls(permuted(A, order, dtype), order)

    def sorted(self, X: Array) -> Array:
        """The rows of `X` in the order of the matrix."""
        return X if self.order is None else X.take(self.order, axis=0)

    def restored(self, X: Array) -> Array:
        """The rows of `X`, sorted as the matrix, in the order of the points."""
        if self.order is None:
            return X
        out = np.empty_like(X)
        out[self.order] = X
        return out


def _by_cells(A: sparse.csr_array, n_cells: int) -> IntArray:
    """The points sorted by cells that grow from evenly spaced points along the edges."""
    from manifoldry.util.compiled import grow_cells

    n = A.shape[0]
    label, queue = np.full(n, -1, dtype=np.int32), np.empty(n, dtype=np.int32)
    grow_cells(A.indptr, A.indices, n_cells, label, queue)
    return np.argsort(label, kind="stable").astype(np.int32)


def permuted(A: sparse.csr_array, order: IntArray, dtype: Any = None) -> sparse.csr_array:
    """Return A[order][:, order]; within a row the entries keep their order."""
    from manifoldry.util.compiled import permute_rows

    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    counts = np.diff(A.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(A.indptr.dtype)
    indices, data = np.empty_like(A.indices), np.empty(A.nnz, A.dtype if dtype is None else dtype)
    arrays = A.indptr, A.indices, A.data, order, place, indptr, indices, data
    run_on_rows(permute_rows, A.shape[0], *arrays)
    return sparse.csr_array((data, indices, indptr), shape=A.shape)
