"""How far an embedding of cells, such as ``X_umap``, can be trusted."""

from __future__ import annotations

from typing import Any

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.metrics.assess import Assessment
from manifoldry.metrics.assess import assess as assess_arrays
from manifoldry.tl.storage import check_annotated, representation, writable
from manifoldry.util.array_like import embedding_like, labels_of

# Metrics of every one of 20 000 cells take 22 s of processor time, so here about two minutes.
_MAX_PER_CELL = 50_000


def assess(
    adata: Any,
    basis: str = "umap",
    labels: Any = None,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    n_neighbors: int | None = None,
    metric: str = "euclidean",
    per_cell: bool | None = None,
    key_added: str | None = None,
    random_state: int = 0,
) -> Assessment:
    """Compare an embedding of any origin with the data, and say how far it can be trusted.

    It computes the metrics of :func:`manifoldry.assess` and stores them beside the embedding.

    Parameters
    ----------
    adata : AnnData
        The cells.
    basis : str, default="umap"
        Key of the embedding in ``obsm``, with or without ``X_``.
    labels : str or array of shape (n_obs,), default=None
        Column of ``obs`` with labels, or the labels: do neighbors have the same one? If labels are
        passed, their accuracy is one of the metrics.
    use_rep : str, default=None
        The data, as for :func:`embed`.
    n_pcs : int, default=None
        Number of columns of the data, as for :func:`embed`.
    n_neighbors : int, default=None
        Neighborhood size; None means 15.
    metric : str, default="euclidean"
        Metric of the data.
    per_cell : bool, default=None
        Whether to compute the metrics of every cell, in time proportional to the square of their
        number. None means up to 50 000 cells; a warning says if they are left out.
    key_added : str, default=None
        Prefix of the columns in ``obs``, and key in ``uns``; None means the name of the basis for
        the columns, as in ``obs["umap_trustworthiness"]``, and ``uns["umap_assessment"]``.
    random_state : int, default=0
        Seed of the samples from which metrics of many cells are estimated.

    Returns
    -------
    Assessment
        ``print`` it for a table and a summary in sentences. ``uns`` has ``metrics``, ``baseline``
        (those of PCA), ``summary`` and ``params``; ``obs`` has the metrics of every cell.

    See Also
    --------
    manifoldry.assess : the same for arrays and estimators.
    embed : computes an embedding.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from manifoldry import tl
    >>> rng = np.random.default_rng(0)
    >>> types = np.arange(100) % 2
    >>> adata = anndata.AnnData(rng.normal(size=(100, 10)) + 5 * types[:, None])
    >>> adata.obs["type"] = types.astype(str)
    >>> adata.obsm["X_umap"] = adata.X[:, :2]  # stands for an embedding by any package
    >>> found = tl.assess(adata, "umap", labels="type")
    >>> found.metrics["label_accuracy"] > 0.95 > 0.9 > found.metrics["trustworthiness"]
    True
    >>> bool(adata.obs["umap_trustworthiness"].min() < 0.9)  # which cells not to trust
    True
    """
    key = basis if basis in check_annotated(adata).obsm else f"X_{basis}"
    embedding = embedding_like((adata, key), "basis")
    found = assess_arrays(
        representation(adata, use_rep, n_pcs),
        embedding,
        None if labels is None else labels_of(labels, adata),
        n_neighbors=n_neighbors,
        metric=metric,
        random_state=random_state,
    )
    name = key.removeprefix("X_")
    if _wants_every_cell(per_cell, adata.n_obs):
        for metric_name, values in found.per_point.items():
            adata.obs[f"{key_added or name}_{metric_name}"] = values
    params = {
        "basis": key, "labels": labels if isinstance(labels, str) else None, "use_rep": use_rep,
        "n_pcs": n_pcs, "metric": metric, "n_neighbors": found.n_neighbors,
        "random_state": random_state,
    }  # fmt: skip
    results = {"metrics": found.metrics, "baseline": found.baseline, "summary": found.summary}
    adata.uns[key_added or f"{name}_assessment"] = writable({"params": params, **results})
    return found


def _wants_every_cell(per_cell: bool | None, n: int) -> bool:
    if per_cell is None and n > _MAX_PER_CELL:
        warn(
            f"metrics of every one of {n} cells are left out, since they take minutes; pass "
            "per_cell=True to compute them, or per_cell=False",
            ManifoldryWarning,
        )
        return False
    return per_cell is not False
