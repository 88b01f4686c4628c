"""Exact lookup of rows that are identical to training rows."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import IntArray, Matrix
from manifoldry.util.validation import canonical, row_blocks

Keys: TypeAlias = NDArray[np.uint64]

_KEY_SEED = 20031  # arbitrary, but the keys must be the same in every process


@dataclass(frozen=True, eq=False)
class RowLookup:
    """Lookup of rows among training rows by value.

    The key of a row is an integer dot product modulo 2⁶⁴ of its bit patterns, which does not
    depend on how rows are batched, unlike a floating-point key. Rows with equal keys are then
    compared. The keys of the training rows are computed at the first use or before pickling, since
    those of large data can take longer than a fit on a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> RowLookup.of(X).identical(np.array([[2.0, 3.0], [5.0, 5.0]]))
    array([ 1, -1])
    """

    X: Matrix

    @classmethod
    def of(cls, X: Matrix) -> "RowLookup":
        """Build the lookup of the rows of `X`; it finds the first of several identical rows."""
        return cls(X)

    @cached_property
    def order(self) -> IntArray:
        """The rows by increasing key."""
        return self._sorted[0]

    @cached_property
    def keys(self) -> Keys:
        """The keys, ascending."""
        return self._sorted[1]

    @cached_property
    def _sorted(self) -> tuple[IntArray, Keys]:
        keys = _row_keys(self.X)
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the keys, so that a loaded model need not compute them."""
        return {**state_of_fields(self), "order": self.order, "keys": self.keys}

    def identical(self, X: Matrix) -> IntArray:
        """Index of the training row identical to each row of `X`, or -1."""
        keys = _row_keys(X)
        found = np.full(X.shape[0], -1, dtype=np.intp)
        position = np.searchsorted(self.keys, keys)
        pending = self._with_candidate(np.arange(X.shape[0]), position, keys)
        while len(pending):
            candidate = self.order[position[pending]]
            same = _equal_rows(X, pending, self.X, candidate)
            found[pending[same]] = candidate[same]
            pending = pending[~same]  # different rows can share a key: try the next candidate
            position[pending] += 1
            pending = self._with_candidate(pending, position, keys)
        return found

    def first_identical(self) -> IntArray:
        """Index of the first training row identical to each training row."""
        if not (self.keys[1:] == self.keys[:-1]).any():  # mostly all rows differ
            return np.arange(len(self.keys))
        return self.identical(self.X)

    def first_duplicates(self, k: int) -> IntArray:
        """Training rows, ascending, keeping at most the first k of identical rows."""
        first = self.first_identical()
        order = np.argsort(first, kind="stable")
        rank = np.arange(len(order)) - np.searchsorted(first[order], first[order])
        return np.sort(order[rank < k])

    def _with_candidate(self, rows: IntArray, position: IntArray, keys: Keys) -> IntArray:
        """The `rows` whose key equals that of the training row at their position."""
        rows = rows[position[rows] < len(self.keys)]
        return rows[self.keys[position[rows]] == keys[rows]]


def _row_keys(X: Matrix) -> Keys:
    multipliers = np.random.default_rng(_KEY_SEED).integers(
        1, 2**64, size=X.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    if sparse.issparse(X):
        return _sparse_row_keys(X, multipliers)
    keys = np.empty(X.shape[0], dtype=np.uint64)

    def fill(block: slice) -> None:
        keys[block] = (_bits(X[block]) * multipliers).sum(axis=1, dtype=np.uint64)

    map_threads(fill, row_blocks(X.shape[0], X.shape[1], budget=2**17))  # fits into the cache
    return keys


def _sparse_row_keys(X: Matrix, multipliers: Keys) -> Keys:
    X = canonical(sparse.csr_array(X))
    terms = _bits(X.data) * multipliers[X.indices]
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(keys, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), terms)
    return keys


def _bits(values: Any) -> Keys:
    """Scrambled bit patterns of `values` as float64, zero for zero.

    Adding zero turns -0.0 into 0.0. Numbers with few digits, such as gray levels, differ only in
    their high bits, which the products modulo 2⁶⁴ would lose; the shift copies them down.
    """
    bits = np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def _equal_rows(A: Matrix, i: IntArray, B: Matrix, j: IntArray) -> NDArray[np.bool_]:
    """Whether row i of A equals row j of B, for paired index arrays."""
    equal = np.empty(len(i), dtype=bool)
    for block in row_blocks(len(i), A.shape[1]):
        equal[block] = _same(A[i[block]], B[j[block]])
    return equal


def _same(A: Matrix, B: Matrix) -> NDArray[np.bool_]:
    if sparse.issparse(A) or sparse.issparse(B):
        difference = abs(sparse.csr_array(A) - sparse.csr_array(B))
        return np.asarray(difference.sum(axis=1) == 0)
    return np.asarray((A == B).all(axis=1))
