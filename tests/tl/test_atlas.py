"""Models from genes to coordinates, which map new cells."""

import numpy as np
import pytest
from scipy import sparse

import manifoldry as mf

from .conftest import counts_of

anndata = pytest.importorskip("anndata")


@pytest.fixture(scope="module")
def atlas(cells):
    adata = cells.copy()
    return adata, mf.tl.fit_atlas(adata, "isomap", n_pcs=10, n_neighbors=10)


@pytest.fixture(scope="module")
def new_cells(cells):
    """40 cells of the same process, with all genes in another order and five more."""
    rng = np.random.default_rng(1)
    time = np.sort(rng.uniform(0.05, 0.95, size=40))
    counts = np.hstack([counts_of(time, rng), rng.poisson(3, size=(40, 5))]).astype(np.float32)
    adata = anndata.AnnData(sparse.csr_matrix(counts))
    adata.var_names = [*cells.var_names, *(f"other{j}" for j in range(5))]
    adata.obs["time"] = time
    return adata[:, rng.permutation(65)].copy()


def test_new_cells_are_where_similar_ones_are(atlas, new_cells):
    reference, model = atlas
    adata = new_cells.copy()
    assert mf.tl.map_cells(adata, model) is None
    Y = reference.obsm["X_isomap"][:, 0]
    order = np.argsort(Y)
    expected = np.interp(
        adata.obsm["X_isomap"][:, 0], Y[order], reference.obs["time"].to_numpy()[order]
    )
    assert np.abs(expected - adata.obs["time"]).mean() < 0.05
    assert (adata.obs["isomap_novelty"] < 2).all()
    assert adata.uns["isomap"]["params"]["n_genes_left_out"] == 5


def test_every_cell_is_placed_by_itself_and_always_alike(atlas, new_cells, tmp_path):
    _, model = atlas
    path = mf.save(model, tmp_path / "atlas.model")
    whole = mf.tl.map_cells(new_cells, model, copy=True)
    loaded = mf.tl.map_cells(new_cells, path, copy=True)
    np.testing.assert_array_equal(loaded.obsm["X_isomap"], whole.obsm["X_isomap"])
    np.testing.assert_array_equal(loaded.obs["isomap_novelty"], whole.obs["isomap_novelty"])
    some = mf.tl.map_cells(new_cells[7:9], model, copy=True)
    np.testing.assert_allclose(some.obsm["X_isomap"], whole.obsm["X_isomap"][7:9], atol=1e-5)
    np.testing.assert_array_equal(mf.load(path).transform(new_cells), whole.obsm["X_isomap"])
    training = mf.read_info(path).training
    assert training["feature_names"][:2] == ["gene0", "gene1"]
    assert training["method"] == "isomap"  # so the command names its columns


def test_cells_of_the_atlas_keep_their_place(atlas, cells):
    reference, model = atlas
    again = mf.tl.map_cells(cells, model, copy=True, key_added="again")
    np.testing.assert_array_equal(again.obsm["again"], reference.obsm["X_isomap"])
    assert "again_novelty" in again.obs


def test_dense_counts_and_a_layer_give_the_same(atlas, new_cells):
    _, model = atlas
    adata = new_cells.copy()
    adata.layers["counts"] = adata.X.toarray()
    adata.X = adata.X.log1p()
    adata.uns["log1p"] = {}
    expected = mf.tl.map_cells(new_cells, model, copy=True)
    mf.tl.map_cells(adata, model, layer="counts")
    np.testing.assert_allclose(adata.obsm["X_isomap"], expected.obsm["X_isomap"], atol=1e-4)
    with pytest.raises(ValueError, match=r"has logarithms.*layer=.*counts=False"):
        mf.tl.map_cells(adata, model)


def test_cells_of_another_kind_are_noticed(atlas, new_cells):
    adata = new_cells.copy()
    X = adata.X.toarray()
    adata.X = np.roll(X, 13, axis=1)
    with pytest.warns(mf.exceptions.NoveltyWarning):
        mf.tl.map_cells(adata, atlas[1])
    assert (adata.obs["isomap_novelty"] > 2).all()


def test_missing_and_repeated_genes(atlas, new_cells):
    _, model = atlas
    missing = new_cells[:, new_cells.var_names != "gene3"]
    with pytest.raises(ValueError, match=r"1 of the 60 genes.*missing: 'gene3'; rename"):
        mf.tl.map_cells(missing, model, copy=True)
    adata = new_cells.copy()
    adata.var_names = ["gene3" if name == "other1" else name for name in adata.var_names]
    with pytest.raises(ValueError, match=r"'gene3' occurs 2 times.*var_names_make_unique"):
        mf.tl.map_cells(adata, model)


def test_repeated_names_that_are_not_used_do_not_matter(atlas, new_cells):
    adata = new_cells.copy()
    adata.var_names = ["other" if name.startswith("other") else name for name in adata.var_names]
    expected = mf.tl.map_cells(new_cells, atlas[1], copy=True)
    mf.tl.map_cells(adata, atlas[1])
    np.testing.assert_array_equal(adata.obsm["X_isomap"], expected.obsm["X_isomap"])


def test_normalization_is_that_of_the_formula(cells):
    adata = cells.copy()
    model = mf.tl.fit_atlas(adata, "pca", genes=["gene5", "gene9", "gene1"], target_sum=10, n_pcs=0)
    X = adata[:, ["gene5", "gene9", "gene1"]].X.toarray()
    total = X.sum(axis=1, keepdims=True)
    expected = np.log1p(10 * X / np.where(total > 0, total, 1))
    found = model[:1].transform(adata)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-5)
    back = model[:1].inverse_transform(expected)
    np.testing.assert_allclose(back.sum(axis=1)[total[:, 0] > 0], 10, rtol=1e-5)
    median = mf.tl.GeneExpression().fit(cells).target_sum_
    assert median == np.median(np.asarray(cells.X.sum(axis=1)))


def test_which_genes(cells):
    adata = cells.copy()
    adata.var["highly_variable"] = np.arange(60) % 2 == 0
    model = mf.tl.fit_atlas(adata, "pca", counts=False)
    assert list(model.feature_names_in_) == [f"gene{j}" for j in range(0, 60, 2)]
    assert adata.uns["pca"]["params"]["n_pcs"] == 29
    with pytest.raises(ValueError, match="genes='marker' is not in var"):
        mf.tl.fit_atlas(adata, "pca", genes="marker")
    with pytest.raises(ValueError, match=r"genes occur twice, such as \['gene1'\]"):
        mf.tl.fit_atlas(adata, "pca", genes=["gene1", "gene1"])
    adata.X = adata.X - sparse.csr_matrix(np.ones(adata.shape, dtype=np.float32))
    with pytest.raises(ValueError, match="must not be negative, but -1 occurs"):
        mf.tl.fit_atlas(adata, "pca")


def test_models_of_arrays_have_no_names(cells):
    with pytest.raises(ValueError, match=r"no names of genes; fit it with .*fit_atlas"):
        mf.tl.map_cells(cells, mf.PCA().fit(cells.X.toarray()), copy=True)
    with pytest.raises(TypeError, match="no names of genes; pass an AnnData"):
        mf.tl.GeneExpression().fit(np.ones((3, 3)))


def test_models_of_frames_map_cells(cells):
    """As those of the command, whose files have names of columns."""
    model = mf.PCA().fit(cells.to_df())
    found = mf.tl.map_cells(cells[:, ::-1], model, copy=True)
    np.testing.assert_allclose(found.obsm["X_embedding"], model.embedding_, rtol=1e-5, atol=1e-5)
