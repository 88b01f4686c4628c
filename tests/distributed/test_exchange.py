"""Products of a matrix in parts, against scipy."""

from itertools import pairwise

import dask
import numpy as np
import pytest
from scipy import sparse

from manifoldry.distributed.exchange import DistributedMatrix, Exchange
from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.scheduler import combined, delayed


def parts_of(values, bounds):
    return [dask.delayed(values[a:b]) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("bounds", [[0, 60], [0, 1, 60], [0, 20, 20, 45, 60]])
def test_product(bounds):
    rng = np.random.default_rng(0)
    A = sparse.random_array((60, 60), density=0.1, format="csr", random_state=rng)
    V = rng.normal(size=(60, 3))
    matrix = DistributedMatrix.of(parts_of(A, bounds), np.array(bounds))
    product = np.concatenate(dask.compute(*matrix.times(parts_of(V, bounds))))
    np.testing.assert_allclose(product, A @ V, rtol=1e-13, atol=1e-15)


def test_product_on_workers(client):
    rng = np.random.default_rng(1)
    A = sparse.random_array((90, 90), density=0.05, format="csr", random_state=rng)
    V = rng.normal(size=(90, 2))
    bounds = [0, 30, 60, 90]
    matrix = DistributedMatrix.of(parts_of(A, bounds), np.array(bounds))
    product = np.concatenate(dask.compute(*matrix.times(parts_of(V, bounds))))
    np.testing.assert_allclose(product, A @ V, rtol=1e-13, atol=1e-15)


def test_only_wanted_rows_move():
    needed = parts_of(np.array([0, 1, 4, 3, 3, 5]), [0, 3, 6])
    exchange, _ = Exchange.of(needed, np.array([0, 3, 6]))
    assert exchange.sources == [[1], []]
    assert dask.compute(*exchange.wanted[0])[0].tolist() == [1]


def test_order_is_restored():
    rng = np.random.default_rng(2)
    rows, values = rng.permutation(50), rng.normal(size=(50, 2))
    bounds = [0, 10, 10, 50]
    order = RowOrder(parts_of(rows, bounds), np.array(bounds), np.array([7, 0, 43]))
    restored = order.restored(parts_of(values[rows], bounds), 2, float)
    assert restored.chunks == ((7, 0, 43), (2,))
    np.testing.assert_array_equal(restored.compute(), values)


def test_combined_is_a_tree():
    tasks = [dask.delayed(i) for i in range(100)]
    assert combined(tasks, sum).compute() == 4950
    assert combined(tasks[:1], sum).compute() == 0


def test_tasks_have_one_thread():
    from manifoldry.util.threads import thread_count

    def threads(_):
        return thread_count()

    task = delayed(threads)(0)
    assert task.key.startswith("threads")
    assert task.compute() == 1
