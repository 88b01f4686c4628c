"""New rows from files and pasted text, and where transform puts them."""

import gzip
import io
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer

import manifoldry
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.maps import ExploredMap
from manifoldry.explorer.new_rows import placed, rows_of_file, rows_of_text
from manifoldry.io import Table

NEW = np.array([[5.5, 3.1, 1.6, 0.25], [6.5, 3.0, 5.1, 1.75]])


@pytest.fixture
def named(flowers):
    return ExploredData(flowers, flowers.X)


@pytest.fixture
def unnamed(flowers):
    return ExploredData(Table(flowers.X), flowers.X)


@pytest.fixture
def frame(flowers):
    return pd.DataFrame(NEW, columns=flowers.names)


def written(tmp_path, content, ending=".csv"):
    path = tmp_path / f"rows{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_columns_in_another_order(tmp_path, named, frame):
    mixed = frame.iloc[:, [2, 0, 3, 1]].assign(more=["a", "b"], number=[1, 2])
    path = written(tmp_path, mixed.to_csv(index=False))
    np.testing.assert_array_equal(rows_of_file(path, named).X, NEW)


@pytest.mark.parametrize("ending", [".tsv", ".txt", ".csv.gz", ".parquet", ".npy", ".npz"])
def test_formats(tmp_path, named, frame, ending):
    buffer = io.BytesIO()
    if ending == ".parquet":
        frame.to_parquet(buffer)
    elif ending == ".npy":
        np.save(buffer, NEW)
    elif ending == ".npz":
        np.savez(buffer, X=NEW)
    elif ending == ".csv.gz":
        buffer.write(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        buffer.write(frame.to_csv(index=False, sep="\t").encode())
    path = written(tmp_path, buffer.getvalue(), ending)
    np.testing.assert_allclose(rows_of_file(path, named).X, NEW)


def test_a_missing_column_is_named(tmp_path, named, frame):
    path = written(tmp_path, frame.drop(columns="petal_width").to_csv(index=False))
    with pytest.raises(ValueError, match="petal_width") as error:
        rows_of_file(path, named)
    assert str(tmp_path) not in str(error.value)


def test_wrong_number_of_columns(tmp_path, unnamed):
    path = written(tmp_path, "1,2,3\n4,5,6\n")
    text = "the file has 3 columns of numbers, but the data have 4; send one column for each of"
    with pytest.raises(ValueError, match=text):
        rows_of_file(path, unnamed)


@pytest.mark.parametrize("cell", ["", "NaN", "inf"])
def test_missing_or_infinite_values(tmp_path, named, frame, cell):
    text = frame.to_csv(index=False).replace("5.1", cell)
    with pytest.raises(ValueError, match=r"petal_length.* (missing|infinite)"):
        rows_of_file(written(tmp_path, text), named)


def test_missing_values_are_imputed_as_in_the_data(tmp_path, flowers, frame):
    imputer = SimpleImputer(strategy="median").fit(flowers.X)
    data = ExploredData(flowers, flowers.X, [imputer])
    path = written(tmp_path, frame.to_csv(index=False).replace("5.1", ""))
    table = rows_of_file(path, data)
    assert np.isnan(table.X[1, 2])
    model = manifoldry.PCA(2).fit(flowers.X)
    shown = ExploredMap("m", "PCA", model.embedding_, model, [imputer])
    filled = np.where(np.isnan(table.X), np.median(flowers.X, axis=0), table.X)
    expected = shown.view.frame.drawn(model.transform(filled))
    np.testing.assert_allclose(placed(table, [shown])["xy"]["m"], expected, atol=1e-6)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00", b"<html>no table</html>", b"\n\n\n",
                                     b"a,b\n1\n1,2,3\n"])  # fmt: skip
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy", ".npz", ".csv.gz", ".feather"])
def test_files_that_are_no_tables(tmp_path, named, content, ending):
    with pytest.raises(ValueError, match=r".") as error:
        rows_of_file(written(tmp_path, content, ending), named)
    assert str(tmp_path) not in str(error.value)


class Trap:
    def __reduce__(self):
        return open, ("trap.txt", "w")


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_nothing_that_is_uploaded_is_executed(tmp_path, named, ending, monkeypatch):
    monkeypatch.chdir(tmp_path)
    buffer = io.BytesIO()
    array = np.array([[Trap()] * 4], dtype=object)
    (np.save if ending == ".npy" else np.savez)(buffer, array)
    path = written(tmp_path, buffer.getvalue(), ending)
    assert np.load(path, allow_pickle=True) is not None  # the trap would work ...
    if ending == ".npz":
        np.load(path, allow_pickle=True)["arr_0"]
    assert (tmp_path / "trap.txt").exists()
    (tmp_path / "trap.txt").unlink()
    with pytest.raises(ValueError, match="the file"):
        rows_of_file(path, named)
    assert not (tmp_path / "trap.txt").exists()  # ... but is not sprung
    pickled = written(tmp_path, pickle.dumps(Trap()), ending)
    with pytest.raises(ValueError, match="the file"):
        rows_of_file(pickled, named)
    assert not (tmp_path / "trap.txt").exists()


def test_images_for_data_that_are_none(tmp_path, named):
    with pytest.raises(ValueError, match="send a table instead"):
        rows_of_file(tmp_path, named)


@pytest.mark.parametrize(
    "text",
    ["5.5,3.1,1.6,0.25\n6.5,3.0,5.1,1.75", "5.5 3.1 1.6 0.25\n6.5 3 5.1 1.75\n",
     "5.5\t3.1\t1.6\t0.25\n6.5\t3.0\t5.1\t1.75\n", "5.5; 3.1; 1.6; 0.25\n6.5; 3.0; 5.1; 1.75",
     "\n 5.5, 3.1,1.6 , 2.5e-1,\n\n6.5,3.0,5.1,1.75\r\n"],
)  # fmt: skip
def test_pasted_numbers(unnamed, text):
    np.testing.assert_array_equal(rows_of_text(text, unnamed).X, NEW)


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_pasted_table_with_names(named, frame, separator):
    text = frame.iloc[:, ::-1].to_csv(index=False, sep=separator)
    np.testing.assert_array_equal(rows_of_text(text, named).X, NEW)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text is empty"),
        (" \n\t\n", "the text is empty"),
        (",;,\n;", "the text has no numbers"),
        ("1 2 3", "line 1 has 3 numbers, but the data have 4 columns: sepal_length, sepal_width"),
        ("1 2 3 4\n\n1 2 3 4 5", "line 3 has 5 numbers"),
        ("1 2 3 4\n1 nan 3 4", "line 2 has a missing or infinite value"),
        ("\n1 2 3 inf", "line 2 has a missing or infinite value"),
        ("1 2 3 1e999", "line 1 has a missing or infinite value"),
        ("lorem ipsum dolor sit amet", "."),
        ("\x00\x01\x02", "."),
        ("<script>alert(1)</script>", "."),
        ("\ud800", "."),
        ("x" * 100_000, "."),
        ("sepal_length,sepal_width\n1,2\n", "petal"),
    ],
)
def test_pasted_garbage(named, text, said):
    with pytest.raises(ValueError, match=said) as error:
        rows_of_text(text, named)
    assert len(str(error.value)) < 1000
    assert "rows.csv" not in str(error.value)


@pytest.fixture
def maps(flowers, pca):
    laplacian = manifoldry.LaplacianEigenmaps(n_components=2, n_neighbors=60).fit(flowers.X)
    return [ExploredMap("a", "PCA", pca.embedding_, pca),
            ExploredMap("b", "LE", laplacian.embedding_, laplacian),
            ExploredMap("c", "from elsewhere", pca.embedding_)]  # fmt: skip


def test_rows_are_where_transform_puts_them(maps):
    found = placed(Table(NEW, ids=np.array(["x", "y"])), maps)
    assert set(found["xy"]) == {"a", "b"}
    assert set(found["skipped"]) == {"c"}
    for each in maps[:2]:
        expected = each.view.frame.drawn(each.model.transform(NEW))
        np.testing.assert_allclose(found["xy"][each.id], expected, atol=1e-6)
    np.testing.assert_allclose(found["novelty"], maps[0].model.novelty(NEW), rtol=1e-6)
    assert found["names"] == ["row 1 (x)", "row 2 (y)"]


def test_a_map_that_fails_does_not_keep_the_others_from_placing(maps):
    other = manifoldry.PCA(2).fit(np.random.default_rng(0).normal(size=(150, 7)))
    found = placed(Table(NEW), [ExploredMap("d", "PCA of more", other.embedding_, other), *maps])
    assert set(found["xy"]) == {"a", "b"}
    assert "7" in found["skipped"]["d"]


def test_no_map_can_place(maps):
    with pytest.raises(
        ValueError, match=r"no map can place new rows. Only its coordinates are known"
    ):
        placed(Table(NEW), maps[2:])
    with pytest.raises(ValueError, match=r"no map can place new rows."):
        placed(Table(NEW), [])


def test_more_rows_than_are_placed(maps, flowers):
    many = np.tile(flowers.X, (134, 1))[:20_001]
    found = placed(Table(many), maps[:1])
    assert found["xy"]["a"].shape == (20_000, 2)
    assert len(found["novelty"]) == 20_000
    assert len(found["names"]) == 1000
    (note,) = found["notes"]
    assert note.startswith("The first 20,000 of 20,001 rows are placed; manifoldry transform MODEL")


@pytest.mark.parametrize(
    "text",
    ["wine 1\t5,5\t3,1\t1,6\t0,25\tBarolo", "5,5;3,1;1,6;0,25", "a,5.5,3.1,1.6,0.25,b"],
    ids=["spreadsheet", "decimal commas", "texts"],
)
def test_rows_as_spreadsheets_have_them(named, text):
    np.testing.assert_allclose(rows_of_text(text, named).X, [[5.5, 3.1, 1.6, 0.25]])


def test_an_empty_cell_is_named(named):
    with pytest.raises(ValueError, match="line 2: value 3 is empty"):
        rows_of_text("1,2,3,4\n1,2,,4", named)
