"""The transpose of a matrix in parts."""

import itertools

import dask
import numpy as np
import pytest
from scipy import sparse

from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.transpose import transposed


@pytest.mark.parametrize("bounds", [[0, 7], [0, 3, 7], [0, 0, 2, 2, 5, 7, 7]])
def test_is_that_of_the_whole(bounds):
    rng, bounds = np.random.default_rng(0), np.array(bounds)
    A = sparse.csr_array(np.where(rng.random((7, 7)) < 0.4, rng.normal(size=(7, 7)), 0.0))
    A.data[::3] = 0.0  # stored
    blocks = [dask.delayed(A[a:b]) for a, b in itertools.pairwise(bounds)]
    found = sparse.vstack(dask.compute(*transposed(blocks, bounds)), "csr")
    pattern = sparse.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    np.testing.assert_array_equal(found.toarray(), A.toarray().T)
    found.data[:] = 1.0
    np.testing.assert_array_equal(found.toarray(), pattern.toarray().T)


def test_without_entries():
    blocks = [dask.delayed(sparse.csr_array((2, 3))), dask.delayed(sparse.csr_array((1, 3)))]
    first, last = dask.compute(*transposed(blocks, np.array([0, 2, 3])))
    assert first.shape == (2, 3)
    assert last.shape == (1, 3)
    assert first.nnz == last.nnz == 0


@pytest.mark.parametrize("sizes", [[6], [2, 0, 3, 1]])
def test_positions_of_rows(sizes):
    rows, bounds = np.array([4, 1, 5, 0, 3, 2]), np.cumsum([0, *sizes])
    parts = [dask.delayed(part) for part in np.split(rows, bounds[1:-1])]
    order = RowOrder(parts, bounds, np.array([6]))
    np.testing.assert_array_equal(order.positions(np.array([1, 2, 5])), [1, 5, 2])
