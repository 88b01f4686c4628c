"""Candidates by matrix products in single precision, and the exact search built on them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry.neighbors.brute import BruteIndex
from manifoldry.neighbors.products import nearest_by_products, nearest_in_blocks


@pytest.fixture(name="X")
def cloud():
    return np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32)


@pytest.mark.parametrize("rows", [7, 64, 1000])
def test_among_themselves(X, rows):
    """Each block is used for its rows and its columns; no point is its own neighbor."""
    indices, squares = nearest_by_products(X, X, 9, block_rows=rows)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    expected = np.argsort(D, axis=1)[:, :9]
    assert np.array_equal(indices, expected)
    np.testing.assert_allclose(squares, np.take_along_axis(D**2, expected, axis=1), rtol=1e-4)


@pytest.mark.parametrize("rows", [7, 1000])
def test_among_others(X, rows):
    queries = X[:50] + np.float32(0.01)
    indices, _ = nearest_by_products(queries, X, 9, block_rows=rows)
    assert np.array_equal(indices, np.argsort(cdist(queries, X), axis=1)[:, :9])


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("scale", [1.0, 1e-150])
def test_large_data_get_the_same_neighbors(offset, scale):
    """The compiled search gives bitwise the same result as the other one."""
    X = (np.random.default_rng(0).normal(size=(200, 15)).round(3) + offset) * scale
    X = np.vstack([X, X[:20]])
    plain, fast = (
        BruteIndex(X, "", compile_from=f).reference_neighbors(X, 7) for f in (np.inf, 0.0)
    )
    assert np.array_equal(fast.indices, plain.indices)
    assert np.array_equal(fast.distances, plain.distances)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("scale", [1.0, 1e-150])
@pytest.mark.parametrize("per_reference", [True, False])
def test_large_data_get_the_same_points_within_a_radius(offset, scale, per_reference):
    """Also if single precision cannot tell the points apart, and for queries that overflow it."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 15)).round(3) + offset) * scale
    queries = np.vstack([X[:30], X[30:60] + 0.01 * scale, X[:1] + 1e25 * scale])
    D = cdist(queries / scale, X / scale)
    radii = np.sort(D[:60], axis=0)[5] * scale if per_reference else 3.0 * scale
    plain, fast = (BruteIndex(X, "", compile_from=f).within(queries, radii) for f in (np.inf, 0.0))
    assert len(plain.indices) > 60
    for one, other in zip(plain, fast, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("far", [1e4, 1e9, 1e30])
def test_one_far_point_leaves_the_others_certain(X, far, monkeypatch):
    """Only the far point itself is uncertain and searched again."""
    again = []
    search_again = BruteIndex._search_again
    monkeypatch.setattr(
        BruteIndex,
        "_search_again",
        lambda self, X, rows, *found: (
            again.append(len(rows)) or search_again(self, X, rows, *found)
        ),
    )
    X = X.astype(np.float64)
    X[5] = far
    found = BruteIndex(X, "", compile_from=0.0).reference_neighbors(X, 7)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    assert np.array_equal(found.indices, np.argsort(D, axis=1, kind="stable")[:, :7])
    assert sum(again) <= (1 if far < 1e8 else len(X))


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_neighbors_and_points_within_radii_from_the_same_products(offset):
    """Of new points, of training points and of a point that overflows single precision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2100, 15)).round(3) + offset  # more than one block of rows and columns
    queries = np.vstack([X[:30], X + 0.01, X[:1] + 1e25])
    itself = np.append(np.arange(30), np.full(2101, -1))
    radii = np.sort(cdist(queries[:-1], X), axis=0)[5]
    (indices, distances), within = BruteIndex(X, "", compile_from=0.0).nearest_and_within(
        queries, 7, itself, radii
    )
    plain = BruteIndex(X, "", compile_from=np.inf)
    expected = plain.nearest_excluding(queries, 7, itself)
    assert np.array_equal(indices, expected[0])
    assert np.array_equal(distances, expected[1])
    for one, other in zip(within, plain.within(queries, radii), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearest_in_blocks_are_those_of_all_distances(dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(300, 4)).astype(dtype), rng.normal(size=(900, 4)).astype(dtype)
    indices, last = nearest_in_blocks(X, Y, 6)
    squares = cdist(X, Y, "sqeuclidean")
    expected = np.sort(squares, axis=1)[:, :6]
    found = np.sort(np.take_along_axis(squares, indices, axis=1), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(last, expected[:, -1], rtol=1e-3)


def test_nearest_in_blocks_where_products_overflow():
    X, Y = np.array([[1.0], [1e30]], np.float32), np.arange(20, dtype=np.float32)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        indices, last = nearest_in_blocks(X, Y, 3)
    assert set(indices[0]) == {0, 1, 2}
    assert len(set(indices[1])) == 3  # of which a bound of the distance can be computed
    assert not last[1] > 0  # so that the row counts as uncertain
