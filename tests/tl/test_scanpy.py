"""What scanpy itself stores, and its own results."""

from pathlib import Path

import numpy as np
import pytest

import manifoldry as mf
from manifoldry.io import read_table

sc = pytest.importorskip("scanpy")


# The import of umap compiles for half a minute in a new environment.
@pytest.fixture(scope="module", params=["gauss", pytest.param("umap", marks=pytest.mark.slow)])
def blood(request):
    """700 blood cells, which come with scanpy, and neighbors by scanpy."""
    adata = sc.datasets.pbmc68k_reduced()
    sc.pp.neighbors(adata, n_neighbors=15, method=request.param)
    return adata


def test_diffusion_coordinates_are_those_of_scanpy(blood):
    """Eigenvectors of the same walk: scanpy's, divided by its first one, are ours."""
    adata = blood.copy()
    sc.tl.diffmap(adata, n_comps=9)
    mf.tl.diffmap(adata, 8)
    np.testing.assert_allclose(
        adata.uns["diffusion_maps"]["eigenvalues"], adata.uns["diffmap_evals"][1:], rtol=1e-5
    )
    theirs = adata.obsm["X_diffmap"][:, 1:] / adata.obsm["X_diffmap"][:, :1]
    for k, ours in enumerate(adata.obsm["X_diffusion_maps"].T):
        assert abs(np.corrcoef(ours, theirs[:, k])[0, 1]) > 1 - 1e-6


def test_neighbors_are_those_of_scanpy(blood):
    adata = blood.copy()
    mf.tl.embed(adata, "isomap", neighbors_key="neighbors")
    graph = mf.NeighborGraph.build(adata.obsm["X_pca"], 14)
    theirs = adata.obsp["distances"]
    same = graph.matrix(np.ones(len(graph.indices))).multiply(theirs > 0).sum()
    assert same / len(graph.indices) > 0.999
    expected = mf.Isomap(2).fit_transform(graph)
    np.testing.assert_allclose(adata.obsm["X_isomap"], expected, atol=1e-3 * np.ptp(expected))


def test_the_file_of_an_old_version():
    """Its neighbors have no keys, and their parameters are arrays of one entry."""
    adata = sc.datasets.pbmc68k_reduced()
    assert "distances_key" not in adata.uns["neighbors"]
    mf.tl.diffmap(adata, 3)
    assert adata.obsm["X_diffusion_maps"].shape == (700, 3)


def test_the_file_of_an_old_version_is_read():
    import scanpy.datasets

    folder = Path(scanpy.datasets.__file__).parent
    path = folder / "10x_pbmc68k_reduced.h5ad"
    adata = sc.datasets.pbmc68k_reduced()
    np.testing.assert_array_equal(read_table(path).X, adata.X)
    np.testing.assert_array_equal(read_table(path, key="X_umap").X, adata.obsm["X_umap"])
    assert "bulk_labels" in read_table(path).labels


def test_plots(blood):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    adata = blood.copy()
    mf.tl.diffmap(adata, 2)
    mf.tl.assess(adata)
    color = ["bulk_labels", "umap_trustworthiness"]
    axes = sc.pl.embedding(adata, basis="diffusion_maps", color=color, show=False)
    assert axes[0].get_xlabel() == "diffusion_maps1"
    pyplot.close("all")


def test_unseen_types_of_cells_are_farther_from_the_atlas(blood):
    """B cells, mapped onto an atlas without them, in comparison with other new cells."""
    cells = blood.raw.to_adata()
    is_b = np.asarray(cells.obs["bulk_labels"] == "CD19+ B")
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~is_b))
    reference, held_out = cells[rows[100:]].copy(), cells[rows[:100]].copy()
    model = mf.tl.fit_atlas(reference, "laplacian-eigenmaps", counts=False, n_pcs=10)
    mf.tl.map_cells(held_out, model)
    b_cells = mf.tl.map_cells(cells[is_b], model, copy=True)
    known, unseen = (a.obs["laplacian_eigenmaps_novelty"] for a in (held_out, b_cells))
    assert (known > 2).mean() <= 0.03
    assert np.median(known) < 1 < np.median(unseen)
    in_order = np.less.outer(known.to_numpy(), unseen.to_numpy()).mean()
    assert in_order > 0.9
