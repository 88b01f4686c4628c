"""Find rows that are identical to training rows, exactly and whatever the batch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry._typing import IntArray, Matrix
from manifoldry._validation import row_blocks

_MASK_SEED = 20031  # any fixed number: the multipliers only have to be the same in every process


@dataclass(frozen=True, eq=False)
class RowLookup:
    """Look up rows among training rows by value.

    Rows are keyed by an integer dot product modulo 2⁶⁴ of their bit patterns, which, unlike a
    floating-point key, does not depend on how rows are batched; hits are confirmed by comparing
    the rows themselves.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> RowLookup.of(X).find(np.array([[2.0, 3.0], [5.0, 5.0]]))
    array([ 1, -1])
    """

    X: Matrix
    order: IntArray
    keys: np.ndarray[Any, np.dtype[np.uint64]]

    @classmethod
    def of(cls, X: Matrix) -> "RowLookup":
        """Index the rows of `X`; the first of several identical rows is the one found."""
        keys = _row_keys(X)
        order = np.argsort(keys, kind="stable")
        return cls(X, order, keys[order])

    def find(self, X: Matrix) -> IntArray:
        """Index of the training row identical to each row of `X`, or -1."""
        keys = _row_keys(X)
        found = np.full(X.shape[0], -1, dtype=np.intp)
        position = np.searchsorted(self.keys, keys)
        inside = np.flatnonzero(position < len(self.keys))
        hit = inside[self.keys[position[inside]] == keys[inside]]
        candidate = self.order[position[hit]]
        same = _equal_rows(X[hit], self.X[candidate])
        found[hit[same]] = candidate[same]
        return found


def _row_keys(X: Matrix) -> np.ndarray[Any, np.dtype[np.uint64]]:
    multipliers = np.random.default_rng(_MASK_SEED).integers(
        1, 2**64, size=X.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    if sparse.issparse(X):
        return _sparse_row_keys(X, multipliers)
    keys = np.empty(X.shape[0], dtype=np.uint64)
    for block in row_blocks(X.shape[0], X.shape[1]):
        keys[block] = (_bits(X[block]) * multipliers).sum(axis=1, dtype=np.uint64)
    return keys


def _sparse_row_keys(X: Matrix, multipliers: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    X = sparse.csr_array(X)
    terms = _bits(X.data) * multipliers[X.indices]
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(keys, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), terms)
    return keys


def _bits(values: Any) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Bit patterns of `values` as float64; adding zero turns -0.0 into 0.0."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _equal_rows(A: Matrix, B: Matrix) -> Any:
    if sparse.issparse(A) or sparse.issparse(B):
        difference = abs(sparse.csr_array(A) - sparse.csr_array(B))
        return difference.sum(axis=1) == 0
    return (A == B).all(axis=1)
