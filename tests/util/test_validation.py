"""Validation of data and arguments, and memory checks."""

import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from manifoldry import PCA
from manifoldry.exceptions import LargeMatrixWarning
from manifoldry.util import validation
from manifoldry.util.checks import (
    as_generator,
    check_at_most,
    check_below,
    check_count,
    check_nonnegative,
    check_option,
    check_positive,
)
from manifoldry.util.memory import memory_remedy
from manifoldry.util.validation import (
    asymmetric_product,
    canonical,
    check_data,
    check_nonnegative_entries,
    check_not_masked,
    check_square,
    check_symmetric,
    check_zero_diagonal,
    copy_if_shared,
    in_precision,
    largest_asymmetry,
    plan_matrix,
    plan_memory,
    power_of_two_scale,
    row_blocks,
    split_by_label,
    spread_rows,
)

# --- data --------------------------------------------------------------------------------------


def test_masked_cells_are_rejected_and_counted():
    X = np.ma.masked_greater(np.arange(6.0), 3)
    with pytest.raises(ValueError, match="X has 2 masked cells"):
        check_not_masked(X)
    check_not_masked(np.ma.array(np.arange(6.0)))  # nothing is masked
    check_not_masked([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.ones((3, 2), np.float32), np.float32),
        (np.ones((3, 2), np.float16), np.float64),
        (np.ones((3, 2), ">f4"), np.float32),
        (np.ones((3, 2), ">f8"), np.float64),
        (np.ones((3, 2), int), np.float64),
        ([[1, 2], [3, 4]], np.float64),
        (pd.DataFrame({"a": [1, 2], "b": [0.5, 1]}), np.float64),
        (pl.DataFrame({"a": [1, 2], "b": [0.5, 1]}), np.float64),
        (pl.DataFrame(np.ones((3, 2), np.float32)), np.float32),
        (pl.DataFrame({"a": np.ones(2, np.float32), "b": [0.5, 1]}), np.float64),
        (sparse.coo_array(np.eye(3, dtype=np.float32)), np.float32),
    ],
)
def test_data_become_float_and_single_precision_stays(given, dtype):
    X = check_data(BaseEstimator(), given, reset=True)
    assert X.dtype == dtype
    assert not sparse.issparse(X) or X.format == "csr"


def test_results_out_of_the_range_of_the_data_are_refused():
    assert in_precision(np.array([1.5, np.nan]), np.float32).dtype == np.float32
    values = np.array([[1.0, 2.0], [1e39, 0.0]])
    with pytest.raises(ValueError, match=r"float32 in 1 of 2 rows \(1\).*; pass double"):
        in_precision(values, np.float32)
    with pytest.raises(ValueError, match=r"float64 in 1 of 2 rows \(1\).*; divide the data by"):
        in_precision(np.array([[1.0], [np.inf]]), np.float64)
    corners = np.array([[1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]], np.float32) * np.float32(3.4e38)
    with pytest.raises(ValueError, match="results leave the range of float32"):
        PCA(1).fit(corners)


def test_the_number_of_features_is_remembered():
    estimator = BaseEstimator()
    check_data(estimator, np.ones((3, 2)), reset=True)
    with pytest.raises(ValueError, match="3 features, but BaseEstimator is expecting 2"):
        check_data(estimator, np.ones((3, 3)), reset=False)


def with_long_indices(X):
    return sparse.csr_array(
        (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape
    )


def test_canonical_sparse_data_have_short_indices_and_every_entry_once():
    X = with_long_indices(sparse.csr_array(np.arange(6.0).reshape(2, 3)))
    tidy = canonical(X)
    assert tidy.indices.dtype == tidy.indptr.dtype == np.int32
    assert X.indices.dtype == np.int64
    np.testing.assert_array_equal(tidy.toarray(), X.toarray())
    repeated = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2)
    )
    tidy = canonical(repeated)
    np.testing.assert_array_equal(tidy.data, [4, 3])
    assert repeated.nnz == 3  # the caller's matrix is not modified
    stored_zero = sparse.csr_array((np.array([0.0]), np.array([1]), np.array([0, 1])), shape=(1, 2))
    assert canonical(stored_zero).nnz == 1
    dense = np.ones((2, 2))
    assert canonical(dense) is dense


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_canonical_keeps_the_kind_and_does_not_copy_without_need(kind):
    X = kind(np.eye(3))
    assert type(canonical(X)) is kind
    assert np.shares_memory(canonical(X).data, X.data)


# --- ownership ---------------------------------------------------------------------------------


def test_shared_memory_is_copied():
    X = np.ones((4, 2))
    assert not np.shares_memory(copy_if_shared(X, X), X)
    assert not np.shares_memory(copy_if_shared(X[1:], X), X)
    frame = pd.DataFrame(X, copy=False)
    view = frame.to_numpy()
    assert not np.shares_memory(copy_if_shared(view, frame), view)
    S = sparse.csr_array(np.eye(3))
    assert not np.shares_memory(copy_if_shared(S, S).data, S.data)


def test_converted_arrays_are_not_copied_again():
    converted = np.array([[1.0, 2.0]])
    for original in ([[1.0, 2.0]], ((1.0, 2.0),), np.array([[1, 2]]), pd.DataFrame({"a": [1]})):
        assert copy_if_shared(converted, original) is converted


class Exposed:
    """An object that shares its memory with numpy."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_arrays_from_unknown_objects_are_copied():
    lent = np.ones((2, 2))
    assert not np.shares_memory(copy_if_shared(lent, Exposed(lent)), lent)


def test_only_a_read_only_memory_map_is_kept(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    for mode, kept in (("r", True), ("r+", False), ("c", False)):
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        for X in (mapped, np.asarray(mapped), mapped[1:]):
            assert np.shares_memory(copy_if_shared(X, mapped), mapped) == kept
    locked = np.load(tmp_path / "X.npy", mmap_mode="r+")
    locked.flags.writeable = False  # the file can still be written through another handle
    assert not np.shares_memory(copy_if_shared(np.asarray(locked), locked), locked)


# --- matrices ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_square_non_negative_symmetric(kind):
    A = np.array([[0.0, 2.0], [2.0, 0.0]])
    for check in (check_square, check_nonnegative_entries, check_symmetric):
        check(kind(A), "distances")
    with pytest.raises(ValueError, match=r"distances must be a square matrix; got shape \(2, 1\)"):
        check_square(kind(A[:, :1]), "distances")
    with pytest.raises(ValueError, match=r"affinities must not be negative; the smallest is -2"):
        check_nonnegative_entries(kind(-A), "affinities")
    with pytest.raises(ValueError, match=r"kernel must be symmetric; .* by up to 0\.5; pass \(A"):
        check_symmetric(kind(A + np.array([[0, 0.5], [0, 0]])), "kernel")
    check_symmetric(kind(A * (1 + np.array([[0, 1e-9], [0, 0]]))), "kernel")
    check_symmetric(kind(np.zeros((2, 2))), "kernel")


def test_symmetry_is_checked_in_every_block(monkeypatch):
    A = np.add.outer(np.arange(10.0), np.arange(10.0))
    monkeypatch.setattr(
        validation, "row_blocks", lambda *shape: [slice(i, i + 3) for i in range(0, 10, 3)]
    )
    check_symmetric(A, "distances")
    for i, j in ((0, 9), (9, 0), (4, 5), (8, 9)):
        B = A.copy()
        B[i, j] += 1
        with pytest.raises(ValueError, match="up to 1;"):
            check_symmetric(B, "distances")


def test_asymmetry_of_many_entries_is_found_without_a_transpose():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((60, 60)) * (rng.random((60, 60)) < 0.1))
    upper[20:30] = 0
    A = upper + upper.T
    assert largest_asymmetry(sparse.csr_array(A), compile_above=0) == 0
    for i, j in rng.integers(0, 60, (40, 2)):  # entries with and without a partner
        B = A.copy()
        B[i, j] += 0.5
        expected = 0.5 if i != j else 0.0
        assert largest_asymmetry(sparse.csr_array(B), compile_above=0) == pytest.approx(expected)
    C = sparse.csr_array(upper)
    found = largest_asymmetry(C, compile_above=0)
    assert found == largest_asymmetry(C) == np.abs(np.triu(upper, 1)).max()


def test_every_difference_from_the_transpose_changes_the_product():
    for i, j in zip(range(500), np.random.default_rng(0).permutation(500), strict=True):
        A = sparse.csr_array(([1e-3], ([i], [j])), shape=(500, 500))
        assert 1e-3 * (i != j) <= asymmetric_product(A) <= 2e-3


def test_symmetry_needs_no_copies_of_the_matrix():
    A = np.ones((3000, 3000))
    tracemalloc.start()
    check_symmetric(A, "distances")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * A.nbytes


def test_the_diagonal_of_distances():
    D = np.array([[0.0, 3.0], [3.0, 0.0]])
    check_zero_diagonal(D)
    check_zero_diagonal(D + 1e-9 * np.eye(2))
    check_zero_diagonal(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"the largest entry there is 0\.5; if these are simil"):
        check_zero_diagonal(D + np.diag([0.5, 0.1]))


# --- memory and blocks -------------------------------------------------------------------------


def test_arrays_that_do_not_fit_into_memory_are_rejected(monkeypatch):
    monkeypatch.setattr(validation, "available_memory", lambda: 2 * 2**30)
    plan_memory(2.0 * 2**30, "a matrix", "use less")
    message = r"a matrix needs about 3\.0 GiB and 2\.0 GiB are free; use less"
    with pytest.raises(MemoryError, match=message):
        plan_memory(3.0 * 2**30, "a matrix", "use less")
    monkeypatch.setattr(validation, "available_memory", lambda: None)
    plan_memory(1e30, "a matrix", "use less")  # unknown memory: no check


def test_matrices_of_all_pairs_of_many_points_are_announced(monkeypatch):
    monkeypatch.setattr(validation, "available_memory", lambda: 10**10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_matrix((20_000, 20_000), 8, "a matrix", "use less")
    with pytest.warns(LargeMatrixWarning, match=r"^a matrix needs about 3\.0 GiB of .*, use less$"):
        plan_matrix((20_001, 20_000), 8, "a matrix", "use less")
    with pytest.warns(LargeMatrixWarning, match="much, pass init$"), memory_remedy("pass init"):
        plan_matrix((20_001, 20_000), 8, "a matrix", "use less")
    with pytest.raises(MemoryError, match=r"^a matrix needs about .* are free; use less$"):
        plan_matrix((40_000, 40_000), 8, "a matrix", "use less")


def test_the_free_memory_is_read_for_large_arrays_only(monkeypatch):
    """Reading it takes longer than most steps of a fit to a hundred points."""
    read = []
    monkeypatch.setattr(validation, "available_memory", lambda: read.append(1))
    plan_memory(2.0**27, "a matrix", "use less")
    assert not read
    plan_memory(2.0**27 + 1, "a matrix", "use less")
    assert read


@pytest.mark.parametrize(
    ("n_rows", "width", "budget"), [(0, 5, 10), (1, 5, 10), (7, 5, 10), (7, 100, 10), (7, 0, 3)]
)
def test_blocks_cover_all_rows_once_within_the_budget(n_rows, width, budget):
    blocks = row_blocks(n_rows, width, budget)
    covered = [i for block in blocks for i in range(block.start, block.stop)]
    assert covered == list(range(n_rows))
    assert all(b.stop - b.start == 1 or (b.stop - b.start) * width <= budget for b in blocks)


@pytest.mark.parametrize("n", [1, 5, 10, 11, 15, 19, 20, 1999])
def test_spread_rows_cover_all_rows_evenly(n):
    rows = spread_rows(n, 10)
    assert len(rows) == min(n, 10)
    assert rows[0] == 0
    assert n - rows[-1] <= np.ceil(n / 10)
    assert len(np.unique(rows)) == len(rows)
    steps = np.diff(rows)
    assert n == 1 or steps.max() - steps.min() <= 1


def test_rows_split_by_label():
    labels = np.array([2, 0, -1, 2, 1, 0])
    assert [rows.tolist() for rows in split_by_label(labels)] == [[1, 5], [4], [0, 3]]


# --- scale -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([0.0, 0.0], 1.0),
        ([3.0, -5.0], 8.0),
        ([-8.0, 1.0], 8.0),
        ([8.0 * (1 + 2.0**-52)], 16.0),
        ([2.0**52 + 1], 2.0**53),
        ([0.3], 0.5),
        ([1e308], 2.0**1023),
        ([np.finfo(float).max], 2.0**1023),
        ([5e-324], 2.0**-1022),
        ([], 1.0),
    ],
)
def test_power_of_two_scale(X, expected):
    scale = power_of_two_scale(np.array(X))
    assert scale == expected
    assert isinstance(scale, float)
    assert np.isfinite(1 / scale)


def test_power_of_two_scale_of_sparse_and_single_precision_data():
    X = np.array([[0.0, -3.0]], dtype=np.float32)
    assert power_of_two_scale(X) == power_of_two_scale(sparse.csr_array(X)) == 4.0


def test_dividing_by_the_scale_loses_no_digits():
    X = np.random.default_rng(0).normal(size=1000) * 1e7
    scale = power_of_two_scale(X)
    np.testing.assert_array_equal(X / scale * scale, X)
    assert np.abs(X / scale).max() <= 1


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, np.int32(4), np.uint8(7)])
def test_counts(value):
    assert check_count("k", value) == int(value)
    assert type(check_count("k", value)) is int


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "k=0 must be at least 1; pass k=1 or more"),
        (-3, ValueError, "k=-3 must be at least 1"),
        (2.0, TypeError, r"k=2\.0 must be a whole number; pass k=1 or more"),
        ("2", TypeError, "k='2' must be a whole number"),
        (True, TypeError, "k=True must be a whole number"),
        (None, TypeError, "k=None must be a whole number"),
    ],
)
def test_invalid_counts(value, error, message):
    with pytest.raises(error, match=message):
        check_count("k", value)


def test_counts_from_another_minimum():
    assert check_count("seed", 0, minimum=0) == 0
    with pytest.raises(ValueError, match="k=2 must be at least 3; pass k=3 or more"):
        check_count("k", 2, minimum=3)


@pytest.mark.parametrize("check", [check_positive, check_nonnegative])
@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.25), np.int64(3), Fraction(1, 2)])
def test_numbers(check, value):
    assert check("gamma", value) == float(value)
    assert type(check("gamma", value)) is float


@pytest.mark.parametrize("check", [check_positive, check_nonnegative])
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-1, ValueError, "gamma=-1 must be"),
        (np.nan, ValueError, "gamma=nan must be finite"),
        (np.inf, ValueError, "gamma=inf must be finite"),
        ("1", TypeError, "gamma='1' must be a number"),
        (True, TypeError, "gamma=True must be a number"),
        (1j, TypeError, "gamma=1j must be a number"),
        (None, TypeError, "gamma=None must be a number"),
        ([1.0], TypeError, "must be a number"),
    ],
)
def test_invalid_numbers(check, value, error, message):
    with pytest.raises(error, match=message):
        check("gamma", value)


def test_zero_is_not_positive_but_not_negative_either():
    with pytest.raises(ValueError, match="gamma=0 must be greater than 0; pass a positive gamma"):
        check_positive("gamma", 0)
    assert check_nonnegative("noise", 0) == 0.0
    with pytest.raises(ValueError, match=r"noise=-0\.1 must be at least 0; pass noise=0 for none"):
        check_nonnegative("noise", -0.1)


def test_upper_bounds():
    assert check_below("hole", 0.9, 1.0, "the width") == 0.9
    with pytest.raises(ValueError, match=r"hole=1 must be less than 1 \(the width\); lower hole"):
        check_below("hole", 1.0, 1.0, "the width")
    assert check_at_most("angle", 2 * np.pi * (1 + 1e-13), 2 * np.pi, "a turn") == 2 * np.pi
    with pytest.raises(ValueError, match=r"angle=7 must be at most 6\.28319 \(a turn\)"):
        check_at_most("angle", 7.0, 2 * np.pi, "a turn")


def test_options():
    assert check_option("end", "a", ("a", "b")) == "a"
    for value in ("c", None, 1, ["a"]):
        with pytest.raises(ValueError, match="must be one of 'a', 'b'"):
            check_option("end", value, ("a", "b"))


# --- random numbers ----------------------------------------------------------------------------


def draws(random_state, **options):
    return as_generator(random_state, **options).integers(0, 2**60, 3).tolist()


def test_seeds_repeat_and_none_does_not():
    assert draws(3) == draws(3) == draws(np.int64(3))
    assert draws(3) != draws(4)
    assert draws(None) != draws(None)
    assert draws(None, unset=0) == draws(None, unset=0) == draws(0)


def test_a_generator_is_used_and_advanced():
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator


def test_a_random_state_gives_the_seed_and_advances():
    state = np.random.RandomState(0)
    first, second = draws(state), draws(state)
    assert first != second
    assert first == draws(np.random.RandomState(0))


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), ("0", TypeError), (0.5, TypeError), (True, TypeError)]
)
def test_invalid_seeds(value, error):
    with pytest.raises(error, match="random_state="):
        as_generator(value)
