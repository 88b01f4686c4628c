"""Matrices sorted by cells of their graph: the same products, neighbors close in memory."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry import NeighborGraph
from manifoldry.util.local_matrix import LocalMatrix
from manifoldry.util.sparse_products import product
from manifoldry.util.validation import canonical


def graph_of(n, k, seed=0):
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    W = NeighborGraph.build(X, k).matrix()
    return canonical(sparse.csr_array(W + W.T))


def test_products_are_the_same_bits():
    A = graph_of(3000, 40)
    local = LocalMatrix.of(A, min_points=1000, cell=100)
    assert sorted(local.order) == list(range(3000))
    X = np.random.default_rng(1).normal(size=(3000, 2))
    found = local.restored(product(local.matrix, local.sorted(X)))
    np.testing.assert_array_equal(found, product(A, X))
    np.testing.assert_array_equal(local.restored(local.matrix.diagonal()), A.diagonal())


def test_neighbors_are_close_together():
    A = graph_of(4000, 10)
    B = LocalMatrix.of(A, min_points=1000, cell=100).matrix
    before, after = (
        np.abs(np.repeat(np.arange(4000), np.diff(M.indptr)) - M.indices) < 200 for M in (A, B)
    )
    assert before.mean() < 0.15
    assert after.mean() > 0.6


def test_points_without_edges_are_kept():
    A = sparse.csr_array(np.kron(np.eye(3), [[0.0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    local = LocalMatrix.of(A, min_points=1, cell=9)
    assert sorted(local.order) == list(range(9))
    np.testing.assert_array_equal(local.restored(local.matrix @ np.ones(9)), A @ np.ones(9))


@pytest.mark.parametrize("dtype", [None, np.float32])
def test_few_points_are_left_as_they_are(dtype):
    A = graph_of(50, 5)
    local = LocalMatrix.of(A, dtype)
    assert local.order is None
    assert np.shares_memory(local.matrix.indices, A.indices)
    assert local.matrix.dtype == (dtype or np.float64)
