"""The smallest entries of rows, and ranks of some of them, against numpy."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("values", [3, 10**9])
@pytest.mark.parametrize(("n", "k"), [(5, 5), (700, 1), (3000, 20), (6000, 4096)])
def test_smallest_and_ranks(in_use, n, k, values):
    table = RNG.integers(values, size=(7, n)).astype(float)
    table[np.arange(7), np.arange(7) % n] = np.inf
    order = np.argsort(table, axis=1, kind="stable")
    smallest = in_use.smallest(in_use.array(table), k)
    np.testing.assert_array_equal(in_use.host(smallest), order[:, :k])
    columns = np.stack([RNG.permutation(n)[:k] for _ in range(7)]).astype(np.int32)
    found = in_use.host(in_use.ranks(in_use.array(table), in_use.array(columns)))
    expected = np.take_along_axis(np.argsort(order, axis=1) + 1, columns, axis=1)
    np.testing.assert_array_equal(found, expected)
