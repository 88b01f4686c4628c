"""Every primitive against numpy and scipy in double precision."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.device.primitives import KernelShape

RNG = np.random.default_rng(0)
SHAPES = {
    "gaussian": (KernelShape(), lambda D: np.exp(-D), lambda D, order: np.exp(-D)),
    "cauchy": (KernelShape(1.0, 1.0), lambda D: 1 / (1 + D), lambda D, o: (1 + D) ** (-1.0 - o)),
    "student": (
        KernelShape(0.5, 1.5),
        lambda D: (1 + D / 2) ** -1.5,
        lambda D, o: (1 + D / 2) ** (-1.5 - o),
    ),
}


def check(device, found, expected, rtol, atol=0.0):
    np.testing.assert_allclose(device.host(found), expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weights", [None, "points", "pairs", "factors"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SHAPES)
def test_pair_sums(in_use, name, dtype, weights, order):
    shape, kernel, moment = SHAPES[name]
    for n, d in [(3, 2), (700, 1), (1100, 2), (700, 3)]:  # of one, two and three tiles
        Y = RNG.normal(scale=3, size=(n, d)).astype(dtype)
        steps = Y[:, None].astype(float) - Y
        D, off = (steps**2).sum(axis=2), 1 - np.eye(n)
        given, A = pair_weights(in_use, weights, n)
        sums, moments = in_use.pair_sums(in_use.array(Y), given, shape, order)
        expected = (off * A * kernel(D)).sum(axis=1)
        # Kernels below the range of single precision are zero.
        check(in_use, sums, expected, 1e-5, 1e-6 * np.abs(expected).max() + 1e-37)
        expected = np.einsum("ij,ijc->ic", off * A * moment(D, order), steps**order)
        check(in_use, moments, expected, 1e-5, 2e-6 * np.abs(expected).max() + 1e-37)
        assert moments.dtype == dtype


def pair_weights(device, kind, n):
    """Weights as the device takes them, and as a matrix."""
    if kind is None:
        return None, np.ones((n, n))
    if kind == "points":
        a = RNG.uniform(size=n)
        return device.array(a), np.broadcast_to(a, (n, n))
    if kind == "pairs":
        A = RNG.uniform(size=(n, n))
        return device.array(A + A.T), A + A.T
    factors = RNG.normal(size=(n, 5))
    copies = device.array(factors), device.array(factors.copy())
    return copies, np.maximum(factors @ factors.T, 0)


def test_pair_sums_have_the_same_bits(in_use):
    Y = in_use.array(RNG.normal(size=(5000, 2)).astype(np.float32))
    first, again = (in_use.pair_sums(Y, None, KernelShape(1.0, 1.0), 1) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert in_use.host(a).tobytes() == in_use.host(b).tobytes()


def test_double_positions_resolve_what_single_precision_does_not(in_use):
    """Points 1e-6 apart, 100 from the origin: their difference has no correct digit in float32."""
    Y = np.array([[100.0], [100.000001], [100.000003]])
    _, moments = in_use.pair_sums(in_use.array(Y), None, KernelShape(), 1)
    check(in_use, moments[:, 0], [-4e-6, -1e-6, 5e-6], 1e-3)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_position_sums(in_use, name, weighted, d):
    shape, kernel, _ = SHAPES[name]
    Z, Y = RNG.normal(size=(7, d)), RNG.normal(size=(2000, d))
    weights = RNG.uniform(size=(7, 2000)) if weighted else None
    least, A = RNG.uniform(size=7), 1.0 if weights is None else weights

    def sums(Z):
        return (A * kernel(cdist(Z, Y, "sqeuclidean"))).sum(axis=1) * np.exp(least)

    given = None if weights is None else in_use.array(weights)
    found = in_use.position_sums(*map(in_use.array, (Z, Y, least)), given, shape)
    check(in_use, found[0], sums(Z), 1e-10)
    h = 1e-4
    for c, step in enumerate(h * np.eye(d)):
        gradient = (sums(Z + step) - sums(Z - step)) / (2 * h)
        check(in_use, found[1][:, c], gradient, 1e-6, 1e-5)
        second = (sums(Z + step) - 2 * sums(Z) + sums(Z - step)) / h**2
        check(in_use, found[2][:, c, c], second, 1e-4, 1e-3)
        if c:
            mixed = [sums(Z + a * step + b * h * np.eye(d)[0]) for a in (1, -1) for b in (1, -1)]
            mixed = (mixed[0] - mixed[1] - mixed[2] + mixed[3]) / (4 * h**2)
            check(in_use, found[2][:, 0, c], mixed, 1e-4, 1e-3)
            check(in_use, found[2][:, c, 0], mixed, 1e-4, 1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_edge_sums(in_use, d, rate, dtype):
    W = sparse.random_array((300, 300), density=0.1, rng=RNG, format="csr")
    W.data[:] = RNG.uniform(size=W.nnz)
    Y = RNG.normal(size=(300, d)).astype(dtype)
    steps = Y[:, None].astype(float) - Y
    base = 1 + rate * (steps**2).sum(axis=2)
    A = W.toarray()
    total, force, degree = in_use.edge_sums(in_use.array(Y), in_use.rows(W, dtype), rate)
    tol = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(float(total), (A * np.log(base)).sum(), rtol=tol)
    check(in_use, force, np.einsum("ij,ijc->ic", A / base, steps), tol, 30 * tol)
    check(in_use, degree, (A / base).sum(axis=1), tol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 5, 40])
def test_products(in_use, m, dtype):
    A = sparse.random_array((200, 300), density=0.1, rng=RNG, format="csr")
    X = RNG.normal(size=(300, m)).astype(dtype)
    found = in_use.product(in_use.rows(A, dtype), in_use.array(X))
    assert found.dtype == dtype
    check(in_use, found, A @ X, 1e-12 if dtype == np.float64 else 1e-4, 1e-5)


@pytest.mark.parametrize("accurate", [False, True])
@pytest.mark.parametrize("excluded", [False, True])
@pytest.mark.parametrize(("n", "m", "k"), [(40, 3, 7), (1000, 50, 90), (2500, 17, 1500)])
def test_nearest(in_use, n, m, k, excluded, accurate):
    Y = RNG.normal(size=(n, m)).astype(np.float64 if accurate else np.float32)
    X, own = Y[: n // 2], np.arange(n // 2, dtype=np.int32)
    D = cdist(X, Y, "sqeuclidean")
    if excluded:
        D[own, own] = np.inf
    given = in_use.array(own) if excluded else None
    parts = in_use.nearest(in_use.array(X), in_use.array(Y), k, given, accurate)
    indices, squares = map(in_use.host, parts)
    assert indices.dtype == np.int32
    expected = np.sort(D, axis=1)[:, :k]
    largest = (Y.astype(float) ** 2).sum(axis=1).max()
    tol = 1e-12 * largest if accurate else 2.0**-7 * largest
    np.testing.assert_allclose(np.take_along_axis(D, indices, axis=1), expected, atol=2 * tol)
    np.testing.assert_allclose(squares, expected, atol=2 * tol)
    assert (np.diff(squares, axis=1) >= 0).all()
    assert all(len(set(row)) == k for row in indices)


def test_nearest_in_several_tiles(in_use, monkeypatch):
    if in_use.name != "emulated":
        from manifoldry.device import cuda_neighbors

        monkeypatch.setattr(cuda_neighbors, "_TILE_ENTRIES", 2**16)
        monkeypatch.setattr(cuda_neighbors, "_TILE_COLUMNS", 512)
    X = RNG.normal(size=(1730, 10))
    own = in_use.array(np.arange(1730, dtype=np.int32))
    indices, _ = in_use.nearest(in_use.array(X), in_use.array(X), 20, own, True)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    np.testing.assert_array_equal(in_use.host(indices), np.argsort(D, axis=1)[:, :20])


def test_nearest_of_what_is_not_finite(in_use):
    X = np.full((5, 3), np.nan, dtype=np.float32)
    indices, squares = in_use.nearest(in_use.array(X), in_use.array(X), 2, None, False)
    assert ((in_use.host(indices) >= 0) & (in_use.host(indices) < 5)).all()
    assert not (in_use.host(squares) < np.inf).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances(in_use, dtype):
    X, Y = (1e6 + RNG.normal(size=(n, 37)).astype(dtype) for n in (20, 50))
    X, Y = X.astype(dtype), Y.astype(dtype)
    indices = RNG.integers(50, size=(20, 9)).astype(np.int32)
    found = in_use.distances(in_use.array(X), in_use.array(Y), in_use.array(indices))
    expected = np.take_along_axis(cdist(X, Y), indices, axis=1)
    check(in_use, found, expected, 1e-12)
    rows = np.repeat(np.arange(20, dtype=np.int32), 9)[::-1].copy()
    pairs = in_use.array(indices.ravel()[::-1].copy()), in_use.array(rows)
    found = in_use.distances(in_use.array(X), in_use.array(Y), *pairs)
    check(in_use, found, expected.ravel()[::-1], 1e-12)


@pytest.mark.parametrize("k", [1, 5, 33, 1000, 20_000])
def test_sort_rows(in_use, k):
    values = RNG.integers(5, size=(6, k)).astype(float)
    indices = np.stack([RNG.permutation(k) for _ in range(6)]).astype(np.int32)
    found = in_use.sort_rows(in_use.array(indices), in_use.array(values))
    order = np.lexsort((indices, values), axis=1)
    check(in_use, found[0], np.take_along_axis(indices, order, axis=1), 0)
    check(in_use, found[1], np.take_along_axis(values, order, axis=1), 0)


@pytest.mark.parametrize("perplexity", [1.5, 10.0, 29.0])
def test_log_precisions(in_use, perplexity):
    t = np.sort(RNG.uniform(size=(3000, 90)) ** RNG.uniform(0.1, 5, (3000, 1)) * 50, axis=1)
    t[:, 0] = 0
    alpha = in_use.host(in_use.log_precisions(in_use.array(t), perplexity))
    P = np.exp(-np.exp(alpha)[:, None] * t)
    P /= P.sum(axis=1)[:, None]
    entropy = -(P * np.log(np.maximum(P, 1e-300))).sum(axis=1)
    np.testing.assert_allclose(entropy, np.log(perplexity), rtol=1e-10)


@pytest.mark.parametrize("m", [1, 5, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_min_plus(in_use, dtype, m):
    A = sparse.random_array((300, 200), density=0.02, rng=RNG, format="csr").astype(dtype)
    assert (np.diff(A.indptr) == 0).any()  # rows without entries
    X = RNG.normal(size=(200, m)).astype(dtype)
    X[:50] = np.inf
    table = np.where(A.toarray() != 0, A.toarray(), np.inf).astype(dtype)
    found = in_use.host(in_use.min_plus(in_use.rows(A, dtype), in_use.array(X)))
    expected = np.min(table[:, :, None] + X[None], axis=1)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype
