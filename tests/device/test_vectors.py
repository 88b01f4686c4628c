"""Inner products, linear combinations and centered points, of one launch each."""

import numpy as np
import pytest

from manifoldry.device import device_of, vectors

SIZES = pytest.mark.parametrize("shape", [(1, 1), (7, 2), (3000, 2), (70_001, 3), (50, 40)])


def arrays(device, count, shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    host = [rng.normal(size=shape).astype(dtype) for _ in range(count)]
    return host, [device.array(part) for part in host]


@SIZES
@pytest.mark.parametrize("count", [1, 5, 12, 13, 30])
def test_inner_products(device, shape, count):
    host, own = arrays(device, count + 1, shape)
    found = vectors.inner_products(*((own[0], other) for other in own[1:]))
    expected = [np.sum(host[0] * other, dtype=np.longdouble) for other in host[1:]]
    assert all(type(value) is float for value in found)
    scale = np.abs(host[0]).sum()
    np.testing.assert_allclose(
        found, np.array(expected, dtype=float), rtol=1e-13, atol=1e-15 * scale
    )


def test_inner_products_of_both_precisions(device):
    (a, b), (A, B) = arrays(device, 2, (999, 2))
    single, on_device = a.astype(np.float32), A.astype(np.float32)
    pairs = (A, on_device), (on_device, B), (on_device, on_device)
    expected = np.sum(a * single), np.sum(single * b), np.sum(single.astype(float) ** 2)
    np.testing.assert_allclose(vectors.inner_products(*pairs), expected, rtol=1e-12)


def test_products_that_are_not_finite(device):
    (_, _), (A, B) = arrays(device, 2, (500, 2))
    A[3, 1] = np.nan
    assert np.isnan(vectors.inner(A, B))
    A[3, 1] = np.inf
    assert vectors.norm(A) == np.inf


def test_norms(device):
    (a, b), own = arrays(device, 2, (400, 3))
    np.testing.assert_allclose(vectors.norms(*own), [np.linalg.norm(a), np.linalg.norm(b)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2, 12, 13, 40])
def test_combination(device, dtype, count):
    host, own = arrays(device, count, (321, 2), dtype)
    factors = np.linspace(-1, 2, count)
    found = vectors.combination(factors, own)
    assert found.dtype == dtype
    assert device_of(found) is device
    expected = np.einsum("t,tij->ij", factors, np.stack(host), dtype=np.float64)
    rtol = 1e-12 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(device.host(found), expected, rtol=rtol, atol=rtol)


def test_combination_of_both_precisions(device):
    (a, b), (A, B) = arrays(device, 2, (10, 2))
    found = vectors.combination([1.0, 2.0], [A.astype(np.float32), B])
    assert found.dtype == np.float64
    np.testing.assert_allclose(device.host(found), a.astype(np.float32) + 2 * b, rtol=1e-12)


@SIZES
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("wanted", [np.float32, np.float64])
def test_centered(device, shape, given, wanted):
    """Means are as accurate far from the origin."""
    (host,), _ = arrays(device, 1, shape, given)
    host = (host + 1000).astype(given)
    found = vectors.centered(device.array(host), wanted)
    assert found.dtype == wanted
    expected = host - host.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(device.host(found), expected, rtol=1e-6, atol=1e-9)


def test_the_same_bits(device):
    _, own = arrays(device, 2, (70_000, 2))
    first = vectors.inner_products((own[0], own[1]))
    assert all(vectors.inner_products((own[0], own[1])) == first for _ in range(5))
    # A product does not depend on those beside it.
    assert vectors.inner_products((own[1], own[1]), (own[0], own[1]))[1:] == first
