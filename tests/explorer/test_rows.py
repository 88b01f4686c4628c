"""Facts of rows and the search for them."""

import numpy as np
import pytest

from manifoldry.explorer.data import ExploredData, ImageStyle
from manifoldry.explorer.rows import RowSearch, label_text, row_facts
from manifoldry.io import Table

IDS = np.array(["17", "Anna", "anna-2", "3", "Bert"])
LABELS = {"kind": np.array(["old", "new", None, "older", "bert"], dtype=object),
          "year": np.array([1999.0, 17, np.nan, 4, 2])}  # fmt: skip


def explored(ids=IDS, labels=LABELS):
    return ExploredData(Table(np.zeros((5, 2)), ids=ids, labels=labels), np.zeros((5, 2)))


@pytest.mark.parametrize(
    ("text", "rows", "said"),
    [
        ("Anna", [1], "1 row called anna."),  # exactly, before names that have it in them
        ("ANN", [1, 2], "2 rows whose name has 'ann' in it."),
        ("17", [0], "1 row called 17."),  # a name before a label
        ("3", [3], "1 row called 3."),  # a name before a number
        ("5", [4], "Row 5, counted from 1."),
        ("row 1", [0], "Row 1, counted from 1."),
        (" Row 2 ", [1], "Row 2, counted from 1."),
        ("4", [3], "Row 4, counted from 1."),  # a number before a label
        ("bert", [4], "1 row called bert."),
        ("old", [0], "1 row whose kind is 'old'."),  # exactly, before 'older'
        ("ol", [0, 3], "2 rows whose kind has 'ol' in it."),
        ("kind  Older", [3], "1 row whose kind is 'older'."),
        ("er", [4], "1 row whose name has 'er' in it."),  # part of a name before part of a label
        ("1999.0", [0], "1 row whose year is '1999.0'."),
        ("199", [0], "1 row whose year has '199' in it."),
        ("missing", [], "No row is called 'missing'"),
        ("00001", [], "No row is called '00001'"),
        ("6", [], "No row is called '6', of all names, numbers and labels."),
        ("", [], "Type a name, a number or a label."),
        ("  ", [], "Type a name, a number or a label."),
        ("9" * 5000, [], "No row is called"),
        ("²", [], "No row is called"),
    ],
)
def test_search(text, rows, said):
    found = RowSearch(explored())(text)
    assert found["rows"].dtype == np.uint32
    assert found["rows"].tolist() == rows
    assert found["total"] == len(rows)
    assert found["text"].startswith(said)


def test_search_without_names_and_labels():
    search = RowSearch(explored(None, {}))
    assert search("2")["rows"].tolist() == [1]
    assert search("anna")["text"] == "No row is called 'anna', of all names and numbers."


def test_search_finds_labels_that_were_made_later():
    data = explored()
    search = RowSearch(data)
    data.own_labels["group"] = np.array([None, "mine", None, None, "mine"], dtype=object)
    assert search("mine")["rows"].tolist() == [1, 4]


def test_more_rows_than_are_listed():
    n = 100_003
    data = ExploredData(Table(np.zeros((n, 1)), labels={"x": np.full(n, "same")}), np.zeros((n, 1)))
    found = RowSearch(data)("same")
    assert (len(found["rows"]), found["total"]) == (100_000, n)
    assert "The first 100,000 are selected." in found["text"]


def test_facts(flowers):
    data = ExploredData(flowers, flowers.X)
    (facts,) = row_facts(data, [7])
    assert (facts["row"], facts["name"]) == (7, "row 8 (flower7)")
    assert facts["labels"] == [["species", "setosa"]]
    assert facts["features"] == [[name, value] for name, value in zip(flowers.names, flowers.X[7],
                                                                      strict=True)]  # fmt: skip
    assert facts["pixels"] is facts["values"] is None


def test_facts_of_images(digits):
    data = ExploredData(digits, digits.X, image=ImageStyle((8, 8)))
    first, second = row_facts(data, [3, 5])
    np.testing.assert_array_equal(first["pixels"], np.round(digits.X[3] * 255 / 16))
    np.testing.assert_array_equal(second["pixels"], np.round(digits.X[5] * 255 / 16))
    assert first["labels"] == [["digit", "3"]]
    assert len(first["features"]) == 12


def test_facts_of_curves():
    X = np.random.default_rng(0).normal(size=(4, 100))
    (facts,) = row_facts(ExploredData(Table(X), X), [2])
    np.testing.assert_allclose(facts["values"], X[2], rtol=1e-6)
    assert facts["values"].dtype == np.float32  # as the page says


def test_facts_without_data():
    data = ExploredData(Table(np.empty((5, 0))), None, restored=np.zeros((2, 3)))
    (facts,) = row_facts(data, [4])
    assert (facts["features"], facts["pixels"], facts["values"]) == ([], None, None)


@pytest.mark.parametrize("row", [-1, 5, 10**12, 1.5, "1", None, True])
def test_rows_that_do_not_exist(row):
    with pytest.raises((ValueError, TypeError), match="row"):
        row_facts(explored(), [0, row])


def test_too_many_rows_at_once():
    with pytest.raises(ValueError, match="1001 rows were asked for, more than 1000"):
        row_facts(explored(), [0] * 1001)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "missing"), (np.nan, "missing"), (np.float32("nan"), "missing"), (1.5, "1.5"),
     (np.float32(0.1), "0.1"), (1e-9, "1e-09"), (7, "7"), (np.int64(7), "7"), ("a", "a"),
     (True, "True"), (np.datetime64("NaT"), "missing")],
)  # fmt: skip
def test_text_of_labels(value, text):
    assert label_text(value) == text
