"""AnnData files and Zarr stores, written by anndata itself."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.io import ColumnChoice, DataFileError, read_table, write_map

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
    assert components.names == ("pca1", "pca2", "pca3")
    np.testing.assert_array_equal(components.labels["depth"], np.arange(12))
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
