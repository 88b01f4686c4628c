"""ColumnMoments, columns and pixels of the data, against numpy and pandas."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from manifoldry.explorer import data as module
from manifoldry.explorer.data import ExploredData, ImageStyle
from manifoldry.io import Table


def explored(X, **options):
    names = options.pop("names", None)
    return ExploredData(Table(X, names), X, **options)


def check_moments(X, values, rtol=1e-9):
    """Against pandas, whose skipna is what is meant by missing."""
    frame = pd.DataFrame(np.asarray(values, dtype=np.float64))
    found = explored(X).moments
    np.testing.assert_allclose(found.mean, frame.mean(), rtol=rtol)
    np.testing.assert_allclose(found.deviation, frame.std(ddof=0), rtol=rtol, atol=1e-300)
    np.testing.assert_allclose(found.low, frame.min())
    np.testing.assert_allclose(found.high, frame.max())
    np.testing.assert_array_equal(found.n_known, frame.count())


@pytest.fixture(params=[35, 2**22])
def blocks(request, monkeypatch):
    """Values that are read at once."""
    monkeypatch.setattr(module, "_CELLS", request.param)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", ">f8"])
def test_moments_of_dense_data(dtype):
    X = np.random.default_rng(0).uniform(0, 200, size=(60, 5)).astype(dtype)
    check_moments(X, X, rtol=1e-6 if dtype == "f4" else 1e-9)


@pytest.mark.usefixtures("blocks")
def test_moments_leave_missing_values_out():
    X = np.random.default_rng(0).normal(size=(60, 5)) + 1e6
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.4] = np.nan
    X[:, 3] = np.nan
    X[41, 3] = 7.0
    check_moments(X, X)


def test_a_column_without_any_value_has_no_range():
    X = np.column_stack([np.arange(6.0), np.full(6, np.nan)])
    _, _, low, high, _ = explored(X).moments
    np.testing.assert_array_equal(low, [0, np.nan])
    np.testing.assert_array_equal(high, [5, np.nan])


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("offset", "size"), [(1e8, 1e-3), (-1e12, 1.0), (0, 1e150), (0, 1e-150)])
def test_offset_and_scale_do_not_matter(offset, size):
    unit = np.random.default_rng(0).normal(size=(60, 3))
    X = offset + size * unit
    found, centered = explored(X).moments, explored((X - offset) / size).moments
    np.testing.assert_allclose(found.deviation / size, centered.deviation, rtol=1e-6)
    np.testing.assert_allclose((found.mean - offset) / size, centered.mean, atol=1e-4)


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.3, -7.7e-9])
def test_a_constant_column_has_deviation_zero(value):
    X = np.full((50_000, 2), value)
    X[:, 1] += np.arange(50_000)
    deviation = explored(X).moments.deviation
    assert deviation[0] == 0
    assert deviation[1] == pytest.approx(np.sqrt((50_000**2 - 1) / 12), rel=1e-6)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_moments_of_sparse_data(container):
    X = sparse.random(60, 8, density=0.2, random_state=0)
    check_moments(container(X), X.toarray())


SPARSE_COLUMNS = {
    "some": [0, 3, 0, -2, 5, 0],
    "none": [0] * 6,
    "only explicit zeros": [-0.0] * 6,
    "some explicit zeros": [-0.0, 0, 4, -0.0, 0, 1],
    "all above zero": [1, 2, 3, 4, 5, 9],
    "all below zero": [-1, -2, -3, -4, -5, -9],
    "constant": [0.1] * 6,
    "constant and zeros": [0.1, 0, 0.1, 0.1, 0, 0],
    "constant and missing": [0.1, np.nan, 0.1, 0.1, np.nan, 0.1],
    "missing and zeros": [np.nan, 0, 0, np.nan, 0, 0],
    "missing, zeros and values": [np.nan, 0, 7, -3, 0, np.nan],
    "one value beside missing ones": [np.nan] * 5 + [2.5],
    "far from zero": [1e8, 1e8 + 1, 1e8 + 2, 1e8 + 3, 1e8 + 1, 1e8],
    "negative and missing": [-4, np.nan, -2, -8, np.nan, -1],
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1.0, 1e150, 1e-150])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_moments_of_stored_values(container, size):
    """Against numpy on the same data as a dense array."""
    columns = np.array(list(SPARSE_COLUMNS.values()), dtype=float).T * size
    places = np.isnan(columns) | (columns != 0) | np.signbit(columns)
    rows, at = np.nonzero(places)
    X = container(sparse.coo_array((columns[places], (rows, at)), shape=columns.shape))
    assert X.nnz == places.sum()  # with the explicit zeros
    found = explored(X).moments
    np.testing.assert_allclose(found.mean / size, np.nanmean(columns / size, axis=0), rtol=1e-14,
                               atol=1e-15)  # fmt: skip
    np.testing.assert_allclose(found.deviation / size, np.nanstd(columns / size, axis=0),
                               rtol=1e-7, atol=1e-15)  # fmt: skip
    np.testing.assert_array_equal(found.low, np.nanmin(columns, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(columns, axis=0))
    np.testing.assert_array_equal(found.n_known, (~np.isnan(columns)).sum(axis=0))
    constant = np.nanmin(columns, axis=0) == np.nanmax(columns, axis=0)
    assert constant.sum() == 6
    assert (found.deviation[constant] == 0).all()


@pytest.mark.filterwarnings("error")
def test_moments_of_sparse_data_without_any_value():
    """A column with only missing values is like that of dense data."""
    X = np.column_stack([np.full(4, np.nan), [0, 1.0, 0, 2]])
    for found, dense in zip(explored(sparse.csr_array(X)).moments, explored(X).moments,
                            strict=True):  # fmt: skip
        np.testing.assert_allclose(found, dense)
    found = explored(sparse.csr_array((5, 3))).moments
    for each in found[:4]:
        np.testing.assert_array_equal(each, np.zeros(3))
    np.testing.assert_array_equal(found.n_known, [5, 5, 5])


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "?"])
def test_moments_of_sparse_data_of_other_types(dtype):
    X = (sparse.random(40, 6, density=0.3, random_state=0).toarray() * 200).astype(dtype)
    check_moments(sparse.csr_array(X), X, rtol=1e-6)


def test_values_at_the_same_place_are_one():
    X = sparse.csr_array((np.array([1.0, 2, 3]), np.array([0, 0, 1]), np.array([0, 2, 3])),
                         shape=(2, 2))  # fmt: skip
    check_moments(X, X.toarray())
    assert X.nnz == 3  # it is not changed


def test_sparse_moments_need_no_dense_array():
    """A million rows and columns, of which a dense array would have eight terabytes."""
    n = 1_000_000
    rows = np.random.default_rng(0).permutation(n)
    X = sparse.coo_array((np.full(n, 3.0), (rows, np.arange(n))), shape=(n, n)).tocsr()
    found = explored(X).moments
    np.testing.assert_allclose(found.mean, 3 / n)
    np.testing.assert_allclose(found.deviation, 3 * np.sqrt((1 / n) * (1 - 1 / n)))


@pytest.mark.usefixtures("blocks")
def test_moments_of_a_memory_map(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    check_moments(mapped, X, rtol=1e-6)


def test_moments_of_restored_rows():
    restored = np.random.default_rng(0).normal(size=(20, 3))
    found = explored(np.empty((50, 0)), restored=restored)
    assert (found.n, found.n_features, found.has_data) == (50, 3, False)
    np.testing.assert_allclose(found.moments.mean, restored.mean(axis=0))


def test_rows_are_those_of_the_table():
    """In single precision, whole numbers such as those of orders would become others."""
    X = np.array([[123_456_789, 0.1], [1, 2]])
    np.testing.assert_array_equal(explored(X).rows([0]), X[:1])
    assert explored(X.astype(np.float32)).rows([0]).dtype == np.float32
    large = sparse.csr_array(X)
    np.testing.assert_array_equal(explored(large).rows([1, 0]), X[::-1])


def test_columns_by_name(flowers):
    found = ExploredData(flowers, flowers.X)
    np.testing.assert_allclose(found.column("petal_length"), flowers.X[:, 2])
    with pytest.raises(ValueError, match="no feature 'petals'"):
        found.column("petals")
    unnamed = explored(sparse.csr_array(np.eye(3)))
    np.testing.assert_array_equal(unnamed.column("column 2"), [0, 1, 0])


def test_how_rows_are_shown():
    many = np.zeros((3, 65))
    assert explored(many).row_kind == "curve"
    assert explored(many[:, :64]).row_kind == "table"
    assert explored(many, names=tuple(map(str, range(65)))).row_kind == "table"
    assert explored(sparse.csr_array(many)).row_kind == "table"
    assert explored(many, image=ImageStyle((5, 13))).row_kind == "image"


@pytest.mark.parametrize("shape", [(8,), (8, 8, 2), (0, 64), (8, -8), (2, 2, 2, 8)])
def test_shapes_that_are_no_images(shape):
    with pytest.raises(ValueError, match="must be \\(height, width\\)"):
        explored(np.zeros((3, 64)), image=ImageStyle(shape))


def test_images_of_another_size():
    with pytest.raises(ValueError, match="has 63 pixels, but the data have 64 columns"):
        explored(np.zeros((3, 64)), image=ImageStyle((7, 9)))
    assert explored(np.zeros((3, 64 * 3)), image=ImageStyle((8, 8, 3))).n_features == 192


def test_pixels_span_all_bytes():
    X = np.array([[-1.0, 0.0, 1.0, np.nan]])
    found = explored(X, image=ImageStyle((2, 2)))
    np.testing.assert_array_equal(found.pixels(X[0]), [0, 128, 255, 0])
    np.testing.assert_array_equal(found.pixels(np.array([-9.0, 9.0, 0.5, 0.0])), [0, 255, 191, 128])
    assert explored(np.ones((2, 4)), image=ImageStyle((2, 2))).pixels(np.ones(4)).dtype == np.uint8


def test_notable_columns_are_the_largest_standard_scores():
    X = np.random.default_rng(0).normal(size=(80, 30)) * np.arange(1, 31) + 1e4
    row = X[3]
    scores = np.abs((row - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_array_equal(explored(X).notable(row), np.argsort(-scores)[:12])
    np.testing.assert_array_equal(explored(X[:, :5]).notable(row[:5]), np.arange(5))


def test_constant_columns_are_not_notable():
    X = np.random.default_rng(0).normal(size=(80, 30))
    X[:, 4] = 0.1
    assert 4 not in explored(X).notable(X[0] + 1e-9)
