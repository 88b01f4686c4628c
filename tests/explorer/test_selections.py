"""What distinguishes a selection, against the formulas; its export, read with pandas."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from manifoldry.explorer import selections
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.maps import ExploredMap
from manifoldry.explorer.selections import check_rows, distinguish, exported
from manifoldry.io import Table

RNG = np.random.default_rng(0)


def standardized(X, rows):
    """Differences of means in standard deviations, straight from the definition."""
    inside = np.isin(np.arange(len(X)), rows)
    a, b = np.nanmean(X[inside], axis=0), np.nanmean(X[~inside], axis=0)
    return (a - b) / np.nanstd(X, axis=0), a, b


def check(X, rows, found, rtol=1e-8):
    difference, inside, outside = standardized(X, rows)
    order = [int(each["name"].split()[1]) - 1 for each in found["features"]]
    largest = np.argsort(-np.nan_to_num(np.abs(difference)), kind="stable")[: len(order)]
    np.testing.assert_array_equal(order, largest)
    for j, each in zip(order, found["features"], strict=True):
        assert each["difference"] == pytest.approx(difference[j], rel=rtol)
        assert each["inside"] == pytest.approx(inside[j], rel=rtol)
        assert each["outside"] == pytest.approx(outside[j], rel=rtol)


def explored(X, **options):
    return ExploredData(Table(X, **options), X)


@pytest.mark.parametrize(
    "rows", [np.arange(10), np.array([3]), np.arange(1, 60), RNG.permutation(60)[:33]]
)
def test_differences_of_means(rows):
    X = RNG.normal(size=(60, 20)) * np.arange(1, 21) + np.arange(20)
    found = distinguish(explored(X), np.sort(rows))
    assert found["n"] == len(rows)
    assert len(found["features"]) == 12
    check(X, rows, found)


def test_missing_values_are_left_out_column_by_column():
    X = RNG.normal(size=(60, 5)) + 3
    X[:25, 2] = np.nan
    X[RNG.uniform(size=X.shape) < 0.2] = np.nan
    check(X, np.arange(30), distinguish(explored(X), np.arange(30)))


def test_columns_that_are_missing_in_or_outside_the_selection_are_not_compared():
    X = RNG.normal(size=(20, 3))
    X[:5, 0] = np.nan
    X[5:, 1] = np.nan
    found = distinguish(explored(X), np.arange(5))
    assert [each["name"] for each in found["features"]] == ["column 3"]


@pytest.mark.parametrize(("offset", "size"), [(1e8, 1e-3), (-1e12, 1.0), (0, 1e150), (0, 1e-150)])
def test_offset_and_scale_do_not_matter(offset, size):
    unit = RNG.normal(size=(60, 3))
    found = distinguish(explored(offset + size * unit), np.arange(20))
    expected = np.sort(np.abs(standardized(unit, np.arange(20))[0]))[::-1]
    np.testing.assert_allclose(
        [abs(each["difference"]) for each in found["features"]], expected, rtol=1e-3
    )


def test_sparse_data():
    X = sparse.random(60, 9, density=0.4, random_state=0)
    check(X.toarray(), np.arange(7), distinguish(explored(sparse.csr_array(X)), np.arange(7)))


def test_constant_columns_do_not_differ():
    X = np.full((1000, 2), 0.1)
    X[:10, 1] = 5
    found = distinguish(explored(X), np.arange(10))
    assert [each["name"] for each in found["features"]] == ["column 2"]


def test_labels(flowers):
    rows = np.r_[0:50, 60:70]  # all setosa, 10 of 50 versicolor
    found = distinguish(ExploredData(flowers, flowers.X), rows)
    shares = {each["value"]: (each["inside"], each["outside"]) for each in found["labels"]}
    assert shares == {
        "setosa": (50 / 60, 0.0), "versicolor": (10 / 60, 40 / 90), "virginica": (0.0, 50 / 90),
    }  # fmt: skip
    assert [each["value"] for each in found["labels"]] == ["setosa", "virginica", "versicolor"]
    assert found["text"].startswith("83% have the species setosa, as do 0% of the others.")
    assert "lower petal_length" in found["text"]


def test_labels_that_are_missing_or_numbers():
    labels = {"a": np.array(["x", None, "x", "y", None, "y"], dtype=object),
              "b": np.linspace(0, 1, 6)}  # fmt: skip
    X = np.zeros((6, 1))
    found = distinguish(ExploredData(Table(X, labels=labels), X), np.array([0, 1]))
    assert [(e["value"], e["inside"], e["outside"]) for e in found["labels"]] == [
        ("y", 0.0, 0.5), ("x", 0.5, 0.25),
    ]  # fmt: skip


@pytest.mark.parametrize(("rows", "what"), [([], "no row is"), (range(6), "all rows are")])
def test_nothing_to_compare_with(rows, what):
    found = distinguish(explored(np.eye(6)), np.array(rows, dtype=int))
    assert found["text"] == f"There is nothing to compare with, because {what} selected."
    assert found["features"] == found["labels"] == []


def test_without_data():
    data = ExploredData(Table(np.empty((6, 0)), labels={"k": np.array(list("aabbbb"))}), None,
                        restored=np.zeros((2, 2)))  # fmt: skip
    found = distinguish(data, np.array([0, 1]))
    assert found["features"] == []
    assert found["text"] == "100% have the k a, as do 0% of the others."


def test_checked_rows():
    np.testing.assert_array_equal(check_rows([3, 1, 3], 4), [1, 3])
    assert check_rows([], 4).tolist() == []
    assert check_rows(np.array([], dtype=np.float32), 4).tolist() == []


@pytest.mark.parametrize(
    ("rows", "text"),
    [([0, 4], "row=4 must be"), ([-1, 2], "row=-1 must be"), ([0.5], "whole numbers"),
     ([np.nan], "whole numbers"), (["a"], "whole numbers"), ([[0, 1]], "one dimension"),
     ([2**40], "row=1099511627776 must be"), (None, "whole numbers"), ([True], "whole numbers")],
)  # fmt: skip
def test_rows_that_are_none(rows, text):
    with pytest.raises((ValueError, TypeError), match=text):
        check_rows(rows, 4)


def read(content, **options):
    return pd.read_csv(io.BytesIO(content), **options)


def test_export_is_read_back_by_pandas(flowers, pca):
    data = ExploredData(flowers, flowers.X)
    maps = [ExploredMap("a", "PCA", pca.embedding_, pca, method="pca"),
            ExploredMap("b", "t-SNE 2", flowers.X[:, :1])]  # fmt: skip
    rows = np.array([3, 77, 149])
    name, content, note = exported(data, maps, rows)
    assert (name, note) == ("selection.csv", "")
    frame = read(content)
    assert list(frame) == ["id", "pca0", "pca1", "t_sne_20", *flowers.names, "species"]
    assert list(frame["id"]) == ["flower3", "flower77", "flower149"]
    np.testing.assert_allclose(frame[["pca0", "pca1"]], pca.embedding_[rows], rtol=1e-12)
    np.testing.assert_array_equal(frame[list(flowers.names)], flowers.X[rows])
    assert list(frame["species"]) == list(flowers.labels["species"][rows])


def test_export_of_whole_numbers_that_need_double_precision():
    X = np.array([[123_456_789, 1], [2**40 + 1, 2]])
    frame = read(exported(explored(X), [], np.array([0, 1]))[1])
    np.testing.assert_array_equal(frame[["column 1", "column 2"]], X)
    assert list(frame["id"]) == ["row 1", "row 2"]


def test_missing_labels_are_empty_cells():
    labels = {"own": np.array(["a", None, "b"], dtype=object),
              "number": np.array([1.5, np.nan, 2])}  # fmt: skip
    frame = read(exported(explored(np.eye(3), labels=labels), [], np.arange(3))[1])
    assert frame["own"].isna().tolist() == frame["number"].isna().tolist() == [False, True, False]


def test_formulas_get_an_apostrophe():
    table = Table(np.eye(2), ("=1+1", "+x"), np.array(["=cmd|' /C calc'!A0", "-2"]),
                  {"@sum": np.array(["=HYPERLINK(1)", "fine"])})  # fmt: skip
    maps = [ExploredMap("a", "=evil()", np.eye(2))]
    frame = read(exported(ExploredData(table, table.X), maps, np.array([0, 1]))[1], dtype=str)
    assert [name[0] for name in frame][1:] == ["'"] * 5
    assert list(frame["id"]) == ["'=cmd|' /C calc'!A0", "'-2"]
    assert list(frame["'@sum"]) == ["'=HYPERLINK(1)", "fine"]


def test_export_of_no_rows(flowers):
    frame = read(exported(ExploredData(flowers, flowers.X), [], np.empty(0, dtype=int))[1])
    assert len(frame) == 0
    assert list(frame) == ["id", *flowers.names, "species"]


def test_too_many_features_are_left_out(monkeypatch, flowers):
    monkeypatch.setattr(selections, "_MOST_CELLS", 11)
    data = ExploredData(flowers, flowers.X)
    _, content, note = exported(data, [], np.arange(2))
    assert (list(read(content)), note) == (["id", *flowers.names, "species"], "")
    _, content, note = exported(data, [], np.arange(3))
    assert list(read(content)) == ["id", "species"]
    assert note == "The 4 features are left out, because the file would be large."


def test_export_of_sparse_data_and_of_a_map_alone():
    X = sparse.csr_array(np.eye(4)[:, :3])
    frame = read(exported(explored(X), [], np.array([1, 3]))[1])
    np.testing.assert_array_equal(frame[["column 1", "column 2", "column 3"]], X.toarray()[[1, 3]])
    alone = ExploredData(Table(np.empty((4, 0))), None, restored=np.zeros((2, 2)))
    frame = read(exported(alone, [ExploredMap("a", "A", np.eye(4))], np.array([2]))[1])
    assert frame.iloc[0, 1:].tolist() == [0, 0, 1, 0]
