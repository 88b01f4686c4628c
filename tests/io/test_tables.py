"""Data in every format, as a user has them, and files that are broken."""

import gzip
import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from manifoldry.io import (
    ColumnChoice,
    DataFileError,
    MissingExtraError,
    Table,
    read_table,
    write_map,
    write_table,
)

pa = pytest.importorskip("pyarrow")
FLOWERS = "id,width,length,species\na,1.5,2,iris\nb,0.5,3,iris\nc,1,1.25,rose\nd,2,5,rose\n"
X = np.array([[1.5, 2], [0.5, 3], [1, 1.25], [2, 5]])


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def is_flowers(table):
    np.testing.assert_array_equal(table.X, X)
    assert table.names == ("width", "length")
    assert list(table.ids) == list("abcd")
    assert list(table.labels["species"]) == ["iris", "iris", "rose", "rose"]
    return True


@pytest.mark.parametrize(
    "content",
    [
        FLOWERS,
        FLOWERS.replace("\n", "\r\n"),
        FLOWERS.replace(",", "\t"),
        FLOWERS.replace(",", " | ").replace(" | ", "|"),
        FLOWERS.replace(",", "   "),
        FLOWERS.replace(",", ";").replace(".", ","),
        FLOWERS.encode("utf-16"),
        FLOWERS.encode("utf-8-sig"),
        gzip.compress(FLOWERS.encode()),
    ],
    ids=["comma", "crlf", "tab", "bar", "spaces", "decimal comma", "utf-16", "bom", "gzip"],
)
def test_text(tmp_path, content):
    assert is_flowers(read_table(written(tmp_path, "flowers.csv", content)))


def test_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(FLOWERS.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert is_flowers(read_table("-"))


def test_text_without_header(tmp_path):
    table = read_table(written(tmp_path, "plain.txt", "1 2 3\n4 5 6.5\n"))
    np.testing.assert_array_equal(table.X, [[1, 2, 3], [4, 5, 6.5]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("country,2001,2002,2003\nFR,1.5,2.5,3.5\nDE,2.5,3,4.5\nIT,0.5,1.5,2.5\n",
         ("2001", "2002", "2003")),
        ("country;2001;1999\nFR;1,5;2,5\nDE;2,5;3,5\n", ("2001", "1999")),
        ("0,1,2\n0.5,1.5,2.25\n0.1,0.2,\n", ("0", "1", "2")),
        (",0,1\n0,0.5,1.5\n1,0.1,0.2\n", ("0", "1")),
    ],
)  # fmt: skip
def test_a_header_may_have_numbers(tmp_path, text, names):
    path = written(tmp_path, "x.csv", text)
    table = read_table(path, missing=True)
    assert table.names == names
    assert table.n == text.count("\n") - 1
    assert any("names of columns; --no-header" in note for note in table.notes)
    as_data = read_table(path, header=False, missing=True)
    assert as_data.n == text.count("\n")
    assert not any("header" in note for note in as_data.notes)


@pytest.mark.parametrize(
    "text",
    [
        "a,1,2\nb,3,4\nc,5,6\n",  # whole numbers below
        "1,2,3\n4,5,6.5\n",
        "3,1,7\n0.5,1.5,2.5\n",  # neither beside a text nor in order
        "a,2,2\nb,1.5,2.5\nc,3.5,4.5\n",  # twice the same
        "a,2,1.5\nb,1.5,2.5\nc,3.5,4.5\n",
        "# 3 1\n1.5 2.5\n2 7\n4 9.5\n",  # a comment with numbers is no data
    ],
)
def test_rows_that_are_no_header(tmp_path, text):
    table = read_table(written(tmp_path, "x.csv", text))
    assert table.n == 3 - (text.count("\n") == 2)
    assert any("no header recognized" in note for note in table.notes)


def test_a_header_can_be_declared(tmp_path):
    path = written(tmp_path, "x.csv", "7,9\n1,2\n3,4\n")
    assert read_table(path, header=True).names == ("7", "9")
    np.testing.assert_array_equal(read_table(path).X, [[7, 9], [1, 2], [3, 4]])


def test_decimal_commas_are_noted(tmp_path):
    table = read_table(written(tmp_path, "x.csv", "a;b\n1,5;2\n2,5;3\n"))
    assert table.notes == ("decimal commas: 1,5 is read as 1.5",)


def test_missing_numbers_are_texts_among_labels(tmp_path):
    rows = ["1.5,None", "NA,NA", "2.5,None", "?,", "0.5,NA", "1,good"]
    path = written(tmp_path, "x.csv", "\n".join(["x,kind", *rows]))
    table = read_table(path, ColumnChoice(labels=["kind"]), missing=True)
    np.testing.assert_array_equal(table.X[:, 0], [1.5, np.nan, 2.5, np.nan, 0.5, 1])
    assert list(table.labels["kind"]) == ["None", "NA", "None", "", "NA", "good"]
    path = written(tmp_path, "y.csv", "x,y\n1,2\nNA,3\nhigh,4\n")
    with pytest.raises(DataFileError, match=r"'x' has text in row 3 \('high'\)"):
        read_table(path, ColumnChoice(features=["x"]))
    ids = read_table(written(tmp_path, "z.csv", "name,x\na,1\n,2\nc,3\n")).ids
    assert ids is None  # one is missing


def test_small_gzip_files_do_not_fill_the_memory(tmp_path, monkeypatch):
    from manifoldry.io import text_files

    path = written(tmp_path, "x.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 10**6))
    monkeypatch.setattr(text_files, "_MAX_UNPACKED", 2 * 2**20)
    with pytest.raises(DataFileError, match=r"more than 2097152 when it is unpacked.*gunzip"):
        read_table(path)
    monkeypatch.setattr(text_files, "_MAX_RATIO", 10**6)
    assert read_table(path).n == 10**6


def test_comments_before_the_data(tmp_path):
    np.savetxt(tmp_path / "x.txt", X, header="two columns of\nwidth length")
    table = read_table(tmp_path / "x.txt")
    assert table.names == ("width", "length")
    np.testing.assert_array_equal(table.X, X)
    assert any("2 lines of comments" in note for note in table.notes)
    np.savetxt(tmp_path / "y.txt", X, header="measured by me today")
    np.testing.assert_array_equal(read_table(tmp_path / "y.txt").X, X)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("a,b,kind\n", "{i}.5,2.5,type {i} of cells with a long name\n"),
        ("", "{i}.5,2.5,type {i} of cells with a long name\n"),
        ("a b c\n", "{i}.5 2.5 3.5\n"),
    ],
)
def test_spaces_in_labels_do_not_divide_columns(tmp_path, header, row):
    path = tmp_path / "cells.csv"
    path.write_text(header + "".join(row.format(i=i) for i in range(20)))
    table = read_table(path)
    assert table.X.shape == (20, 2 if "," in row else 3)
    np.testing.assert_array_equal(np.asarray(table.X)[:, 0], np.arange(20) + 0.5)


@pytest.mark.parametrize("mark", ["\t", "\\t", "tab"])
def test_a_delimiter_can_be_named(tmp_path, mark):
    path = written(tmp_path, "x.csv", "a, b\tc\n1,5\t2\n3,5\t4\n")
    with pytest.raises(DataFileError, match="'ab' must be one character"):
        read_table(path, delimiter="ab")
    table = read_table(path, delimiter=mark)
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3.5, 4]])
    assert table.names == ("a, b", "c")


def test_other_encodings_are_noted(tmp_path):
    text = FLOWERS.replace("width", "größe").encode("cp1252")
    table = read_table(written(tmp_path, "flowers.csv", text))
    assert table.names == ("größe", "length")
    assert any("Windows-1252" in note for note in table.notes)


def test_a_header_and_rows_of_megabytes(tmp_path):
    n = 2000
    lines = [",".join("name" * 150 + str(j) for j in range(n)), ",".join(["0." + "1" * 600] * n)]
    table = read_table(written(tmp_path, "wide.csv", "\n".join([*lines, lines[1]])))
    assert table.X.shape == (2, n)


def test_columns_can_be_chosen(tmp_path):
    path = written(tmp_path, "flowers.csv", FLOWERS)
    table = read_table(path, ColumnChoice(features=["length"], labels=["id"]))
    np.testing.assert_array_equal(table.X[:, 0], X[:, 1])
    assert list(table.labels) == ["id"]
    assert read_table(path, ColumnChoice(drop=["width"])).names == ("length",)


def test_explicit_features_are_no_labels_or_names(tmp_path):
    text = "id,y,x,class\n1,0,2.5,a\n2,0,3.5,a\n3,1,4.5,b\n4,1,5.5,b\n"
    path = written(tmp_path, "x.csv", text)
    table = read_table(path, ColumnChoice(features=["id", "y", "x"], drop=["x"]))
    assert table.names == ("id", "y")
    assert table.ids is None
    assert list(table.labels) == ["class"]
    assert table.notes == ("taken as labels, not as features: 'class'",)
    both = read_table(path, ColumnChoice(features=["y", "x"], labels=["y"], id="id"))
    assert (both.names, list(both.labels), list(both.ids)) == (("y", "x"), ["y"], list("1234"))


def test_columns_of_equal_names_are_all_read(tmp_path):
    table = read_table(written(tmp_path, "x.csv", "a,a,a.2,b,a\n1,2,3,4,5\n6,7,8,9,0\n"))
    assert table.names == ("a", "a.3", "a.2", "b", "a.4")
    np.testing.assert_array_equal(table.X, [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]])


def test_numbers_beside_text_are_used_and_said(tmp_path):
    path = written(tmp_path, "mixed.csv", "x,y,note\n1,2,one\n3,4,two\n5,6,three\n7,8,four\n")
    table = read_table(path)
    assert table.names == ("x", "y")
    assert any("'note'" in note and "text" in note for note in table.notes)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
def test_arrow(tmp_path, suffix):
    from pyarrow import feather, parquet

    columns = {"id": list("abcd"), "width": X[:, 0], "length": X[:, 1]}
    species = pa.array(["iris", "iris", "rose", "rose"]).dictionary_encode()
    rows = pa.table(columns | {"species": species})
    path = tmp_path / f"flowers.{suffix}"
    (parquet.write_table if suffix == "parquet" else feather.write_feather)(rows, path)
    assert is_flowers(read_table(path))


def test_integers_booleans_and_missing_values(tmp_path):
    from pyarrow import parquet

    rows = pa.table({"large": [2**60 + 1, 2], "flag": [True, False], "gap": [1.0, None]})
    parquet.write_table(rows, tmp_path / "mixed.parquet")
    with pytest.raises(DataFileError, match="row 2, column 'gap' is missing; fill in"):
        read_table(tmp_path / "mixed.parquet")
    rows = pa.table({"a": [1.0, None, 2.0], "b": [None, None, 3.0], "c": [1.0, 2.0, 3.0]})
    parquet.write_table(rows, tmp_path / "gaps.parquet")
    first = (
        r"row 1, column 'b' is missing \(the first of 3 missing or infinite values, in 2 columns\)"
    )
    with pytest.raises(DataFileError, match=first):
        read_table(tmp_path / "gaps.parquet")
    table = read_table(tmp_path / "mixed.parquet", missing=True)
    np.testing.assert_array_equal(table.X, [[2.0**60, 1, 1], [2, 0, np.nan]])


def test_npy_is_mapped_into_memory(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    table = read_table(tmp_path / "x.npy")
    assert isinstance(table.X, np.memmap)
    np.testing.assert_array_equal(table.X, X)


def test_npz(tmp_path):
    y, names = np.array([0, 0, 1, 1]), np.array(["width", "length"])
    np.savez(tmp_path / "x.npz", y=y, other=np.zeros(9), X=X, feature_names=names)
    table = read_table(tmp_path / "x.npz", ColumnChoice(drop=["width"]))
    np.testing.assert_array_equal(table.X, X[:, 1:])
    np.testing.assert_array_equal(table.labels["y"], y)
    assert table.notes == ("arrays that are not used: 'other'",)
    assert list(read_table(tmp_path / "x.npz", ColumnChoice(labels=["y"])).labels) == ["y"]
    with pytest.raises(DataFileError, match="no column 'z'; it has 'y'"):
        read_table(tmp_path / "x.npz", ColumnChoice(labels=["z"]))
    np.save(tmp_path / "x.npy", X)
    for choice in (ColumnChoice(labels=["z"]), ColumnChoice(drop=["z"]), ColumnChoice(id="z")):
        with pytest.raises(DataFileError, match=r"no names|without a column of row names"):
            read_table(tmp_path / "x.npy", choice)


def test_sparse_npz(tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.csc_matrix(X))
    table = read_table(tmp_path / "x.npz")
    np.testing.assert_array_equal(table.X.toarray(), X)


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.save_group(str(tmp_path / "x.zarr"), X=X, y=np.arange(4))
    table = read_table(tmp_path / "x.zarr")
    np.testing.assert_array_equal(table.X, X)
    assert list(table.labels["y"]) == [0, 1, 2, 3]


def test_h5ad_there_and_back(tmp_path):
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    obs = pandas.DataFrame({"kind": pandas.Categorical(list("ppqq"))}, index=list("abcd"))
    var = pandas.DataFrame(index=["width", "length"])
    adata = anndata.AnnData(sparse.csr_matrix(X), obs=obs, var=var)
    adata.obsm["X_pca"] = X[:, :1]
    adata.write_h5ad(tmp_path / "cells.h5ad")
    table = read_table(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(table.X.toarray(), X)
    assert list(table.ids) == list("abcd")
    assert list(table.labels["kind"]) == list("ppqq")
    np.testing.assert_array_equal(read_table(tmp_path / "cells.h5ad", key="X_pca").X, X[:, :1])
    with pytest.raises(DataFileError, match="X_umap"):
        read_table(tmp_path / "cells.h5ad", key="X_umap")
    with pytest.raises(DataFileError, match="no column 'widht'; did you mean 'width'"):
        read_table(tmp_path / "cells.h5ad", ColumnChoice(features=["widht"]))  # codespell:ignore
    swapped = read_table(tmp_path / "cells.h5ad", ColumnChoice(features=["length", "width"]))
    np.testing.assert_array_equal(swapped.X.toarray(), X[:, ::-1])
    write_map(tmp_path / "map.h5ad", X, table, method="tsne")
    again = anndata.read_h5ad(tmp_path / "map.h5ad")
    np.testing.assert_array_equal(again.obsm["X_tsne"], X)
    np.testing.assert_array_equal(again.obsm["X_pca"], X[:, :1])
    more = replace(table, labels={"kind": table.labels["kind"], "novelty": X[:, 0]})
    write_map(tmp_path / "map.h5ad", X, more, method="tsne")
    np.testing.assert_array_equal(anndata.read_h5ad(tmp_path / "map.h5ad").obs["novelty"], X[:, 0])
    write_map(tmp_path / "new.h5ad", X, Table(X, labels={"y": np.arange(4)}), method="pca")
    assert list(anndata.read_h5ad(tmp_path / "new.h5ad").obs["y"]) == [0, 1, 2, 3]


def image(path, pixels, mode=None):
    from PIL import Image

    path.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).convert(mode or Image.fromarray(pixels).mode).save(path)


def test_images(tmp_path):
    pytest.importorskip("PIL")
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(3, 4, 5), dtype=np.uint8)
    for k, folder in enumerate(["cats", "cats", "dogs"]):
        image(tmp_path / folder / f"{k}.png", pixels[k])
    table = read_table(tmp_path)
    np.testing.assert_allclose(table.X, pixels.reshape(3, -1) / 255, rtol=1e-6)
    assert list(table.ids) == ["cats/0.png", "cats/1.png", "dogs/2.png"]
    assert list(table.labels["folder"]) == ["cats", "cats", "dogs"]
    image(tmp_path / "dogs" / "3.png", pixels[0], "RGB")
    assert read_table(tmp_path).X.shape == (4, 60)
    image(tmp_path / "dogs" / "4.png", pixels[0, :2])
    with pytest.raises(DataFileError, match=r"4\.png has 5 × 2 pixels.*scale"):
        read_table(tmp_path)
    written(tmp_path, "dogs/4.png", b"\x89PNG\r\n\x1a\n")
    with pytest.raises(DataFileError, match=r"4\.png is damaged"):
        read_table(tmp_path)


def test_kinds_of_images(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    small, large = rng.random((2, 3)).astype(np.float32), rng.integers(2**16, size=(2, 3))
    Image.fromarray(small).save(tmp_path / "a.tif")
    Image.fromarray(large.astype(np.uint16)).save(tmp_path / "b.png")
    Image.fromarray(large.astype(">u2")).save(tmp_path / "c.tif")
    frames = [Image.new("L", (3, 2), level) for level in (255, 0)]
    frames[0].save(tmp_path / "d.tif", save_all=True, append_images=frames[1:])
    Image.new("LA", (3, 2), (51, 100)).save(tmp_path / "e.png")
    table = read_table(tmp_path)
    wide = large.ravel() / 65_535
    expected = [small.ravel(), wide, wide, np.ones(6), np.full(6, 0.2)]
    np.testing.assert_allclose(table.X, expected, rtol=1e-6)
    assert table.notes[1:] == (
        "1 images have floating-point numbers, which are not scaled",
        "1 images have several frames, of which the first is used",
        "1 images have transparency, which is not used",
    )


def test_sizes_of_images_are_compared_as_they_are_read(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for name, size in ("a", (3, 2)), ("b", (2, 2)):
        Image.new("L", size).save(tmp_path / f"{name}.png")
    written(tmp_path, "c.png", b"nothing")  # which is not reached
    with pytest.raises(DataFileError, match=r"b\.png has 2 × 2 pixels"):
        read_table(tmp_path)


BROKEN = {
    "empty.csv": (b"", "is empty"),
    "binary.csv": (b"\x00\x01\x02" * 50, "neither text nor"),
    "ragged.csv": (b"a,b\n1,2\n3\n", "line 3 has 1 fields, the first line has 2.*mend the row"),
    "texts.csv": (b"a,b\nu,v\nw,x\n", "no column of numbers"),
    "headers.csv": (b"a,b\n", "no data|no column of numbers"),
    "inf.csv": (b"a,b\n1,2\n3,inf\n", "row 2, column 'b' is infinite"),
    "cut.csv.gz": (gzip.compress(FLOWERS.encode() * 50)[:60], "damaged gzip"),
    "cut16.csv": (FLOWERS.encode("utf-16")[:-1], "damaged utf-16"),
    "cut.parquet": (b"PAR1abc", "damaged, or no Parquet"),
    "cut.feather": (b"ARROW1", "damaged, or no Feather"),
    "cut.npy": (b"\x93NUMPY\x01\x00", "damaged, or no NumPy"),
    "text.npy": (b"hello", "damaged, or no NumPy|Python objects"),
    "cut.npz": (b"PK\x03\x04abc", "damaged, or no npz"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files(tmp_path, name):
    content, message = BROKEN[name]
    with pytest.raises(DataFileError, match=f"{name}.*({message})") as caught:
        read_table(written(tmp_path, name, content))
    assert "\n" not in str(caught.value)


def test_damage_inside_files(tmp_path):
    """Found by changing bytes at random; some of these ended the process."""
    from pyarrow import feather

    feather.write_feather(pa.table({"k": ["u", "v"] * 6}), tmp_path / "x.feather", "uncompressed")
    offsets = np.arange(13, dtype=np.int32)
    wrong = np.where(offsets == 12, 2**30, offsets).astype(np.int32)
    np.savez(tmp_path / "x.npz", X=X)
    np.save(tmp_path / "x.npy", X)
    packed = gzip.compress(FLOWERS.encode())
    changes = {
        "x.feather": lambda b: b.replace(offsets.tobytes(), wrong.tobytes()),
        "x.npz": lambda b: b.replace(b"PK\x05\x06", b"PK\x05\x06" + b"\0" * 8),
        "x.npy": lambda b: b.replace(b"(4, 2)", b"(4, 2 "),
        "x.csv.gz": lambda b: packed[:30] + b"\xff\xff\xff" + packed[33:],
    }
    written(tmp_path, "x.csv.gz", packed)
    for name, change in changes.items():
        before = (tmp_path / name).read_bytes()
        after = change(before)
        assert after != before
        with pytest.raises(DataFileError, match=name.replace(".", r"\.")):
            read_table(written(tmp_path, name, after))


def test_indices_of_sparse_matrices_are_checked(tmp_path):
    wrong = sparse.csr_matrix(X)
    wrong.indices[0] = 2**20
    sparse.save_npz(tmp_path / "x.npz", wrong)
    with pytest.raises(DataFileError, match=r"x\.npz is damaged.*ind(ices|ex)"):
        read_table(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.array([["a"]]), "real numbers"),
        (np.zeros((0, 2)), "no data: 0 rows, 2 features"),
    ],
)
def test_arrays_that_are_no_features(tmp_path, array, message):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(DataFileError, match=message):
        read_table(tmp_path / "x.npy")


def test_python_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}]), allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=np.array([{"a": 1}]))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataFileError, match="Python objects"):
            read_table(tmp_path / name)


def test_wrong_names_are_corrected(tmp_path):
    path = written(tmp_path, "flowers.csv", FLOWERS)
    with pytest.raises(DataFileError, match="no column 'lenght'; did you mean 'length'"):
        read_table(path, ColumnChoice(features=["lenght"]))  # codespell:ignore
    with pytest.raises(DataFileError, match=r"'species' has text in row 1 \('iris'\)"):
        read_table(path, ColumnChoice(features=["species"]))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "none.csv")


def test_a_missing_package_names_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(MissingExtraError, match=r"needs the package zarr.*manifoldry\[zarr\]"):
        read_table(tmp_path / "x.zarr")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_maps_there_and_back(tmp_path, suffix):
    table = Table(X, ("width", "length"), np.array(list("abcd")), {"species": np.arange(4) // 2})
    Y = X[:, ::-1] / 3
    path = write_map(tmp_path / f"map.{suffix}", Y, table, method="tsne")
    again = read_table(path)
    np.testing.assert_array_equal(again.X, Y)
    assert again.names == ("tsne0", "tsne1")
    assert list(again.ids) == list("abcd")
    assert list(again.labels["species"]) == [0, 0, 1, 1]


def test_maps_as_arrays(tmp_path):
    write_map(tmp_path / "map.npy", X, Table(X))
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), X)


def test_texts_are_no_formulas(tmp_path):
    labels = np.array(["=1+1", "+a", "-b", "@c", "\tx", "\rx", "plain", "a=b"])
    table = Table(np.ones((8, 1)), ("x",), labels, {"=cmd": labels})
    lines = write_table(tmp_path / "x.csv", table).read_bytes().decode().split("\n")
    assert lines[0] == '"id","x","\'=cmd"'
    assert lines[1] == '"\'=1+1",1,"\'=1+1"'
    assert [line.lstrip('"')[0] for line in lines[1:9]] == ["'"] * 6 + ["p", "a"]
    negative = Table(-np.ones((1, 1)), ("x",))
    assert write_table(tmp_path / "y.csv", negative).read_text() == '"x"\n-1\n'


def test_columns_of_equal_names_are_all_written(tmp_path):
    table = Table(X, ("id", "k"), np.array(list("abcd")), {"k": np.arange(4)})
    again = read_table(write_table(tmp_path / "x.parquet", table), ColumnChoice(id="id"))
    assert again.names == ("id.2", "k", "k.2")
    np.testing.assert_array_equal(again.X, np.column_stack([X, np.arange(4)]))


def test_sparse_rows_are_written_dense(tmp_path):
    write_table(tmp_path / "x.npy", Table(sparse.csr_array(X)))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), X)


def test_unknown_formats_are_refused(tmp_path):
    with pytest.raises(DataFileError, match=r"'\.xlsx' cannot be written; choose \.csv"):
        write_table(tmp_path / "x.xlsx", Table(X))


def test_a_failed_write_leaves_the_previous_file(tmp_path, monkeypatch):
    write_table(tmp_path / "x.csv", Table(X))
    before = (tmp_path / "x.csv").read_bytes()
    from pyarrow import csv

    def fail(*args):
        args[1].write(b"half of a")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv, "write_csv", fail)
    with pytest.raises(OSError, match="No space"):
        write_table(tmp_path / "x.csv", Table(-X))
    assert (tmp_path / "x.csv").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


def test_a_few_texts_among_numbers_are_named(tmp_path):
    lines = ["name;height;width", *(f"n{i};{i},5;{i},25" for i in range(40))]
    lines[4] = "n3;unknown;3,25"
    lines[9] = "n8;#NV;8,25"
    lines[20] = "n19;5.408,00;1,5"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    table = read_table(tmp_path / "a.csv")
    assert table.names == ("width",)
    assert table.X[3] == 3.25
    note = "column 'height' is left out, since it has text in 2 of 40 rows, first in row 4 "
    assert any(each.startswith(f"{note}('unknown')") for each in table.notes)
    lines[4], lines[20] = "n3;3,5;3,25", "n19;5,408;1,5"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(DataFileError, match="missing"):
        read_table(tmp_path / "a.csv")  # what a spreadsheet writes for a missing value


def test_x_and_y_are_coordinates(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "\n".join(f"{i},{i % 3}" for i in range(30)))
    assert read_table(tmp_path / "a.csv").names == ("x", "y")
    (tmp_path / "a.csv").write_text("a,y\n" + "\n".join(f"{i},{i % 3}" for i in range(30)))
    assert list(read_table(tmp_path / "a.csv").labels) == ["y"]


def test_columns_of_an_array_with_one_name_stay_apart(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "a.npz", X=X, columns=np.array(["a", "a", "b"]))
    names = read_table(tmp_path / "a.npz").names
    assert np.array_equal(read_table(tmp_path / "a.npz", ColumnChoice(names)).X, X)
