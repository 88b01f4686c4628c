"""Coordinates of cells, from their data and from the neighbor graph that scanpy stores."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

import manifoldry as mf
from manifoldry.exceptions import ManifoldryWarning

from .conftest import add_neighbors

anndata = pytest.importorskip("anndata")


def test_diffusion_coordinates_are_eigenvectors_of_the_stored_walk(cells):
    """Compared with the dense eigenproblem of scanpy's normalization."""
    adata = cells.copy()
    assert mf.tl.diffmap(adata, 5) is None
    W = adata.obsp["connectivities"].toarray()
    q = W.sum(axis=0)
    K = W / np.outer(q, q)
    P = K / K.sum(axis=1, keepdims=True)
    values = np.sort(np.linalg.eigvals(P).real)[::-1][1:6]
    found, Y = adata.uns["diffusion_maps"], adata.obsm["X_diffusion_maps"]
    np.testing.assert_allclose(found["eigenvalues"], values, rtol=1e-7)
    np.testing.assert_allclose(P @ Y, Y * values, atol=1e-6 * np.abs(Y).max())
    assert found["unpredictability"][0] == 1
    assert found["unpredictability"][1] < 0.2  # the process has one dimension


def test_non_redundant_coordinates_stop_where_they_repeat(cells):
    adata = cells.copy()
    mf.tl.diffmap(adata, non_redundant=True)
    Y = adata.obsm["X_nonredundant"]
    assert abs(np.corrcoef(Y[:, 0], adata.obs["time"])[0, 1]) > 0.9
    found = adata.uns["nonredundant"]
    assert found["params"]["n_comps"] == Y.shape[1] == len(found["eigenvalues"])
    assert (found["unpredictability"] > 0.5).all()


def test_copy_and_keys(cells):
    adata = cells.copy()
    other = mf.tl.diffmap(adata, 2, key_added="walk", copy=True)
    assert other.obsm["walk"].shape == (200, 2)
    assert "walk" not in adata.obsm
    assert "walk" not in adata.uns
    other = mf.tl.embed(adata, "pca", use_rep="X_pca", copy=True)
    assert other.uns["pca"]["params"]["use_rep"] == "X_pca"
    assert "pca" not in adata.uns


@pytest.mark.parametrize("method", ["isomap", "LaplacianEigenmaps", "ltsa"])
def test_the_stored_graph_replaces_the_search(cells, method):
    """Coordinates equal those of the estimator on the same data and the same neighbors."""
    adata = cells.copy()
    mf.tl.embed(adata, method, neighbors_key="neighbors", key_added="stored")
    mf.tl.embed(adata, method, n_neighbors=14, use_rep="X_pca", key_added="searched")
    np.testing.assert_allclose(adata.obsm["stored"], adata.obsm["searched"], rtol=1e-9)
    mf.tl.embed(adata, method, n_neighbors=9, neighbors_key="neighbors", key_added="fewer")
    assert not np.allclose(adata.obsm["fewer"], adata.obsm["stored"])


def test_data_are_those_of_the_arrays(cells):
    adata = cells.copy()
    mf.tl.embed(adata, mf.TSNE(random_state=1), n_pcs=4)
    expected = mf.TSNE(random_state=1).fit_transform(adata.obsm["X_pca"][:, :4])
    np.testing.assert_array_equal(adata.obsm["X_tsne"], expected)
    assert trustworthiness(adata.obsm["X_pca"], expected) > 0.8
    mf.tl.embed(adata, "PCA", use_rep="X", n_components=3)
    assert adata.obsm["X_pca"].shape == (200, 3)


def test_another_graph_and_another_metric(cells):
    adata = cells.copy()
    add_neighbors(adata, 8, "near", metric="cityblock")
    mf.tl.embed(adata, "isomap", neighbors_key="near")
    expected = mf.Isomap(2, n_neighbors=7, metric="cityblock").fit_transform(adata.obsm["X_pca"])
    np.testing.assert_allclose(adata.obsm["X_isomap"], expected, rtol=1e-9)
    graph = mf.tl.ScanpyGraph.of(adata, "near").neighbor_graph(adata.obsm["X_pca"])
    moved = mf.Isomap(2, metric="cityblock").fit(graph).transform(adata.obsm["X_pca"] + 1e-9)
    np.testing.assert_allclose(moved, expected, atol=1e-4)  # the graph has the data, for new cells
    mf.tl.diffmap(adata, 2, neighbors_key="near")
    assert adata.uns["diffusion_maps"]["params"]["neighbors_key"] == "near"


def test_graphs_that_do_not_fit(cells):
    adata = cells.copy()
    with pytest.raises(ValueError, match=r"no neighbor graph uns\['far'\]; call sc\.pp\.neighbors"):
        mf.tl.diffmap(adata, neighbors_key="far")
    with pytest.raises(ValueError, match="not those of the data; pass use_rep and n_pcs"):
        mf.tl.embed(adata, "isomap", neighbors_key="neighbors", n_pcs=3)
    D = adata.obsp["distances"].tolil()
    D[0, D[0].nonzero()[1][0]] = 0  # dropped, as that of a duplicate
    adata.obsp["distances"] = D.tocsr()
    with pytest.warns(ManifoldryWarning, match="13 to 14 stored neighbors.*nearest 13"):
        mf.tl.embed(adata, "laplacian-eigenmaps", neighbors_key="neighbors")
    del adata.obsp["connectivities"]
    with pytest.raises(ValueError, match=r"names obsp\['connectivities'\], which is missing"):
        mf.tl.diffmap(adata)


def test_data_that_are_not_there(cells):
    adata = cells.copy()
    del adata.obsm["X_pca"]
    with pytest.raises(ValueError, match=r"60 variables and no obsm\['X_pca'\]; call sc\.pp\.pca"):
        mf.tl.embed(adata)
    with pytest.raises(ValueError, match="n_pcs=11 is more than the 10 columns"):
        mf.tl.embed(cells, n_pcs=11)
    with pytest.raises(ValueError, match="did you mean isomap"):
        mf.tl.embed(cells, "isomaps")
    with pytest.raises(TypeError, match="adata must be an AnnData, not ndarray"):
        mf.tl.embed(np.zeros((5, 5)))


def test_descriptions_survive_a_file(cells, tmp_path):
    adata = cells.copy()
    mf.tl.diffmap(adata, 3)
    mf.tl.embed(adata, "isomap", neighbors_key="neighbors", n_landmarks=50)
    mf.tl.embed(adata, mf.NonRedundant(mf.LaplacianEigenmaps()), use_rep="X_pca")
    mf.tl.assess(adata, "isomap", "kind")
    assert "metric_params" not in adata.uns["isomap"]["params"]  # None is left out
    for path, write, read in (
        ("c.h5ad", adata.write_h5ad, anndata.read_h5ad),
        ("c.zarr", adata.write_zarr, anndata.read_zarr),
    ):
        if path.endswith("zarr"):
            pytest.importorskip("zarr")
        write(tmp_path / path)
        again = read(tmp_path / path)
        for key in ("diffusion_maps", "isomap", "nonredundant"):
            np.testing.assert_array_equal(again.obsm[f"X_{key}"], adata.obsm[f"X_{key}"])
            params = {k: v for k, v in again.uns[key]["params"].items() if np.ndim(v) == 0}
            assert params == {k: adata.uns[key]["params"][k] for k in params}
        assert (
            again.uns["isomap_assessment"]["summary"] == adata.uns["isomap_assessment"]["summary"]
        )
