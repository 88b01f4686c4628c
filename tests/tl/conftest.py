"""Cells with counts, principal components, and a neighbor graph written as scanpy writes it."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from manifoldry import NeighborGraph


def counts_of(time, rng, n_genes=60):
    """Counts of genes that rise and fall one after another along a process."""
    peaks = np.linspace(-0.2, 1.2, n_genes)
    rates = 0.2 + 8 * np.exp(-((time[:, None] - peaks) ** 2) / 0.05)
    return rng.poisson(rates).astype(np.float32)


def add_neighbors(adata, n_neighbors=15, key="neighbors", metric="euclidean"):
    """Write a graph of X_pca as sc.pp.neighbors does; Gaussian weights as connectivities."""
    graph = NeighborGraph.build(adata.obsm["X_pca"], n_neighbors - 1, metric=metric)
    W = graph.matrix(np.exp(-((graph.distances / graph.distances.mean()) ** 2)))
    places = ("distances", "connectivities") if key == "neighbors" else (f"{key}_d", f"{key}_c")
    adata.obsp[places[0]] = sparse.csr_matrix(graph.matrix())
    adata.obsp[places[1]] = sparse.csr_matrix(W.maximum(W.T))
    adata.uns[key] = {
        "distances_key": places[0],
        "connectivities_key": places[1],
        "params": {"n_neighbors": n_neighbors, "method": "umap", "metric": metric},
    }


@pytest.fixture(scope="module")
def cells():
    """200 cells along a process; do not change them, but a copy."""
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(size=200))
    counts = counts_of(time, rng)
    obs = pandas.DataFrame({"time": time}, index=[f"cell{i}" for i in range(200)])
    obs["kind"] = pandas.Categorical(np.where(time < 0.5, "early", "late"))
    var = pandas.DataFrame(index=[f"gene{j}" for j in range(counts.shape[1])])
    adata = anndata.AnnData(sparse.csr_matrix(counts), obs=obs, var=var)
    adata.obsm["X_pca"] = PCA(10, random_state=0).fit_transform(np.log1p(counts))
    add_neighbors(adata)
    return adata
