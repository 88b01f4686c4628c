"""The neighbor graph that ``sc.pp.neighbors`` has stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.tl.storage import representation
from manifoldry.util.typing import Matrix
from manifoldry.util.validation import read_rows, spread_rows


@dataclass(frozen=True, eq=False)
class ScanpyGraph:
    """Distances and connectivities of the neighbors of each cell, as scanpy stores them.

    Use it to pass a graph that ``sc.pp.neighbors`` has computed to an estimator of this package.

    Parameters
    ----------
    distances : sparse array of shape (n_obs, n_obs)
        Distances of the nearest neighbors of each cell, without itself.
    connectivities : sparse array of shape (n_obs, n_obs)
        Symmetric weights.
    params : dict
        Parameters of ``sc.pp.neighbors``, such as ``metric``, ``use_rep`` and ``n_pcs``.

    See Also
    --------
    embed : uses it with ``neighbors_key``.
    manifoldry.NeighborGraph : the graph of this package.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from manifoldry import Isomap
    >>> from manifoldry.tl import ScanpyGraph
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(60, 3)))
    >>> adata.obsp["distances"] = kneighbors_graph(adata.X, 8, mode="distance")
    >>> adata.obsp["connectivities"] = kneighbors_graph(adata.X, 8)
    >>> adata.uns["neighbors"] = {"params": {"metric": "euclidean"}}  # as sc.pp.neighbors has it
    >>> graph = ScanpyGraph.of(adata).neighbor_graph(adata.X)
    >>> Isomap().fit(graph).embedding_.shape
    (60, 2)
    """

    distances: Matrix
    connectivities: Matrix
    params: dict[str, Any]

    @classmethod
    def of(cls, adata: Any, neighbors_key: str | None = None) -> ScanpyGraph:
        """Read the graph that ``uns[neighbors_key]`` of `adata` describes.

        Parameters
        ----------
        adata : AnnData
            Cells with the graph of ``sc.pp.neighbors``.
        neighbors_key : str, default=None
            Entry of ``uns`` that describes the graph; None means ``"neighbors"``.

        Returns
        -------
        ScanpyGraph
            The graph.
        """
        key = "neighbors" if neighbors_key is None else neighbors_key
        if key not in adata.uns:
            also = "" if neighbors_key is None else f", key_added={key!r}"
            raise ValueError(
                f"adata has no neighbor graph uns[{key!r}]; call sc.pp.neighbors(adata{also})"
            )
        stored = adata.uns[key]
        matrices = {}
        for name in ("distances", "connectivities"):
            place = str(_single(stored.get(f"{name}_key", name)))
            if place not in adata.obsp:
                raise ValueError(
                    f"uns[{key!r}] names obsp[{place!r}], which is missing; call sc.pp.neighbors "
                    "again"
                )
            matrices[name] = sparse.csr_array(adata.obsp[place])
        params = {name: _single(value) for name, value in dict(stored.get("params", {})).items()}
        return cls(**matrices, params=params)

    @property
    def metric(self) -> str:
        """Metric of the distances."""
        return str(self.params.get("metric", "euclidean"))

    def neighbor_graph(self, points: Matrix) -> NeighborGraph:
        """The distances as a graph of these points, which methods may need beside it.

        Parameters
        ----------
        points : array of shape (n_obs, n_features)
            The data that ``sc.pp.neighbors`` has used; an error is raised if their distances
            differ from the stored ones.

        Returns
        -------
        NeighborGraph
            The graph.
        """
        counts = np.diff(self.distances.indptr)
        k = int(counts.min())
        if k < counts.max():
            warn(
                f"cells have {k} to {counts.max()} stored neighbors, as when zero distances "
                f"between duplicates were dropped; the nearest {k} of each are used",
                ManifoldryWarning,
            )
        graph = NeighborGraph.build(self.distances, max(k, 1), metric="precomputed")
        index = choose_index(read_rows(points, least=2), self.metric)
        _check_distances(graph, index)
        return replace(graph, index=index, metric=self.metric)

    def representation(self, adata: Any, use_rep: str | None, n_pcs: int | None) -> Matrix:
        """Return the data of which the graph was made.

        Parameters
        ----------
        adata : AnnData
            The cells.
        use_rep : str or None
            Key of ``obsm``, or ``"X"``.
        n_pcs : int or None
            Number of principal components. If both are None, those that scanpy has stored with
            the graph are used.

        Returns
        -------
        array or sparse matrix of shape (n_cells, n_features)
            The data.
        """
        if use_rep is None and n_pcs is None:
            use_rep, n_pcs = self.params.get("use_rep"), self.params.get("n_pcs")
        return representation(adata, use_rep, None if n_pcs is None else int(n_pcs))


def _check_distances(
    graph: NeighborGraph, index: Any, n_checked: int = 100, rtol: float = 1e-2
) -> None:
    """Raise ValueError if some distances of the graph are not those of the points of the index."""
    edges = spread_rows(len(graph.indices), n_checked)
    true = index.distances_between(graph.rows[edges], graph.indices[edges])
    stored = graph.distances[edges]
    if not np.allclose(stored, true, rtol=rtol, atol=rtol * float(np.median(true))):
        raise ValueError(
            "the stored distances of neighbors are not those of the data; pass use_rep and n_pcs "
            "as in sc.pp.neighbors, or call that again"
        )


def _single(value: Any) -> Any:
    """A value that was stored as an array of one entry, as in files of old versions."""
    array = np.asarray(value)
    return array.ravel()[0].item() if array.size == 1 and array.dtype != object else value
