"""Stores whose parts workers read and write: the same values as in memory, or a clear refusal."""

import threading
import time

import numpy as np
import pytest

from manifoldry.distributed.scheduler import compute
from manifoldry.io import ColumnChoice, DataFileError, read_table
from manifoldry.io import write_parts as writing
from manifoldry.io.parts import read_parts
from manifoldry.io.write_parts import write_parts

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
pandas = pytest.importorskip("pandas")
N = 60
X = np.random.default_rng(0).normal(size=(N, 2))


def columns(rows, **others):
    """An Arrow table of some rows of two features and other columns."""
    return pa.table({"a": X[rows, 0], "b": X[rows, 1], **others})


def write(folder, tables, **options):
    """A Parquet store with a file for each table."""
    store = folder / "d.parquet"
    store.mkdir()
    for i, table in enumerate(tables):
        parquet.write_table(table, store / f"part.{i}.parquet", **options)
    return store


def assert_as_in_memory(store, choice, folder):
    """Read, write in parts and in one file, and compare with what is read in memory."""
    expected, found = read_table(store, choice), read_parts(store, choice)
    assert (found.names, found.labels) == (expected.names, tuple(expected.labels))
    np.testing.assert_array_equal(found.rows.array.compute(), expected.X)
    values = expected.X[:, :2]
    array = da.from_array(values, chunks=(17, 2))
    for output in (folder / "m.parquet", folder / "m.csv"):
        write_parts(output, array, ["u", "v"], found)
        again = read_table(output, ColumnChoice(["u", "v"], tuple(found.labels)))
        np.testing.assert_allclose(again.X, values)
        if expected.ids is not None:
            np.testing.assert_array_equal(again.ids, expected.ids)
        for name, label in expected.labels.items():
            np.testing.assert_array_equal(again.labels[name], label)
            assert output.suffix == ".csv" or again.labels[name].dtype == label.dtype
    if expected.ids is not None:
        [ids] = compute([found.ids], "names")
        np.testing.assert_array_equal(ids.astype(str), expected.ids)
    return expected


@pytest.mark.parametrize("index", ["__null_dask_index__", "__index_level_0__"])
@pytest.mark.parametrize("repeats", [False, True])
def test_an_index_without_a_name_is_no_feature(tmp_path, index, repeats):
    numbers = np.arange(N) % (7 if repeats else N)
    store = write(tmp_path, [columns(slice(None), **{index: numbers})])
    table = assert_as_in_memory(store, ColumnChoice(), tmp_path)
    assert table.names == ("a", "b")
    assert (table.ids is None) == repeats
    assert read_table(store, ColumnChoice(("a", index))).names == ("a", index)


@pytest.mark.parametrize("index", [[f"cell{i}" for i in range(N)], np.arange(N)[::-1] + 5])
def test_an_index_of_pandas_names_the_rows(tmp_path, index):
    store = tmp_path / "d.parquet"
    pandas.DataFrame(X, columns=list("ab"), index=index).to_parquet(store)
    table = assert_as_in_memory(store, ColumnChoice(), tmp_path)
    assert list(table.ids) == [str(each) for each in index]


def test_whole_numbers_with_a_missing_one_in_a_later_file(tmp_path):
    kind = [i % 3 for i in range(N)]
    kind[45] = None
    tables = [
        columns(part, number=pa.array(range(10**16, 10**16 + N), pa.int64())[part],
                kind=pa.array(kind, pa.int64())[part], other=pa.array(range(N), pa.int8())[part])
        for part in (slice(0, 30), slice(30, N))
    ]  # fmt: skip
    choice = ColumnChoice(labels=["kind", "other"], id="number")
    for i, options in enumerate(({"row_group_size": 7}, {"write_statistics": False})):
        folder = tmp_path / str(i)
        folder.mkdir()
        store = write(folder, tables, **options)
        if i == 0:
            table = assert_as_in_memory(store, choice, folder)
            assert (table.ids[0], table.labels["kind"][45]) == (str(10**16), "")
            assert table.labels["other"].dtype == np.int64
        label = read_parts(store, choice).label.compute()
        np.testing.assert_array_equal(label, ["" if k is None else str(k) for k in kind])


def test_categories_texts_and_nothing(tmp_path):
    words = pa.array([("left", "right")[i % 2] for i in range(N)])
    first, second, third = (slice(i, i + 20) for i in (0, 20, 40))
    tables = [
        columns(first, kind=words[first].dictionary_encode()),
        columns(second, kind=words[second]),
        columns(third, kind=pa.nulls(20)),
    ]
    table = assert_as_in_memory(write(tmp_path, tables), ColumnChoice(), tmp_path)
    assert list(table.labels["kind"][[0, 21, 59]]) == ["left", "right", ""]


def test_files_are_in_natural_order(tmp_path):
    parts = np.split(np.arange(N), 12)
    store = write(tmp_path, [columns(part) for part in parts])
    (store / "_SUCCESS").touch()
    table = assert_as_in_memory(store, ColumnChoice(), tmp_path)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(read_parts(store, ColumnChoice()).rows.counts, [5] * 12)


def test_groups_of_rows_are_divided(tmp_path, monkeypatch):
    monkeypatch.setattr("manifoldry.io.parts._ROWS_OF_PIECE", 20)
    store = write(tmp_path, [columns(slice(0, 50)), columns(slice(50, N))], row_group_size=8)
    assert_as_in_memory(store, ColumnChoice(), tmp_path)
    np.testing.assert_array_equal(read_parts(store, ColumnChoice()).rows.counts, [16, 16, 18, 10])


def test_names_of_folders_are_columns(tmp_path):
    store = tmp_path / "run=7" / "d.parquet"  # not those above the store
    for kind, year, rows in (("x y", 2020, slice(0, 25)), ("z", 2021, slice(25, N))):
        folder = store / f"kind={kind.replace(' ', '%20')}" / f"year={year}"
        folder.mkdir(parents=True)
        parquet.write_table(columns(rows), folder / "p.parquet")
    choice = ColumnChoice(["a", "b"], labels=["kind", "year"])
    table = assert_as_in_memory(store, choice, tmp_path)
    np.testing.assert_array_equal(table.labels["kind"], np.repeat(["x y", "z"], [25, 35]))
    np.testing.assert_array_equal(table.labels["year"], np.repeat([2020, 2021], [25, 35]))


def test_a_type_is_that_of_all_files(tmp_path):
    large = pa.table({"a": X[30:, 0] + 1e9, "b": X[30:, 1]})
    single = columns(slice(0, 30)).cast(pa.schema({"a": pa.float32(), "b": pa.float32()}))
    for tables, dtype in (([single, large], np.float64), ([single, single], np.float32)):
        folder = tmp_path / np.dtype(dtype).name
        folder.mkdir()
        store = write(folder, tables)
        assert_as_in_memory(store, ColumnChoice(), folder)
        assert read_parts(store, ColumnChoice()).rows.array.dtype == dtype


def test_missing_cells_are_named(tmp_path):
    column = pa.array([*range(N - 1), None], pa.int64())
    rows = read_parts(write(tmp_path, [columns(slice(None), c=column)]), ColumnChoice()).rows
    with pytest.raises(ValueError, match=r"d.parquet contains NaN in chunk 0 \(row 59, column 2\)"):
        compute(rows.blocks, "reading")


@pytest.mark.parametrize("order", [1, -1])
def test_a_file_without_a_column_is_named_at_once(tmp_path, order):
    tables = [columns(slice(0, 30)), columns(slice(30, N)).drop_columns("b")][::order]
    with pytest.raises(DataFileError, match=r"part.\d.parquet has no column 'b'.* --drop") as found:
        read_parts(write(tmp_path, tables), ColumnChoice())
    assert f"part.{1 if order == 1 else 0}.parquet" in str(found.value)


def test_types_that_contradict_each_other_are_refused(tmp_path):
    texts = columns(slice(0, 30)).set_column(1, "b", pa.array(["one"] * 30))
    store = write(tmp_path, [columns(slice(30, N)), texts])
    for read in (read_table, lambda path: read_parts(path, ColumnChoice())):
        with pytest.raises(DataFileError, match=r"part.1.parquet has other types .* string"):
            read(store)


def test_columns_of_the_same_name_are_refused(tmp_path):
    store = write(tmp_path, [pa.table([X[:, 0], X[:, 1]], ["a", "a"])])
    with pytest.raises(DataFileError, match="several columns 'a'"):
        read_parts(store, ColumnChoice())
    assert read_table(store).names == ("a", "a.2")


def slow_and_failing(monkeypatch, seconds):
    """A map whose last block fails while the others are being written slowly."""
    started, ended = threading.Event(), threading.Event()
    zarr = pytest.importorskip("zarr")
    opened = zarr.open_array

    class Slow:
        def __init__(self, array):
            self.array = array

        def __setitem__(self, rows, block):
            started.set()
            time.sleep(seconds)
            self.array[rows] = block
            ended.set()

    def block(i):
        if i:
            started.wait(10)
            raise ValueError("this block is bad")
        return np.ones((5, 2))

    monkeypatch.setattr(zarr, "open_array", lambda *args, **options: Slow(opened(*args, **options)))
    parts = [da.from_delayed(dask.delayed(block)(i), (5, 2), float) for i in range(2)]
    return da.concatenate(parts), ended


def test_a_failed_write_waits_for_those_that_run(tmp_path, monkeypatch):
    array, ended = slow_and_failing(monkeypatch, 0.5)
    with pytest.raises(ValueError, match="this block is bad"):
        write_parts(tmp_path / "m.zarr", array, ["u", "v"], None)
    assert ended.is_set()
    assert not list(tmp_path.iterdir())


def test_a_write_that_takes_too_long_removes_what_it_made(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_SECONDS_TO_END", 0.1)
    array, ended = slow_and_failing(monkeypatch, 1)
    with pytest.raises(ValueError, match="this block is bad"):
        write_parts(tmp_path / "m.zarr", array, ["u", "v"], None)
    assert not ended.is_set()
    assert ended.wait(10)
    until = time.monotonic() + 10
    while list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not list(tmp_path.iterdir())
