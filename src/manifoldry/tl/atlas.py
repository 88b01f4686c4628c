"""Models that map new cells onto an atlas."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from manifoldry.io.model_file import load, read_info
from manifoldry.tl.coordinates import described, named_estimator
from manifoldry.tl.genes import GeneExpression, gene_names, in_order
from manifoldry.tl.storage import Keys, check_annotated, store_coordinates
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Matrix

_USUAL_COMPONENTS = 50


def fit_atlas(
    adata: Any,
    method: Any = "tsne",
    *,
    counts: bool = True,
    layer: str | None = None,
    genes: Sequence[str] | str | None = None,
    target_sum: float | None = None,
    n_pcs: int | None = None,
    n_components: int = 2,
    key_added: str | None = None,
    random_state: int = 0,
    **params: Any,
) -> Pipeline:
    """Fit a model from genes to coordinates, which maps new cells without changing the atlas.

    It contains all steps: genes by name, normalization and logarithm of counts, principal
    components, and the method. :func:`manifoldry.save` writes it to a file.

    Parameters
    ----------
    adata : AnnData
        The cells of the atlas.
    method : str or estimator, default="tsne"
        As for :func:`embed`.
    counts : bool, default=True
        Whether the values are counts, to be normalized within each cell and replaced by their
        logarithms. Otherwise they are used as they are; new cells need the same treatment.
    layer : str, default=None
        Layer with the values; None means ``X``.
    genes : sequence of str or str, default=None
        Genes to use, or the name of a column of ``var`` with True for them. None means
        ``"highly_variable"`` if there is such a column, otherwise all.
    target_sum : float, default=None
        Sum of the counts of a cell after normalization; None means the median.
    n_pcs : int, default=None
        Number of principal components; None means 50, or as many as there are, and 0 none.
    n_components : int, default=2
        Number of coordinates.
    key_added : str, default=None
        Key of the coordinates in ``obsm`` and of the description in ``uns``, as for
        :func:`embed`; by default after the method.
    random_state : int, default=0
        Seed.
    **params
        Further parameters of the estimator.

    Returns
    -------
    Pipeline
        The fitted model. ``transform`` takes an AnnData. The coordinates of the atlas are in
        ``obsm``, as for :func:`embed`.

    See Also
    --------
    map_cells : gives new cells coordinates by the model.
    embed : coordinates alone.
    manifoldry.save : writes the model to a file.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from manifoldry import tl
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.gamma(2.0, 5.0, size=(2, 30))  # of 30 genes in two types of cells
    >>> cells = rng.poisson(rates[np.arange(100) % 2]).astype("float32")
    >>> atlas = anndata.AnnData(cells[:80])
    >>> model = tl.fit_atlas(atlas, "isomap", n_neighbors=50)
    >>> list(model.named_steps), atlas.obsm["X_isomap"].shape
    (['genes', 'pca', 'isomap'], (80, 2))
    >>> model.transform(anndata.AnnData(cells[80:])).shape
    (20, 2)
    """
    check_annotated(adata)
    chosen = _chosen_genes(adata, genes)
    name, estimator = named_estimator(method, n_components, random_state, params)
    first = GeneExpression(chosen, counts=counts, target_sum=target_sum)
    X = first.fit_transform(adata if layer is None else (adata, layer))
    steps: list[tuple[str, Any]] = [("genes", first)]
    if n_pcs != 0:
        steps.append(("pca", _components(X, n_pcs, random_state)))
        X = steps[-1][1].transform(X)  # as new cells: fit_transform would differ by rounding
    estimator.fit(X)
    source = {"counts": counts, "layer": layer, "n_genes": len(chosen), "n_pcs": int(X.shape[1])}
    store_coordinates(
        adata, Keys.of(name, key_added), estimator.embedding_, described(estimator, source)
    )
    return Pipeline([*steps, (name, estimator)])


def map_cells(
    adata: Any,
    model: Any,
    *,
    layer: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
) -> Any:
    """Give new cells coordinates on an atlas.

    Every cell is placed by itself, and the same cell always at the same place. Genes are found by
    name: their order does not matter, those that the model does not use are dropped (their number
    is in ``uns``), and missing genes are an error.

    Parameters
    ----------
    adata : AnnData
        The new cells.
    model : Pipeline, estimator, str or path
        A model of :func:`fit_atlas`, or a model file of :func:`manifoldry.save` or of the command
        ``manifoldry embed`` that has names of genes.
    layer : str, default=None
        Layer with the values; None means ``X``.
    key_added : str, default=None
        Key in ``obsm`` and ``uns``, as for :func:`embed`; by default after the method.
    copy : bool, default=False
        Whether to return a changed copy instead of changing `adata`.

    Returns
    -------
    AnnData or None
        The changed copy if `copy`. ``obs["tsne_novelty"]`` (or with the name of another method, or
        `key_added`) is the distance of each cell from those of the atlas: above 2 it is unlike
        them, and its place means little. It is measured in the principal components of the atlas,
        so that a difference in genes that hardly vary there is not seen.

    See Also
    --------
    fit_atlas : fits the model.
    manifoldry.load : loads a model from a file.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from manifoldry import tl
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.gamma(2.0, 5.0, size=(2, 30))  # of 30 genes in two types of cells
    >>> cells = rng.poisson(rates[np.arange(100) % 2]).astype("float32")
    >>> atlas = anndata.AnnData(cells[:80])
    >>> model = tl.fit_atlas(atlas, "isomap", n_neighbors=50)
    >>> new = anndata.AnnData(cells[80:])
    >>> tl.map_cells(new, model)
    >>> new.obsm["X_isomap"].shape, bool(new.obs["isomap_novelty"].max() < 3)
    ((20, 2), True)
    """
    adata = check_annotated(adata).copy() if copy else check_annotated(adata)
    cells = adata if layer is None else (adata, layer)
    fitted, names = _fitted_with_names(model)
    last = fitted.steps[-1][1]
    X: Any = cells if isinstance(fitted.steps[0][1], GeneExpression) else in_order(cells, names)
    with warnings.catch_warnings():
        # Columns are in order now, though they have no names any more.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        for _, step in fitted.steps[:-1]:
            X = step.transform(X)
        placed, novelty = last.transform(X, return_distance=True)
    keys = Keys.of(fitted.steps[-1][0], key_added)
    present = gene_names(cells) or names
    source = {"n_genes": len(names), "n_genes_left_out": len(present) - len(names), "layer": layer}
    store_coordinates(adata, keys, placed, {"method": type(last).__name__, "params": source})
    adata.obs[f"{keys.uns}_novelty"] = np.asarray(novelty)
    return adata if copy else None


def _chosen_genes(adata: Any, genes: Sequence[str] | str | None) -> list[str]:
    if genes is None:
        genes = "highly_variable" if "highly_variable" in adata.var else list(adata.var_names)
    if not isinstance(genes, str):
        return [str(name) for name in genes]
    if genes not in adata.var:
        raise ValueError(
            f"genes={genes!r} is not in var, which has {', '.join(map(repr, adata.var))}; pass a "
            "column of True and False, or a list of names"
        )
    chosen = np.asarray(adata.var[genes])
    if chosen.dtype != bool:
        raise ValueError(f"var[{genes!r}] must have True and False, not {chosen.dtype}")
    return [str(name) for name in adata.var_names[chosen]]


def _components(X: Matrix, n_pcs: int | None, random_state: int) -> PCA:
    """Fitted principal components; those of sparse data without a dense copy."""
    is_sparse = hasattr(X, "nnz")
    count = min(_USUAL_COMPONENTS, min(X.shape) - 1) if n_pcs is None else n_pcs
    solver = "arpack" if is_sparse else "auto"
    pca = PCA(check_count("n_pcs", count), svd_solver=solver, random_state=random_state).fit(X)
    # A reversed view, as arpack gives, is another array in a model file, with other rounding.
    pca.components_ = np.ascontiguousarray(pca.components_)
    return pca


def _fitted_with_names(model: Any) -> tuple[Pipeline, list[str]]:
    """A model as a pipeline, and the names of its genes."""
    facts: dict[str, Any] = {}
    if isinstance(model, str | os.PathLike):
        facts, model = read_info(model).training, load(model)
    names = facts.get("feature_names", getattr(model, "feature_names_in_", None))
    if names is None:
        raise ValueError(
            "the model has no names of genes; fit it with manifoldry.tl.fit_atlas, or call its "
            "transform with the columns of its training data"
        )
    if not isinstance(model, Pipeline):
        model = Pipeline([(str(facts.get("method", "embedding")), model)])
    return model, [str(name) for name in names]
