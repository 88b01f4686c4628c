"""AnnData files and Zarr stores, written by anndata itself."""

import json
import pickle

import numpy as np
import pytest
from scipy import sparse

from manifoldry.io import (
    ColumnChoice,
    DataFileError,
    MissingExtraError,
    read_table,
    write_map,
)

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
COUNTS = sparse.csr_matrix(RNG.poisson(1.0, size=(12, 5)).astype(np.float32))
PAIRS = sparse.csr_matrix(np.triu(np.ones((12, 12)), 1))


@pytest.fixture
def cells():
    names = [f"cell{i}" for i in range(12)]
    kinds = pandas.Categorical(["stem", "blood", "stem"] * 4)
    obs = pandas.DataFrame({"kind": kinds, "depth": np.arange(12.0)}, index=names)
    adata = anndata.AnnData(COUNTS, obs=obs, var=pandas.DataFrame(index=list("ABCDE")))
    adata.layers["log"] = COUNTS.log1p()
    adata.obsm["X_pca"] = RNG.normal(size=(12, 3))
    adata.obsp["distances"] = PAIRS
    adata.varm["PCs"] = RNG.normal(size=(5, 3))
    adata.uns["pca"] = {"variance": np.arange(3.0), "params": {"zero_center": True}}
    adata.raw = adata
    return adata


@pytest.fixture(params=[".h5ad", ".zarr"])
def path(request, tmp_path, cells):
    path = tmp_path / f"cells{request.param}"
    if request.param == ".zarr":
        pytest.importorskip("zarr")
        cells.write_zarr(path)
    else:
        cells.write_h5ad(path)
    return path


def test_entries(path, cells):
    table = read_table(path)
    np.testing.assert_array_equal(table.X.toarray(), COUNTS.toarray())
    assert table.names == tuple("ABCDE")
    assert list(table.ids) == list(cells.obs_names)
    assert list(table.labels) == ["kind"]
    assert not table.is_graph
    log = read_table(path, key="log")
    np.testing.assert_array_equal(log.X.toarray(), COUNTS.log1p().toarray())
    assert log.names == tuple("ABCDE")
    components = read_table(path, ColumnChoice(labels=("depth",)), key="X_pca")
    np.testing.assert_array_equal(components.X, cells.obsm["X_pca"])
    assert components.names == ("pca0", "pca1", "pca2")
    np.testing.assert_array_equal(components.labels["depth"], np.arange(12))
    assert read_table(path, ColumnChoice(features=["C", "A"], drop=["A"])).names == ("C",)
    graph = read_table(path, key="distances", graph=True)
    np.testing.assert_array_equal(graph.X.toarray(), PAIRS.toarray())
    assert graph.is_graph
    with pytest.raises(DataFileError, match="weights of pairs, not features; pass graph=True"):
        read_table(path, key="distances")
    with pytest.raises(DataFileError, match=r"no entry 'X_umap'.*obsm: X_pca; layers: log; obsp:"):
        read_table(path, key="X_umap")


def test_stores_of_the_third_version_of_zarr(cells, tmp_path):
    pytest.importorskip("zarr", minversion="3")
    with anndata.settings.override(zarr_write_format=3):
        cells.write_zarr(tmp_path / "cells.zarr")
    assert (tmp_path / "cells.zarr" / "zarr.json").exists()
    np.testing.assert_array_equal(read_table(tmp_path / "cells.zarr").X.toarray(), COUNTS.toarray())


def test_other_entries_are_not_read(path, monkeypatch):
    from manifoldry.io import annotated_files

    monkeypatch.setattr(annotated_files, "open_annotated", None)
    assert read_table(path).X.shape == (12, 5)


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_maps_are_added_to_what_is_there(path, suffix, cells, tmp_path):
    if suffix == ".zarr":
        pytest.importorskip("zarr")
    table, Y = read_table(path), RNG.normal(size=(12, 2))
    out = tmp_path / f"out{suffix}"
    for _ in range(2):  # the second time it is replaced
        write_map(out, Y, table, method="tsne")
    again = (anndata.read_zarr if suffix == ".zarr" else anndata.read_h5ad)(out)
    np.testing.assert_array_equal(again.obsm["X_tsne"], Y)
    np.testing.assert_array_equal(again.obsm["X_pca"], cells.obsm["X_pca"])
    np.testing.assert_array_equal(again.X.toarray(), COUNTS.toarray())
    np.testing.assert_array_equal(again.layers["log"].toarray(), COUNTS.log1p().toarray())
    np.testing.assert_array_equal(again.obsp["distances"].toarray(), PAIRS.toarray())
    np.testing.assert_array_equal(again.varm["PCs"], cells.varm["PCs"])
    np.testing.assert_array_equal(again.uns["pca"]["variance"], np.arange(3))
    np.testing.assert_array_equal(again.raw.X.toarray(), COUNTS.toarray())
    pandas.testing.assert_frame_equal(again.obs, cells.obs, check_index_type=False)
    assert {p.name for p in tmp_path.iterdir()} == {path.name, out.name}


def test_a_failure_leaves_the_previous_store(tmp_path, cells, monkeypatch):
    pytest.importorskip("zarr")
    cells.write_zarr(tmp_path / "cells.zarr")
    table = read_table(tmp_path / "cells.zarr")
    out = write_map(tmp_path / "out.zarr", np.zeros((12, 2)), table, method="tsne")

    def fail(self, store):
        raise OSError("no space left")

    monkeypatch.setattr(anndata.AnnData, "write_zarr", fail)
    with pytest.raises(OSError, match="no space"):
        write_map(out, np.ones((12, 2)), table, method="tsne")
    np.testing.assert_array_equal(read_table(out, key="X_tsne").X, np.zeros((12, 2)))
    assert {p.name for p in tmp_path.iterdir()} == {"cells.zarr", "out.zarr"}


def test_files_without_x_and_damaged_ones(tmp_path, cells):
    bare = anndata.AnnData(obs=cells.obs, obsm={"X_pca": cells.obsm["X_pca"]})
    bare.write_h5ad(tmp_path / "bare.h5ad")
    with pytest.raises(DataFileError, match=r"has no X; name an entry with --key \(obsm: X_pca"):
        read_table(tmp_path / "bare.h5ad")
    assert read_table(tmp_path / "bare.h5ad", key="X_pca").X.shape == (12, 3)
    whole = tmp_path / "whole.h5ad"
    cells.write_h5ad(whole)
    whole.write_bytes(whole.read_bytes()[:3000])
    with pytest.raises(DataFileError, match=r"whole\.h5ad is damaged, or no AnnData"):
        read_table(whole)
    (tmp_path / "text.h5ad").write_text("no data")
    with pytest.raises(DataFileError, match="is damaged, or no AnnData"):
        read_table(tmp_path / "text.h5ad")


def test_indices_outside_a_sparse_matrix_are_refused(path, cells):
    if path.suffix == ".zarr":
        import zarr

        zarr.open_group(str(path), mode="r+")["X/indices"][0] = 99
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "r+") as file:
            file["X/indices"][0] = 99
    with pytest.raises(DataFileError):
        read_table(path)


class Payload:
    """An object that runs code when it is loaded from a pickle."""

    def __reduce__(self):
        return pytest.fail, ("code of a file was run",)


def write_objects(folder, filters):
    folder.mkdir()
    about = {"zarr_format": 2, "shape": [2, 1], "chunks": [2, 1], "dtype": "|O", "order": "C",
             "compressor": None, "filters": filters, "fill_value": None}  # fmt: skip
    (folder / ".zarray").write_text(json.dumps(about))
    (folder / "0.0").write_bytes(pickle.dumps(Payload()))


@pytest.mark.parametrize("filters", [["pickle"], ["vlen-utf8", "pickle"]])
def test_objects_in_zarr_stores_are_not_loaded(tmp_path, cells, monkeypatch, filters):
    pytest.importorskip("zarr", minversion="3")
    pickles = pytest.importorskip("numcodecs.pickles")
    monkeypatch.setattr(pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    filters = [{"id": name} for name in filters]
    write_objects(tmp_path / "x.zarr", filters)
    with pytest.raises(DataFileError, match=r"x\.zarr.*(Python objects|damaged)"):
        read_table(tmp_path / "x.zarr")
    cells.write_zarr(tmp_path / "cells.zarr")
    table = read_table(tmp_path / "cells.zarr")
    (tmp_path / "cells.zarr" / ".zmetadata").unlink(missing_ok=True)
    write_objects(tmp_path / "cells.zarr" / "obsm" / "more", filters)
    for use in (
        read_table,
        lambda path: write_map(path.with_name("y.zarr"), np.ones((12, 2)), table),
    ):
        with pytest.raises(DataFileError, match=r"cells\.zarr.*(Python objects|damaged)"):
            use(tmp_path / "cells.zarr")


def test_old_versions_of_zarr_are_refused(tmp_path, cells, monkeypatch):
    zarr = pytest.importorskip("zarr")
    cells.write_zarr(tmp_path / "cells.zarr")
    monkeypatch.setattr(zarr, "__version__", "2.18.7")
    with pytest.raises(MissingExtraError, match=r"version 3 .* 2\.18\.7 is installed"):
        read_table(tmp_path / "cells.zarr")


@pytest.mark.parametrize("kind", ["link", "virtual", "external"])
def test_data_in_other_files_are_not_read(tmp_path, cells, kind):
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["data"] = np.full((12, 2), 7.0)
        place = file["data"].id.get_offset()
    path = tmp_path / "cells.h5ad"
    cells.write_h5ad(path)
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        if kind == "link":
            file["obsm/X_pca"] = h5py.ExternalLink(str(secret), "data")
        elif kind == "virtual":
            layout = h5py.VirtualLayout(shape=(12, 2), dtype=float)
            layout[:] = h5py.VirtualSource(str(secret), "data", shape=(12, 2))
            file.create_virtual_dataset("obsm/X_pca", layout)
        else:
            stored = [(str(secret), place, 12 * 2 * 8)]
            file.create_dataset("obsm/X_pca", (12, 2), dtype=float, external=stored)
    with pytest.raises(DataFileError, match=r"'obsm/X_pca' of .*cells\.h5ad is in another file"):
        read_table(path, key="X_pca")


def test_genes_of_one_name_stay_apart(tmp_path, cells):
    cells.var_names = list("AABCA")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    table = read_table(tmp_path / "cells.h5ad")
    assert len(set(table.names)) == 5
    again = read_table(tmp_path / "cells.h5ad", ColumnChoice(table.names))
    assert (again.X != COUNTS).nnz == 0
