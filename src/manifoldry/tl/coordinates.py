"""Coordinates of cells by any method, from their data or from scanpy's neighbor graph."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from manifoldry.methods.catalog import find_method
from manifoldry.nonredundant.estimator import NonRedundant
from manifoldry.spectral.diffusion_maps import DiffusionMaps
from manifoldry.tl.scanpy_graph import ScanpyGraph
from manifoldry.tl.storage import Keys, check_annotated, representation, store_coordinates


def diffmap(
    adata: Any,
    n_comps: int | None = None,
    *,
    non_redundant: bool = False,
    neighbors_key: str | None = None,
    alpha: float = 1.0,
    t: float = 1.0,
    key_added: str | None = None,
    random_state: int = 0,
    copy: bool = False,
) -> Any:
    """Compute diffusion coordinates from the connectivities that ``sc.pp.neighbors`` has stored.

    The random walk is that of ``sc.tl.diffmap``, with the same eigenvalues. Coordinates differ
    from those in ``X_diffmap`` in three ways: the constant first one is left out; they are the
    right eigenvectors ψ of the transition matrix, not the eigenvectors √π·ψ of its symmetric form,
    which also contain the stationary distribution π; and they are multiplied by ℓᵗ, where ℓ are
    the eigenvalues, so that their distances are diffusion distances.

    Parameters
    ----------
    adata : AnnData
        Cells with the graph of ``sc.pp.neighbors``.
    n_comps : int, default=None
        Number of coordinates, not counting the constant one. None means 15; with `non_redundant`
        as many as there are before they repeat each other, at most 10.
    non_redundant : bool, default=False
        Whether every coordinate must not be a function of those before it, as
        :class:`~manifoldry.NonRedundant` computes them.
    neighbors_key : str, default=None
        Entry of ``uns`` that describes the graph; None means ``"neighbors"``.
    alpha : float, default=1.0
        Exponent of the density normalization; 1 is that of scanpy, 0 means none.
    t : float, default=1.0
        Number of steps of the random walk.
    key_added : str, default=None
        Key of the coordinates in ``obsm`` and of the description in ``uns``; None means
        ``"X_diffusion_maps"`` and ``"diffusion_maps"``, or with `non_redundant`
        ``"X_nonredundant"`` and ``"nonredundant"``.
    random_state : int, default=0
        Seed of the eigensolver.
    copy : bool, default=False
        Whether to return a changed copy instead of changing `adata`.

    Returns
    -------
    AnnData or None
        The changed copy if `copy`. ``uns[key]`` has ``params``, the ``eigenvalues`` ℓ (of
        non-redundant coordinates, the quotients that take their place) and the ``unpredictability``
        of each coordinate from those before it: near 0 means that it repeats them.

    See Also
    --------
    embed : any other method.
    manifoldry.DiffusionMaps : the estimator, for arrays.
    manifoldry.NonRedundant : coordinates that do not repeat each other.

    Examples
    --------
    Cells along a process, with a neighbor graph as ``sc.pp.neighbors`` stores it:

    >>> import anndata, numpy as np
    >>> from sklearn.neighbors import kneighbors_graph
    >>> from manifoldry import tl
    >>> time = np.sort(np.random.default_rng(0).uniform(size=200))
    >>> adata = anndata.AnnData(np.column_stack([np.cos(3 * time), np.sin(3 * time)]))
    >>> near = kneighbors_graph(adata.X, 10)
    >>> adata.obsp["distances"] = kneighbors_graph(adata.X, 10, mode="distance")
    >>> adata.obsp["connectivities"] = near.maximum(near.T)
    >>> adata.uns["neighbors"] = {"params": {"metric": "euclidean"}}
    >>> tl.diffmap(adata, 3)
    >>> adata.obsm["X_diffusion_maps"].shape
    (200, 3)
    >>> bool(abs(np.corrcoef(adata.obsm["X_diffusion_maps"][:, 0], time)[0, 1]) > 0.95)
    True
    >>> adata.uns["diffusion_maps"]["unpredictability"].round(1)  # the others repeat the first
    array([1., 0., 0.])
    """
    adata = check_annotated(adata).copy() if copy else check_annotated(adata)
    graph = ScanpyGraph.of(adata, neighbors_key)
    walk = DiffusionMaps(
        15 if n_comps is None else n_comps,
        affinity="precomputed", alpha=alpha, t=t, random_state=random_state,
    )  # fmt: skip
    count = "auto" if n_comps is None else n_comps
    model = NonRedundant(walk, count, random_state=random_state) if non_redundant else walk
    model.fit(graph.connectivities)
    error = model.unpredictability_ if non_redundant else model.unpredictability()
    keys = Keys.of("nonredundant" if non_redundant else "diffusion_maps", key_added)
    params = {"n_comps": model.n_components_, "non_redundant": non_redundant, "alpha": alpha,
              "t": t, "neighbors_key": neighbors_key or "neighbors",
              "random_state": random_state}  # fmt: skip
    results = {"params": params, "eigenvalues": 1 - model.eigenvalues_, "unpredictability": error}
    store_coordinates(adata, keys, model.embedding_, results)
    return adata if copy else None


def embed(
    adata: Any,
    method: Any = "tsne",
    *,
    n_components: int = 2,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    random_state: int = 0,
    copy: bool = False,
    **params: Any,
) -> Any:
    """Compute coordinates of cells by any method of this package.

    Parameters
    ----------
    adata : AnnData
        The cells.
    method : str or estimator, default="tsne"
        Name of a method, such as ``"isomap"`` or ``"ElasticEmbedding"``, or an estimator, which is
        cloned and whose own parameters take the place of `n_components` and `random_state`.
    n_components : int, default=2
        Number of coordinates.
    use_rep : str, default=None
        Data, as for scanpy's functions: a key of ``obsm`` or ``layers``, or ``"X"``. None means
        ``"X_pca"``, or ``X`` if it has at most 50 columns.
    n_pcs : int, default=None
        Number of columns of the data to use, as for scanpy's functions.
    neighbors_key : str, default=None
        Use the neighbors that ``sc.pp.neighbors`` has stored under this key of ``uns``, such as
        ``"neighbors"``, in place of a search. Then None for `use_rep` and `n_pcs` means the data
        that scanpy has used.
    key_added : str, default=None
        Key of the coordinates in ``obsm`` and of the description in ``uns``; None means
        ``"X_tsne"`` and ``"tsne"`` for t-SNE, and so on.
    random_state : int, default=0
        Seed.
    copy : bool, default=False
        Whether to return a changed copy instead of changing `adata`.
    **params
        Further parameters of the estimator.

    Returns
    -------
    AnnData or None
        The changed copy if `copy`.

    See Also
    --------
    diffmap : diffusion coordinates from scanpy's graph.
    fit_atlas : a model that can map new cells.
    assess : how far the coordinates can be trusted.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from manifoldry import tl
    >>> kinds = 5 * (np.arange(100) % 2)
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(100, 10)) + kinds[:, None])
    >>> tl.embed(adata, "isomap", n_neighbors=60)
    >>> adata.obsm["X_isomap"].shape, adata.uns["isomap"]["params"]["n_neighbors"]
    ((100, 2), 60)
    """
    adata = check_annotated(adata).copy() if copy else check_annotated(adata)
    name, estimator = named_estimator(method, n_components, random_state, params)
    if neighbors_key is None:
        X: Any = representation(adata, use_rep, n_pcs)
    else:
        graph = ScanpyGraph.of(adata, neighbors_key)
        X = graph.neighbor_graph(graph.representation(adata, use_rep, n_pcs))
    estimator.fit(X)
    source = {"use_rep": use_rep, "n_pcs": n_pcs, "neighbors_key": neighbors_key}
    store_coordinates(
        adata, Keys.of(name, key_added), estimator.embedding_, described(estimator, source)
    )
    return adata if copy else None


def named_estimator(
    method: Any, n_components: int, random_state: int, params: dict[str, Any]
) -> tuple[str, Any]:
    """The name of a method in keys, and an estimator that is not fitted."""
    if not isinstance(method, str):
        name = find_method(type(method).__name__).key
        return name, clone(method).set_params(**params)
    found = find_method(method)
    return found.key, found.estimator(n_components, random_state, None).set_params(**params)


def described(estimator: Any, source: dict[str, Any]) -> dict[str, Any]:
    """What ``uns`` says about a fitted estimator."""
    results: dict[str, Any] = {
        "method": type(estimator).__name__,
        "params": estimator.get_params(deep=False) | source,
        "loss": getattr(estimator, "loss_", None),
    }
    if hasattr(estimator, "eigenvalues_"):
        results["eigenvalues"] = estimator.eigenvalues_
        results["unpredictability"] = estimator.unpredictability()
    return results
