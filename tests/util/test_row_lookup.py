"""Looking up rows by value."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.util import rows
from manifoldry.util.rows import RowLookup


@pytest.fixture
def rng():
    return np.random.default_rng(1)


KINDS = [np.asarray, sparse.csr_array, sparse.csr_matrix]


@pytest.mark.parametrize("stored", KINDS)
@pytest.mark.parametrize("asked", KINDS)
def test_rows_are_found_in_any_format(rng, stored, asked):
    X = np.round(rng.normal(size=(50, 6)), 1) * (rng.uniform(size=(50, 6)) < 0.6)
    X = np.unique(X, axis=0)
    rng.shuffle(X)
    queries = np.vstack([X[::-1], X[:4] + 1e-9, rng.normal(size=(3, 6))])
    expected = [*range(len(X) - 1, -1, -1), *[-1] * 7]
    np.testing.assert_array_equal(RowLookup.of(stored(X)).identical(asked(queries)), expected)


def test_the_first_of_several_is_found(rng):
    X = rng.normal(size=(10, 3))
    lookup = RowLookup.of(np.vstack([X, X[::-1], X]))
    np.testing.assert_array_equal(lookup.identical(X), np.arange(10))


@pytest.mark.parametrize("kind", KINDS)
def test_negative_zero_is_zero(kind):
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    negative = np.array([[1.0, -0.0], [-0.0, 2.0]])
    np.testing.assert_array_equal(RowLookup.of(kind(X)).identical(kind(negative)), [0, 1])
    np.testing.assert_array_equal(RowLookup.of(kind(negative)).identical(kind(X)), [0, 1])
    np.testing.assert_array_equal(RowLookup.of(negative).identical(kind(X)), [0, 1])


def test_stored_zeros_and_repeated_entries_of_sparse_rows_do_not_matter():
    X = np.array([[0.0, 3.0, 0.0], [1.0, 0.0, 2.0]])
    zeros = sparse.csr_array(
        (np.array([0.0, 3.0, 1.0, 2.0, 0.0]), np.array([0, 1, 0, 2, 1]), np.array([0, 2, 5])),
        shape=(2, 3),
    )
    halves = sparse.csr_array(
        (np.array([1.0, 2.0, 1.0, 2.0]), np.array([1, 1, 0, 2]), np.array([0, 2, 4])), shape=(2, 3)
    )
    for odd in (zeros, halves):
        np.testing.assert_array_equal(RowLookup.of(X).identical(odd), [0, 1])
        np.testing.assert_array_equal(RowLookup.of(odd).identical(X), [0, 1])
    assert halves.nnz == 4


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("keys", ["all-alike", "two-kinds"])
def test_rows_that_share_a_key_are_distinguished(rng, kind, keys, monkeypatch):
    count = 1 if keys == "all-alike" else 2
    monkeypatch.setattr(
        rows, "_row_keys", lambda X: (np.arange(X.shape[0]) % count).astype(np.uint64)
    )
    X = rng.normal(size=(30, 4))
    X[20] = X[10]
    lookup = RowLookup.of(kind(X))
    queries = X.copy()
    queries[4] = 0.5
    expected = np.arange(30)
    expected[4], expected[20] = -1, 10
    np.testing.assert_array_equal(lookup.identical(kind(queries)), expected)


def test_numbers_of_few_digits_have_different_keys(rng):
    """Gray levels fill only the high bits of a double, which a plain sum would lose."""
    X = rng.integers(0, 256, size=(20_000, 20)).astype(float)
    keys = rows._row_keys(X)
    assert len(np.unique(keys)) == len(np.unique(X, axis=0))
    small = np.array([[a, b] for a in range(256) for b in range(256)], float)
    assert len(np.unique(rows._row_keys(small))) == 256**2


def test_keys_do_not_depend_on_the_batch_or_the_layout(rng, monkeypatch):
    X = rng.normal(size=(40, 9))
    keys = rows._row_keys(X)
    np.testing.assert_array_equal(keys[7:8], rows._row_keys(X[7:8]))
    np.testing.assert_array_equal(keys, rows._row_keys(np.asfortranarray(X)))
    np.testing.assert_array_equal(keys, rows._row_keys(sparse.csr_array(X)))
    blocks = [slice(start, start + 7) for start in range(0, 40, 7)]
    monkeypatch.setattr(rows, "row_blocks", lambda n, width, budget: blocks)
    np.testing.assert_array_equal(keys, rows._row_keys(X))


def test_single_precision_rows_are_found_by_their_value(rng):
    X = rng.normal(size=(20, 3)).astype(np.float32)
    lookup = RowLookup.of(X)
    np.testing.assert_array_equal(lookup.identical(X.astype(np.float64)), np.arange(20))
    np.testing.assert_array_equal(lookup.identical(X.astype(np.float64) + 1e-12), -1)


def test_an_empty_query():
    lookup = RowLookup.of(np.ones((3, 2)))
    assert len(lookup.identical(np.empty((0, 2)))) == 0
    np.testing.assert_array_equal(lookup.identical(np.array([[1e308, 0.0], [1.0, 1.0]])), [-1, 0])


def test_first_duplicates_of_rows():
    X = np.array([[2.0], [1.0], [2.0], [3.0], [2.0], [1.0], [2.0]])
    lookup = RowLookup.of(X)
    assert lookup.first_duplicates(1).tolist() == [0, 1, 3]
    assert lookup.first_duplicates(2).tolist() == [0, 1, 2, 3, 5]
    assert lookup.first_duplicates(9).tolist() == list(range(7))
