"""Logarithms and standardized columns of distributed data, against scikit-learn."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from manifoldry.distributed import Rows
from manifoldry.distributed.collections import from_parts
from manifoldry.methods.block_steps import fit_blocks

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
N = 500


def columns():
    """Constant columns, one of tiny and one of huge variance, and one far from zero."""
    rng = np.random.default_rng(0)
    constant = [np.zeros(N), np.full(N, 1e8 + 0.1), np.full(N, -0.3)]
    rounded = np.where(rng.random(N) > 0.5, 1e8, np.nextafter(1e8, 2e8))  # rounding alone
    spread = [1e-9 * rng.normal(size=N), 1e9 * rng.normal(size=N), 1e6 + rng.normal(size=N)]
    return np.column_stack([*constant, rounded, *spread])


@pytest.mark.parametrize("chunks", [(500,), (1, 200, 0, 299), (125,) * 4])
def test_columns_are_standardized_as_in_memory(chunks):
    X = columns()
    parts = [dask.delayed(each) for each in np.split(X, np.cumsum(chunks)[:-1])]
    array = from_parts(parts, np.array(chunks), X.shape[1], X.dtype)
    [(name, found)], rows = fit_blocks(Rows(array), log1p=False, scale=True)
    expected = StandardScaler().fit(X)
    assert name == "scale"
    np.testing.assert_allclose(found.mean_, expected.mean_, rtol=1e-12, atol=1e-15)
    usual = slice(4, None)
    np.testing.assert_allclose(found.scale_[usual], expected.scale_[usual], rtol=1e-10)
    np.testing.assert_array_equal(found.scale_[:4], 1)
    Y = rows.array.compute()
    np.testing.assert_allclose(Y[:, usual], expected.transform(X)[:, usual], rtol=1e-8, atol=1e-8)
    # The sum of N values is rounded up to N times.
    rounding = N * np.finfo(float).eps * np.abs(X[:, :4])
    assert (np.abs(Y[:, :4]) <= rounding).all()
    np.testing.assert_allclose(Y[:, usual].std(axis=0), 1, rtol=1e-9)


def test_single_precision_stays_and_is_summed_in_double():
    X = (1e4 + np.random.default_rng(0).normal(size=(N, 2))).astype(np.float32)
    [(_, found)], rows = fit_blocks(Rows(da.from_array(X, chunks=(100, 2))), False, True)
    expected = StandardScaler().fit(X.astype(np.float64))
    np.testing.assert_allclose(found.var_, expected.var_, rtol=1e-6)
    assert rows.array.dtype == np.float32


def test_logarithms_come_before_scales():
    X = np.random.default_rng(0).exponential(size=(N, 2))
    steps, rows = fit_blocks(Rows(da.from_array(X, chunks=(100, 2))), log1p=True, scale=True)
    assert [name for name, _ in steps] == ["log1p", "scale"]
    expected = StandardScaler().fit_transform(np.log1p(X))
    np.testing.assert_allclose(rows.array.compute(), expected, rtol=1e-9, atol=1e-12)
    X[300, 1] = -1
    with pytest.raises(ValueError, match="-1"):
        fit_blocks(Rows(da.from_array(X, chunks=(100, 2))), True, False)[1].array.compute()
