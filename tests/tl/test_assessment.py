"""The assessment of an embedding in an AnnData, whoever has computed it."""

import numpy as np
import pytest

import manifoldry as mf
from manifoldry.exceptions import ManifoldryWarning

pytest.importorskip("anndata")


def test_it_is_that_of_the_arrays(cells):
    adata = cells.copy()
    adata.obsm["X_umap"] = adata.obsm["X_pca"][:, [0, 5]]
    found = mf.tl.assess(adata, labels="kind")
    expected = mf.assess(
        adata.obsm["X_pca"], adata.obsm["X_umap"], adata.obs["kind"], random_state=0
    )
    assert found.metrics == expected.metrics
    stored = adata.uns["umap_assessment"]
    assert stored["metrics"] == {name: float(v) for name, v in expected.metrics.items()}
    assert stored["summary"] == expected.summary
    assert stored["params"]["labels"] == "kind"
    for name, values in expected.per_point.items():
        np.testing.assert_array_equal(adata.obs[f"umap_{name}"], values)


def test_options(cells, monkeypatch):
    adata = cells.copy()
    adata.obsm["spatial"] = np.random.default_rng(0).normal(size=(200, 2))
    mf.tl.assess(adata, "spatial", key_added="place", use_rep="X", per_cell=False)
    assert list(adata.obs) == list(cells.obs)
    assert adata.uns["place"]["metrics"]["trustworthiness"] < 0.6
    monkeypatch.setattr("manifoldry.tl.assessment._MAX_PER_CELL", 100)
    with pytest.warns(ManifoldryWarning, match="every one of 200 cells are left out"):
        mf.tl.assess(adata, "spatial")
    assert list(adata.obs) == list(cells.obs)
    mf.tl.assess(adata, "spatial", per_cell=True)
    assert "spatial_trustworthiness" in adata.obs
    with pytest.raises(ValueError, match=r"basis='X_umap' is not in obsm.*'spatial'"):
        mf.tl.assess(adata)
    with pytest.raises(ValueError, match="labels='type' is not in obs"):
        mf.tl.assess(adata, "spatial", "type")
