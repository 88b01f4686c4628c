"""Distances at offsets and magnitudes where the expanded formula cancels completely."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.neighbors.distances import (
    Frame,
    expanded_squares,
    expansion_error,
    pair_distances,
    squared_distances,
    squared_norms,
)


@pytest.fixture
def rng():
    return np.random.default_rng(8)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pair_distances(rng, kind, dtype):
    X, Y = (rng.normal(size=(n, 6)).astype(dtype) for n in (20, 30))
    i, j = rng.integers(0, 20, 500), rng.integers(0, 30, 500)
    expected = cdist(X.astype(float), Y.astype(float))[i, j]
    np.testing.assert_allclose(pair_distances(kind(X), kind(Y), i, j, 1.0), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("p", "metric", "parameters"),
    [(1, "cityblock", {}), (np.inf, "chebyshev", {}), (3, "minkowski", {"p": 3})],
)
def test_other_norms(rng, p, metric, parameters):
    X = rng.normal(size=(20, 6))
    i, j = np.triu_indices(20)
    expected = cdist(X, X, metric, **parameters)[i, j]
    np.testing.assert_allclose(pair_distances(X, X, i, j, 4.0, p), expected, rtol=1e-14)


@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 16, 50, 101])
def test_mirrored_and_single_pairs_have_the_same_bits(rng, n_features):
    """Queries of new points compare distances that were computed in different batches."""
    X = np.asfortranarray(rng.normal(size=(40, n_features)))
    i, j = rng.integers(0, 40, 300), rng.integers(0, 40, 300)
    forwards = pair_distances(X, X, i, j, 2.0)
    backwards = pair_distances(np.ascontiguousarray(X), X, j, i, 2.0)
    single = [pair_distances(X, X, i[[t]], j[[t]], 2.0)[0] for t in range(300)]
    np.testing.assert_array_equal(forwards, backwards)
    np.testing.assert_array_equal(forwards, single)


def test_pairs_beyond_one_block(rng):
    X = rng.normal(size=(300, 40))
    i, j = (index.ravel() for index in np.indices((300, 300)))
    expected = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2)).ravel()
    np.testing.assert_allclose(pair_distances(X, X, i, j, 1.0), expected, rtol=1e-13)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_expanded_squares_are_accurate_to_the_bound(rng, kind):
    for offset in (0.0, 10.0, 1e4):
        X, Y = rng.normal(size=(30, 8)) + offset, rng.normal(size=(40, 8)) + offset
        squares = squared_norms(kind(Y))
        D2 = expanded_squares(kind(X), kind(Y), squares)
        error = np.abs(D2 - cdist(X, Y, "sqeuclidean"))
        bound = expansion_error(squared_norms(kind(X))[:, None], squares, 8)
        assert (error <= bound).all()
        assert (D2 >= 0).all()
        assert bound.max() < 300 * error.max()  # the bound is not too loose


def test_frame_is_centered_and_its_unit_is_a_power_of_two(rng):
    X = rng.normal(size=(50, 3)) * [1, 5, 0.1] + [7, -3, 1e6]
    frame = Frame.of(X)
    np.testing.assert_allclose(frame.origin, X.mean(axis=0), rtol=1e-14)
    assert np.log2(frame.unit) % 1 == 0
    scaled = frame.apply(X)
    assert 0.5 < np.abs(scaled).max() <= 1
    np.testing.assert_allclose(scaled * frame.unit + frame.origin, X, rtol=1e-15)


@pytest.mark.parametrize("scale", [1e-307, 1e-150, 1e150, 1e307])
def test_frame_at_the_ends_of_the_range(rng, scale):
    X = rng.uniform(-1, 1, size=(50, 3)) * scale
    for frame in (Frame.of(X), Frame.at_zero(X), Frame.of(sparse.csr_array(X))):
        assert np.isfinite(frame.unit)
        scaled = frame.apply(X)
        assert 0.4 < np.abs(scaled).max() <= 1
        same = frame.apply(sparse.csr_array(X))  # dense if the origin is not zero
        same = same.toarray() if sparse.issparse(same) else same
        np.testing.assert_allclose(same, scaled)


def test_frame_of_the_largest_single_precision(rng):
    X = np.full((5, 2), 3.4e38, dtype=np.float32)
    with np.errstate(all="raise"):
        frame = Frame.of(X)
    np.testing.assert_allclose(frame.origin, X[0])


def test_frame_in_blocks_is_the_same_frame(rng):
    X = rng.normal(size=(3000, 3000)) + 5  # more than one block
    frame = Frame.of(X)
    np.testing.assert_allclose(frame.origin, X.mean(axis=0), rtol=1e-13)
    assert frame.unit == 8.0


def test_frame_takes_single_precision_to_double(rng):
    X = (rng.normal(size=(50, 3)) + 1000).astype(np.float32)
    scaled = Frame.of(X).apply(X)
    assert scaled.dtype == np.float64
    # The mean has the rounding error of double precision near 1000 (1e-13), not single (6e-5).
    assert abs(scaled.mean(axis=0)).max() < 1e-13
    assert Frame.of(X).apply(sparse.csr_array(X)).dtype == np.float64


def test_single_precision_is_that_of_the_double_one_rounded(rng):
    X = (rng.normal(size=(500, 3)) * 40 + 1000).astype(np.float32)
    robust, mean = Frame.of(X, robust=True), Frame.of(X)
    for frame in (robust, mean):  # only the first has an origin of single precision
        same = frame.apply_single(X)
        assert same.dtype == np.float32
        np.testing.assert_array_equal(same, frame.apply(X).astype(np.float32))
    for scale in (1e-37, 1e37):  # beyond the range in which the unit is a single number
        scaled = X * np.float32(scale / 1000)
        frame = Frame.of(scaled, robust=True)
        with np.errstate(over="raise", invalid="raise"):
            np.testing.assert_allclose(frame.apply_single(scaled), frame.apply(scaled), rtol=1e-6)


def test_constant_data_have_a_frame():
    frame = Frame.of(np.full((5, 2), 3.0))
    np.testing.assert_array_equal(frame.apply(np.full((5, 2), 3.0)), 0)
    assert frame.unit == 1.0


def test_queries_far_from_the_unit_do_not_overflow():
    X, Y = np.array([[1e163, 1e9], [1e24, 0.0]]), np.zeros((1, 2))
    with np.errstate(all="raise"):
        found = pair_distances(X, Y, np.arange(2), np.zeros(2, dtype=int), 2.0**80)
    np.testing.assert_allclose(found, [1e163, 1e24], rtol=1e-15)


def test_squared_distances_of_the_largest_single_precision():
    X = np.array([[0.0], [3.4e38]], dtype=np.float32)
    frame = Frame.of(X)
    with np.errstate(all="raise"):
        D2 = squared_distances(X, X, frame, accuracy=1e-9)
    np.testing.assert_allclose(D2[0, 1] * frame.unit**2, float(X[1, 0]) ** 2)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e100, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_frame_with_coordinates_is_the_frame(rng, scale, offset):
    X = (rng.normal(size=(500, 7)) + offset) * scale
    expected = Frame.of(X)
    frame, F = Frame.with_coordinates(X)
    assert frame.unit == expected.unit
    np.testing.assert_allclose(frame.origin, expected.origin, rtol=1e-15)
    np.testing.assert_array_equal(F, frame.apply(X))


def test_squared_distances_among_points_are_symmetric_and_transformed_in_blocks(rng):
    X = rng.normal(size=(1100, 12)) * np.geomspace(1, 1e-5, 1100)[:, None]  # some are close
    frame = Frame.of(X)
    D2 = squared_distances(X, X, frame, accuracy=1e-9, direct=0)
    np.testing.assert_array_equal(D2, D2.T)
    other = squared_distances(X, X.copy(), frame, accuracy=1e-9, direct=0)
    np.testing.assert_allclose(D2, other, rtol=1e-9)
    for same in (X, X.copy()):
        roots = squared_distances(
            X, same, frame, accuracy=1e-9, direct=0, then=lambda block: np.sqrt(block, out=block)
        )
        np.testing.assert_allclose(roots, np.sqrt(other), rtol=1e-9)
